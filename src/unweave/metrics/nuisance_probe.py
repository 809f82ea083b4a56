"""Nuisance probe: how much information about a nuisance is left in codes that should not have any."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from unweave.metrics.contract import metric
from unweave.metrics.factors import check_trainable, prepare_factors, train_test_rows

# A classifier that stops early, or that overfits, finds less than there is. So it trains for as long as the accuracy on
# held-out rows rises.
VALIDATION_SHARE = 0.1
EARLY_STOPPING: dict[str, Any] = {"learning_rate_init": 5e-3, "max_iter": 300, "n_iter_no_change": 20}
SHORT_TRAINING: dict[str, Any] = {"max_iter": 60, "n_iter_no_change": 5}  # if rows are too few to hold some out


class Probe(NamedTuple):
    """Means over the nuisances, from 0 to 1."""

    accuracy: float
    """Test accuracy of predicting the nuisance from the codes; at the chance level is best."""
    chance: float
    """Accuracy without the codes: the share of the most frequent value."""


@metric(paper="Xie, Dai, Du, Hovy and Neubig (2017), Sec. 4: what an attacker finds", best=0.0, truth="labels")
def nuisance_probe(nuisances: Any, codes: Any, *, train: float = 0.5, seed: int | None = 0) -> Probe:
    """Test accuracy of a new classifier that predicts nuisances from codes (Xie et al., 2017, Sec. 4).

    The classifier is a network with one hidden layer of 128 units. An accuracy at the chance level means that
    at this sample size the network finds no information; more rows may reveal some.

    Args:
        nuisances: Classes that the codes should not contain, (n,) or (n, k).
        codes: Codes, (n, d).
        train: Share of the rows to train on.
        seed: Seed of the split and of the network; None splits the rows in order.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> nuisance = rng.integers(2, size=200)
        >>> nuisance_probe(nuisance, nuisance + 0.1 * rng.normal(size=200)).accuracy
        1.0
    """
    c, z = prepare_factors(nuisances, codes)
    fit, test = train_test_rows(len(c), train, seed)
    z = StandardScaler().fit(z[fit]).transform(z)
    rows = [_probe(y, j, z, fit, test, seed) for j, y in enumerate(c.classes)]
    return Probe(*(float(v) for v in np.mean(rows, 0)))


def _probe(
    y: np.ndarray, j: int, z: np.ndarray, fit: np.ndarray, test: np.ndarray, seed: int | None
) -> tuple[float, float]:
    """Return test accuracy and chance level of one nuisance."""
    check_trainable(y[fit], j)
    values, counts = np.unique(y[fit], return_counts=True)
    can_hold_out = counts.min() >= 2 and VALIDATION_SHARE * len(fit) >= len(values)
    early_stopping = EARLY_STOPPING | {"early_stopping": True, "validation_fraction": VALIDATION_SHARE}
    training = early_stopping if can_hold_out else SHORT_TRAINING
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last epochs change little
        model = MLPClassifier((128,), **training, random_state=seed).fit(z[fit], y[fit])
    return float(model.score(z[test], y[test])), float((y[test] == values[counts.argmax()]).mean())
