"""Disentanglement, completeness and informativeness."""

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

from unweave.metrics.contract import metric
from unweave.metrics.factors import PreparedFactors, alive, check_trainable, in_groups, prepare_factors, train_and_test
from unweave.utils.errors import InputError, plural

Estimator = Literal["trees", "rf", "lasso", "gbt"]
Depth = int | Sequence[int] | Literal["cv"] | None
DEPTHS = (2, 4, 8, 16)  # that depth="cv" chooses from
PENALTY = 0.02  # of the L1 norm, codes and factors standardized


class DCI(NamedTuple):
    """The three scores; 1 is best."""

    disentanglement: float
    completeness: float
    informativeness: float
    """on rows that were not trained on: accuracy of a classifier, R^2 of a regressor (not less than 0)"""


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
    ordered=("lasso",),
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
    """Is each code important for one factor (D), each factor predicted by one code (C), and predicted well (I)?

    Importances are those of a model for each factor, and which one decides the numbers: name it. `trees`, the fast
    default: 20 bagged classification trees of depth 6 that look at all codes; `gbt`: gradient boosting of classes, the
    reference library's, a hundred times slower; `rf` and `lasso`, the paper's: random forests and L1-penalized linear
    models (penalty 0.02, everything standardized) that predict the factor as a number. `depth` is for `rf`: one for all
    factors, one for each (the intervention paper has 4, 2, 4, 2, 2 for dSprites), or "cv", chosen for each factor by
    cross-validation as there for 3DShapes. `features` names codes that belong together: their importances are
    added. With `seed=None` rows are not shuffled.
    """
    c, z = prepare_factors(factors, codes)
    relevant, told = importances(c, z, estimator=estimator, depth=depth, train=train, seed=seed)
    relevant = np.stack([relevant[own].sum(0) for own in in_groups(features, z)])  # (features, k)
    return DCI(_pure(relevant), _pure(relevant.T), float(told.mean()))


def importances(
    c: PreparedFactors, z: np.ndarray, *, estimator: Estimator, depth: Depth, train: float, seed: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """How important each code is for each factor, (d, k), and how well each factor is predicted, (k,)."""
    rows = train_and_test(len(c), train, seed)
    living = alive(z)
    relevant, told = np.zeros((z.shape[1], c.count)), np.zeros(c.count)
    for j, model in enumerate(_models(estimator, depth, c.count)):
        y = c.classes[j] if is_classifier(model) else c.c[:, j]
        if living.any():
            relevant[living, j], told[j] = _predicted(model, y, j, z[:, living], rows)
        elif is_classifier(model):
            told[j] = _most_frequent(y, rows)  # and a regressor that knows nothing explains nothing
    return relevant, told


def _pure(relevant: np.ndarray) -> float:
    """One minus the entropy of each row, weighted by the row's share of all importance, (a, b) -> number."""
    if relevant.sum() <= 0:
        return 0.0
    if relevant.shape[1] == 1:
        return 1.0
    purity = 1 - entropy(relevant.T + 1e-11, base=relevant.shape[1])
    return float((purity * relevant.sum(1) / relevant.sum()).sum())


def _models(estimator: str, depth: Depth, k: int) -> list[Any]:
    """One model for each factor."""
    if depth is not None and estimator != "rf":
        raise InputError(f"depth={depth!r} is for estimator='rf', and this is {estimator!r}")
    if depth == "cv":
        return [GridSearchCV(RandomForestRegressor(random_state=0), {"max_depth": DEPTHS}, cv=3) for _ in range(k)]
    depths = [depth] * k if depth is None or isinstance(depth, int) else list(depth)
    if len(depths) != k:
        raise InputError(f"depth={depth!r} names {plural(len(depths), 'depth')} for {plural(k, 'factor')}")
    models: dict[str, Any] = {
        "trees": lambda _: RandomForestClassifier(20, max_features=None, max_depth=6, random_state=0),
        "rf": lambda most: RandomForestRegressor(max_depth=most, random_state=0),
        "lasso": lambda _: Lasso(alpha=PENALTY),
        "gbt": lambda _: GradientBoostingClassifier(random_state=0),
    }
    if estimator not in models:
        raise InputError(f"estimator={estimator!r}: expected {', '.join(map(repr, models))}")
    return [models[estimator](most) for most in depths]


def _predicted(
    model: Any, y: np.ndarray, j: int, z: np.ndarray, rows: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, float]:
    """How important each code is for a factor, (d,), and how well the factor is predicted."""
    learn, test = rows
    check_trainable(y[learn], j)
    if isinstance(model, Lasso):  # coefficients can be compared where codes and factors have one scale
        z = (z - z[learn].mean(0)) / np.where(alive(z[learn]), z[learn].std(0), np.inf)
        y = (y - y[learn].mean()) / y[learn].std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(z[learn], y[learn])
    told = max(float(model.score(z[test], y[test])), 0.0)
    best = getattr(model, "best_estimator_", model)
    return np.abs(best.coef_) if isinstance(best, Lasso) else best.feature_importances_, told


def _most_frequent(y: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> float:
    """The accuracy of always saying the most frequent class."""
    learn, test = rows
    return float(np.mean(y[test] == np.bincount(y[learn]).argmax()))
