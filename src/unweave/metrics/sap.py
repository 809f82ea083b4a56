"""Separated attribute predictability (SAP)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from unweave.metrics.contract import ORDERED, metric
from unweave.metrics.factors import active_codes, check_trainable, group_columns, prepare_factors, train_test_rows
from unweave.metrics.mcc import associations
from unweave.utils.errors import InputError, plural

Predictor = Literal["svm", "logistic", "r2", "mixed"]
SVM: dict[str, Any] = {"C": 0.01, "class_weight": "balanced", "random_state": 0}


@metric(
    paper="Kumar, Sattigeri and Balakrishnan (2018), Sec. 3",
    variants={
        "svm": {"predictor": "svm"},
        "svm-raw": {"predictor": "svm", "standardize": False},
        "logistic": {"predictor": "logistic"},
        "r2": {"predictor": "r2"},
        "mixed": {"predictor": "mixed"},
    },
    default=("svm", "r2"),
    kinds={"r2": ORDERED},
)
def sap(
    factors: Any,
    codes: Any,
    *,
    predictor: Predictor | Sequence[Predictor] = "svm",
    standardize: bool = True,
    features: Sequence[Sequence[int]] | None = None,
    train: float = 2 / 3,
    seed: int | None = 0,
) -> float:
    """Gap in prediction between the two best codes of a factor, averaged over factors (Kumar et al., 2018, Sec. 3).

    Each code predicts a factor alone. Values of different predictors cannot be compared. With accuracies, 1 is out of
    reach, since the second-best code guesses correctly now and then. Independent codes score near 0.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        predictor: `svm`: test accuracy of a linear support vector machine (C = 0.01, classes balanced). `logistic`: of
            a logistic regression. `r2`: squared correlation, for factors with an order, and the only one for
            continuous factors; angles are compared as in `mcc`. `mixed`: as the metric was first defined, `svm` for
            factors without an order and `r2` for the others. A sequence names one for each factor.
        standardize: Standardize the codes for `svm` and `logistic`; the reference library does not.
        features: Groups of codes that belong together; each predicts as one.
        train: Share of the rows to train on.
        seed: Seed of the split; None splits the rows in order.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(100, 2))
        >>> round(sap(factors, factors, predictor="r2"), 2)
        1.0
    """
    c, z = prepare_factors(factors, codes)
    groups = group_columns(features, z)
    predictors = _predictor_per_factor(predictor, c.nominal)
    if "r2" in predictors and any(len(g) > 1 for g in groups):
        raise InputError("sap[r2] correlates single codes with factors: for features of several use sap[logistic]")
    scores = associations(c, z) ** 2 if "r2" in predictors else np.zeros((c.count, len(groups)))  # (k, d)
    by_class = [j for j, name in enumerate(predictors) if name != "r2"]
    continuous = [j for j in by_class if not c.discrete[j]]
    if continuous:
        text = f"factor {continuous[0]} (counted from 0) is continuous and has no classes to predict"
        raise InputError(f"{text}: use sap[r2], in Python predictor='r2'")
    if by_class:
        z = (z - z.mean(0)) / np.where(active_codes(z), z.std(0), 1) if standardize else z
        rows = train_test_rows(len(c), train, seed)
        scores[by_class] = [_accuracies(c.classes[j], j, z, groups, rows, predictors[j]) for j in by_class]
    ordered = np.sort(scores, 1)
    second = ordered[:, -2] if scores.shape[1] > 1 else np.zeros(len(scores))
    return float(np.mean(ordered[:, -1] - second))


def _predictor_per_factor(predictor: Predictor | Sequence[Predictor], nominal: Sequence[bool]) -> list[Predictor]:
    predictors = [predictor] * len(nominal) if isinstance(predictor, str) else list(predictor)
    wrong = [name for name in predictors if name not in get_args(Predictor)]
    if wrong:
        raise InputError(f"predictor={wrong[0]!r}: expected 'svm', 'logistic', 'r2' or 'mixed'")
    if len(predictors) != len(nominal):
        text = f"{plural(len(predictors), 'predictor')} for {plural(len(nominal), 'factor')}"
        raise InputError(f"{text}: expected one for all, or each")
    by_kind: dict[bool, Predictor] = {True: "svm", False: "r2"}
    return [by_kind[is_nominal] if p == "mixed" else p for p, is_nominal in zip(predictors, nominal, strict=True)]


def _accuracies(
    y: np.ndarray,
    j: int,
    z: np.ndarray,
    groups: list[np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    predictor: str,
) -> np.ndarray:
    """Return the test accuracy of each group of codes alone, (d,); a constant one predicts the most frequent class."""
    fit, test = rows
    check_trainable(y[fit], j)
    accuracy = np.full(len(groups), np.mean(y[test] == np.bincount(y[fit]).argmax()))
    for i, own in enumerate(groups):
        if not active_codes(z[:, own]).any():
            continue
        model: Any = LogisticRegression() if predictor == "logistic" else LinearSVC(**SVM)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            accuracy[i] = model.fit(z[fit][:, own], y[fit]).score(z[test][:, own], y[test])
    return accuracy
