"""Disentanglement, completeness and informativeness."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from ..errors import InputError
from ..scoring import checked, metric
from ._tables import alive, check_trainable, classes, train_and_test

Estimator = Literal["trees", "rf", "gbt"]


class DCI(NamedTuple):
    """The three scores; 1 is best."""

    disentanglement: float
    completeness: float
    informativeness: float
    """accuracy on rows that were not trained on"""


@metric(paper="Eastwood and Williams (2018), Sec. 2")
def dci(factors: Any, codes: Any, *, estimator: Estimator = "trees", train: float = 2 / 3, seed: int | None = 0) -> DCI:
    """Is each code important for one factor (D), each factor predicted by one code (C), and predicted well (I)?

    Importances are those of a classifier for each factor, and which one decides the numbers: name it. `trees`, the fast
    default: 20 bagged trees of depth 6 that look at all codes; `rf`: a random forest; `gbt`: gradient boosting, the
    reference library's, a hundred times slower. With `seed=None` rows are not shuffled.
    """
    c, z = checked(factors, codes)
    rows = train_and_test(len(c), train, seed)
    living = alive(z)
    importance, accuracy = np.zeros((z.shape[1], c.shape[1])), np.zeros(c.shape[1])
    for j, factor in enumerate(c.T):
        if living.any():
            importance[living, j], accuracy[j] = _predicted(classes(factor), j, z[:, living], rows, estimator)
        else:
            accuracy[j] = _most_frequent(classes(factor), rows)
    return DCI(_pure(importance), _pure(importance.T), float(accuracy.mean()))


def _pure(importance: np.ndarray) -> float:
    """One minus the entropy of each row, weighted by the row's share of all importance, (a, b) -> number."""
    if importance.sum() <= 0:
        return 0.0
    if importance.shape[1] == 1:
        return 1.0
    purity = 1 - entropy(importance.T + 1e-11, base=importance.shape[1])
    return float((purity * importance.sum(1) / importance.sum()).sum())


def _predicted(
    y: np.ndarray, j: int, z: np.ndarray, rows: tuple[np.ndarray, np.ndarray], estimator: str
) -> tuple[np.ndarray, float]:
    """How important each code is for a factor, (d,), and how well the factor is predicted."""
    learn, test = rows
    check_trainable(y[learn], j)
    models: dict[str, Any] = {
        "trees": RandomForestClassifier(20, max_features=None, max_depth=6, random_state=0),
        "rf": RandomForestClassifier(random_state=0),
        "gbt": GradientBoostingClassifier(random_state=0),
    }
    if estimator not in models:
        raise InputError(f"estimator={estimator!r}: wanted {', '.join(map(repr, models))}")
    model = models[estimator].fit(z[learn], y[learn])
    return np.abs(model.feature_importances_), float(model.score(z[test], y[test]))


def _most_frequent(y: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> float:
    """The accuracy of always saying the most frequent class."""
    learn, test = rows
    return float(np.mean(y[test] == np.bincount(y[learn]).argmax()))
