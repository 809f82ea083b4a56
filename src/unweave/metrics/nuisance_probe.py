"""How much of a nuisance is left in codes that should not know of it."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from unweave.metrics.contract import metric
from unweave.metrics.factors import check_trainable, prepare_factors, train_and_test

# An attacker who gives up early finds less than there is, and so does one who learns by heart: go on for as long as it
# helps on a tenth of the rows.
ASIDE = 0.1
PATIENT: dict[str, Any] = {"learning_rate_init": 5e-3, "max_iter": 300, "n_iter_no_change": 20}
HASTY: dict[str, Any] = {"max_iter": 60, "n_iter_no_change": 5}  # where rows are too few to set some aside


class Probe(NamedTuple):
    """Means over the nuisances."""

    accuracy: float
    """how often the nuisance is guessed right from the codes"""
    chance: float
    """the same without looking at the codes: the share of the commonest value"""


@metric(paper="Xie, Dai, Du, Hovy and Neubig (2017), Sec. 4: what an attacker finds", best=0.0, truth="labels")
def nuisance_probe(nuisances: Any, codes: Any, *, train: float = 0.5, seed: int | None = 0) -> Probe:
    """How well a fresh classifier, a network with one hidden layer, tells nuisances (n,) or (n, k) from codes (n, d).

    Measured on rows that were not trained on. Accuracy at the chance level: nothing is left that such a network finds
    in so many rows; of more rows it finds more.
    """
    c, z = prepare_factors(nuisances, codes)
    learn, test = train_and_test(len(c), train, seed)
    z = StandardScaler().fit(z[learn]).transform(z)
    rows = [_guess(y, j, z, learn, test, seed) for j, y in enumerate(c.classes)]
    return Probe(*(float(v) for v in np.mean(rows, 0)))


def _guess(
    y: np.ndarray, j: int, z: np.ndarray, learn: np.ndarray, test: np.ndarray, seed: int | None
) -> tuple[float, float]:
    check_trainable(y[learn], j)
    values, counts = np.unique(y[learn], return_counts=True)
    enough = counts.min() >= 2 and ASIDE * len(learn) >= len(values)
    how = PATIENT | {"early_stopping": True, "validation_fraction": ASIDE} if enough else HASTY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # by then it is all but over
        model = MLPClassifier((128,), **how, random_state=seed).fit(z[learn], y[learn])
    return float(model.score(z[test], y[test])), float((y[test] == values[counts.argmax()]).mean())
