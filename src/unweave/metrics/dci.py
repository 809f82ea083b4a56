"""Disentanglement, completeness and informativeness (DCI)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import entropy
from sklearn.base import is_classifier
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV

from unweave.metrics.contract import ORDERED, metric
from unweave.metrics.factors import (
    PreparedFactors,
    active_codes,
    check_trainable,
    group_columns,
    prepare_factors,
    train_test_rows,
)
from unweave.utils.errors import InputError, plural

Estimator = Literal["trees", "rf", "lasso", "gbt"]
Depth = int | Sequence[int] | Literal["cv"] | None
CV_DEPTHS = (2, 4, 8, 16)  # candidates of depth="cv"
L1_PENALTY = 0.02  # for standardized codes and factors


class DCI(NamedTuple):
    """The three scores, each from 0 to 1; 1 is best."""

    disentanglement: float
    completeness: float
    informativeness: float
    """On test rows: accuracy of a classifier, or R^2 of a regressor, at least 0."""


@metric(
    paper="Eastwood and Williams (2018), Sec. 2",
    variants={
        "trees": {"estimator": "trees"},
        "rf": {"estimator": "rf"},
        "rf-cv": {"estimator": "rf", "depth": "cv"},
        "lasso": {"estimator": "lasso"},
        "gbt": {"estimator": "gbt"},
    },
    slow=("rf", "rf-cv", "gbt"),
    kinds={"lasso": ORDERED},
)
def dci(
    factors: Any,
    codes: Any,
    *,
    estimator: Estimator = "trees",
    depth: Depth = None,
    features: Sequence[Sequence[int]] | None = None,
    train: float = 2 / 3,
    seed: int | None = 0,
) -> DCI:
    """Disentanglement, completeness and informativeness of codes (Eastwood and Williams, 2018, Sec. 2).

    A model predicts each factor from all codes and gives an importance to each code. D is high if a code is important
    for one factor, C if a factor is predicted by one code, I if it is predicted well. D and C are 1 minus the entropy
    of normalized importances, weighted by importance. The estimator decides the numbers, so name it with them.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        estimator: `trees`: 20 bagged classification trees of depth 6, fast. `gbt`: gradient boosting as in the
            reference library, about a hundred times slower. `rf` and `lasso`, as in the paper: random forests and
            L1-penalized linear regression (penalty 0.02, standardized) that predict the factor as a number, a circular
            one as cosine and sine.
        depth: Depth of `rf`: one for all factors, one for each, or "cv" for cross-validation.
        features: Groups of codes that belong together; their importances are added.
        train: Share of the rows to train on.
        seed: Seed of the split; None splits the rows in order.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(3, size=(100, 2))
        >>> [round(score, 2) for score in dci(factors, factors)]
        [1.0, 1.0, 1.0]
    """
    c, z = prepare_factors(factors, codes)
    importance, accuracy = code_importances(c, z, estimator=estimator, depth=depth, train=train, seed=seed)
    importance = np.stack([importance[own].sum(0) for own in group_columns(features, z)])  # (features, k)
    return DCI(mean_purity(importance), mean_purity(importance.T), float(accuracy.mean()))


def code_importances(
    c: PreparedFactors, z: np.ndarray, *, estimator: Estimator, depth: Depth, train: float, seed: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the importance of each code for each factor, (d, k), and how well each factor is predicted, (k,)."""
    rows = train_test_rows(len(c), train, seed)
    active = active_codes(z)
    importance, accuracy = np.zeros((z.shape[1], c.count)), np.zeros(c.count)
    for j, model in enumerate(_models(estimator, depth, c.count)):
        y = c.classes[j] if is_classifier(model) else c.targets(j)
        if active.any():
            importance[active, j], accuracy[j] = _fit_factor(model, y, j, z[:, active], rows)
        elif is_classifier(model):
            accuracy[j] = _majority_accuracy(y, rows)  # the R^2 of a regressor without codes is 0
    return importance, accuracy


def mean_purity(importance: np.ndarray) -> float:
    """Return 1 minus the normalized entropy of each row, weighted by its importance, (a, b) -> number."""
    if importance.sum() <= 0:
        return 0.0
    if importance.shape[1] == 1:
        return 1.0
    purity = 1 - entropy(importance.T + 1e-11, base=importance.shape[1])
    return float((purity * importance.sum(1) / importance.sum()).sum())


def _models(estimator: str, depth: Depth, k: int) -> list[Any]:
    """Return one model for each factor."""
    if depth is not None and estimator != "rf":
        raise InputError(f"depth={depth!r} is for estimator='rf', and this is {estimator!r}")
    if depth == "cv":
        return [GridSearchCV(RandomForestRegressor(random_state=0), {"max_depth": CV_DEPTHS}, cv=3) for _ in range(k)]
    depths = [depth] * k if depth is None or isinstance(depth, int) else list(depth)
    if len(depths) != k:
        raise InputError(f"depth={depth!r} names {plural(len(depths), 'depth')} for {plural(k, 'factor')}")
    models: dict[str, Any] = {
        "trees": lambda _: RandomForestClassifier(20, max_features=None, max_depth=6, random_state=0),
        "rf": lambda max_depth: RandomForestRegressor(max_depth=max_depth, random_state=0),
        "lasso": lambda _: Lasso(alpha=L1_PENALTY),
        "gbt": lambda _: GradientBoostingClassifier(random_state=0),
    }
    if estimator not in models:
        raise InputError(f"estimator={estimator!r}: expected {', '.join(map(repr, models))}")
    return [models[estimator](max_depth) for max_depth in depths]


def _fit_factor(
    model: Any, y: np.ndarray, j: int, z: np.ndarray, rows: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, float]:
    """Return the importance of each code for a factor, (d,), and how well the factor is predicted."""
    fit, test = rows
    check_trainable(y[fit], j)
    if isinstance(model, Lasso):  # coefficients can be compared where codes and factors have one scale
        z = (z - z[fit].mean(0)) / np.where(active_codes(z[fit]), z[fit].std(0), np.inf)
        y = (y - y[fit].mean(0)) / y[fit].std(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(z[fit], y[fit])
    accuracy = max(float(model.score(z[test], y[test])), 0.0)
    best = getattr(model, "best_estimator_", model)
    if isinstance(best, Lasso):
        return np.abs(np.atleast_2d(best.coef_)).sum(0), accuracy  # a circular factor has two targets
    return best.feature_importances_, accuracy


def _majority_accuracy(y: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the accuracy of always predicting the most frequent class."""
    fit, test = rows
    return float(np.mean(y[test] == np.bincount(y[fit]).argmax()))
