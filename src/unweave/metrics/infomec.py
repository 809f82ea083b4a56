"""InfoMEC: modularity, explicitness and compactness from mutual information."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import entropy
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from unweave.metrics.contract import metric
from unweave.metrics.factors import PreparedFactors, active_codes, prepare_factors
from unweave.utils.errors import InputError


class InfoMEC(NamedTuple):
    """The three scores; 1 is best, 0 is chance."""

    modularity: float
    explicitness: float
    compactness: float


@metric(paper="Hsu, Dorrell, Whittington, Wu and Finn (2023), Sec. 4")
def infomec(factors: Any, codes: Any, *, prune: float = 1 / 20, neighbors: int = 10, seed: int = 0) -> InfoMEC:
    """Modularity, explicitness and compactness by mutual information (Hsu et al., 2023, Sec. 4).

    M and C: largest share of the normalized information of a code (M) or a factor (C), rescaled so that evenly spread
    information is 0. E: share of a factor's entropy that a balanced logistic regression on all codes explains; R^2 for
    a continuous factor. As in the authors' code, E is measured on the training rows.

    Args:
        factors: True factors, (n, k) with k > 1, or the result of `prepared`.
        codes: Codes, (n, d).
        prune: Codes whose range is below this share of the largest are ignored in M and C, so the scale matters.
        neighbors: Nearest neighbors for the estimate of mutual information.
        seed: Seed of the noise that the estimate adds.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(3, size=(100, 2))
        >>> infomec(factors, factors).modularity > 0.9
        True
    """
    c, z = prepare_factors(factors, codes)
    if c.count < 2:
        raise InputError("InfoMEC compares factors, and there is only one")
    if len(z) < 2 * neighbors:
        raise InputError(f"{len(z)} samples are too few to estimate information from {neighbors} neighbors")
    active = active_codes(z)
    if not active.any():
        return InfoMEC(0.0, 0.0, 0.0)
    span = np.ptp(z, axis=0)
    scaled = (z - z.mean(0)) / np.where(active, z.std(0), np.inf)
    kept = scaled[:, active & (span > prune * span.max())]
    information = np.array([mutual_info_classif(kept, y, n_neighbors=neighbors, random_state=seed) for y in c.classes])
    information /= np.array([entropy(np.bincount(y)) for y in c.classes])[:, None]  # (k, d)
    explained = [_explained_share(c, j, scaled) for j in range(c.count)]
    return InfoMEC(_largest_share(information.T), float(np.mean(explained)), _largest_share(information))


def _largest_share(information: np.ndarray) -> float:
    """Return the mean share of each row in its largest cell, rescaled so that equal cells give 0, (a, b) -> number."""
    if information.shape[1] == 1:
        return 1.0 if information.sum() > 0 else 0.0
    total = information.sum(1)
    if not (total > 0).any():
        return 0.0
    even = 1 / information.shape[1]
    largest = (information.max(1)[total > 0] / total[total > 0]).mean()
    return float((largest - even) / (1 - even))


def _explained_share(c: PreparedFactors, j: int, z: np.ndarray) -> float:
    """Return the share of a factor's entropy, or variance, that a linear model on all codes explains."""
    if not c.discrete[j]:
        return float(LinearRegression().fit(z, c.targets(j)).score(z, c.targets(j)))
    y = c.classes[j]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=100).fit(z, y)
    # Without information, a balanced model gives every class the same probability: log(classes) nats.
    return 1 - float(log_loss(y, model.predict_proba(z))) / float(np.log(len(model.classes_)))
