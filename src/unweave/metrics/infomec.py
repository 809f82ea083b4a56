"""InfoMEC: modularity, explicitness and compactness by information."""

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
from unweave.metrics.factors import PreparedFactors, alive, prepare_factors
from unweave.utils.errors import InputError


class InfoMEC(NamedTuple):
    """The three scores; 1 is best."""

    modularity: float
    explicitness: float
    compactness: float


@metric(paper="Hsu, Dorrell, Whittington, Wu and Finn (2023), Sec. 4")
def infomec(factors: Any, codes: Any, *, prune: float = 1 / 20, neighbors: int = 10, seed: int = 0) -> InfoMEC:
    """Does each code know one factor (M), a linear model all of them (E), and is each factor in one code (C)?

    M and C: the share that the largest normalized information has of a code's, or a factor's, whole; rescaled so that
    evenly spread is 0. Information between a real-valued code and the classes of a factor is estimated by nearest
    neighbors. Codes whose range is below `prune` of the largest range count as inactive in M and C: the authors' rule,
    so scale matters. E: the share of a factor's entropy that a logistic regression on all codes explains, classes
    balanced; of a continuous factor, R^2. As in the authors' code it is measured on the rows that were learned from.
    """
    c, z = prepare_factors(factors, codes)
    if c.count < 2:
        raise InputError("InfoMEC compares factors, and there is one only")
    if len(z) < 2 * neighbors:
        raise InputError(f"{len(z)} samples are too few to estimate information from {neighbors} neighbors")
    living = alive(z)
    if not living.any():
        return InfoMEC(0.0, 0.0, 0.0)
    reach = np.ptp(z, axis=0)
    scaled = (z - z.mean(0)) / np.where(living, z.std(0), np.inf)
    active = scaled[:, living & (reach > prune * reach.max())]
    shared = np.array([mutual_info_classif(active, y, n_neighbors=neighbors, random_state=seed) for y in c.classes])
    shared /= np.array([entropy(np.bincount(y)) for y in c.classes])[:, None]  # (k, d)
    told = [_told(c, j, scaled) for j in range(c.count)]
    return InfoMEC(_preference(shared.T), float(np.mean(told)), _preference(shared))


def _preference(shared: np.ndarray) -> float:
    """How much of each row lies in its largest cell, averaged; 0 where all cells are alike, (a, b) -> number."""
    if shared.shape[1] == 1:
        return 1.0 if shared.sum() > 0 else 0.0
    whole = shared.sum(1)
    if not (whole > 0).any():
        return 0.0
    even = 1 / shared.shape[1]
    largest = (shared.max(1)[whole > 0] / whole[whole > 0]).mean()
    return float((largest - even) / (1 - even))


def _told(c: PreparedFactors, j: int, z: np.ndarray) -> float:
    """The share of a factor's entropy, or of its variance, that a linear model on all codes explains."""
    if not c.discrete[j]:
        return float(LinearRegression().fit(z, c.c[:, j]).score(z, c.c[:, j]))
    y = c.classes[j]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=100).fit(z, y)
    # Balanced and knowing nothing, it gives every class the same probability: log(classes) nats.
    return 1 - float(log_loss(y, model.predict_proba(z))) / float(np.log(len(model.classes_)))
