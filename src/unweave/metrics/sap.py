"""Separated attribute predictability."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from unweave.metrics.contract import metric
from unweave.metrics.factors import alive, check_trainable, in_groups, prepare_factors, train_and_test
from unweave.metrics.mcc import correlations
from unweave.utils.errors import InputError, plural

Predictor = Literal["svm", "logistic", "r2"]


@metric(
    paper="Kumar, Sattigeri and Balakrishnan (2018), Sec. 3",
    variants={"svm": {"predictor": "svm"}, "logistic": {"predictor": "logistic"}, "r2": {"predictor": "r2"}},
    default=("svm", "r2"),
    ordered=("r2",),
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
    """How much better one code alone predicts a factor than the second-best code does, averaged over factors.

    `svm`: test accuracy of a linear support vector machine (C = 0.01, classes balanced), which depends on the scale of
    the codes: they are standardized unless told not to, as the reference library does. `logistic`: of a logistic
    regression (intervention paper). `r2`: squared correlation, for factors with an order, and the only one for
    continuous factors. Several of them, one for each factor: squared correlation for numbers and accuracy for classes,
    as the metric was first defined. Never compare one with another. With accuracies, 1 is out of reach: the second-best
    code still guesses right now and then. `features` names codes that belong together, each group of which predicts as
    one.
    """
    c, z = prepare_factors(factors, codes)
    groups = in_groups(features, z)
    asked = _asked(predictor, c.count)
    if "r2" in asked and any(len(g) > 1 for g in groups):
        raise InputError("sap[r2] correlates single codes with factors: for features of several use sap[logistic]")
    found = correlations(c.c, z) ** 2 if "r2" in asked else np.zeros((c.count, len(groups)))  # (k, d)
    by_class = [j for j, how in enumerate(asked) if how != "r2"]
    real = [j for j in by_class if not c.discrete[j]]
    if real:
        text = f"factor {real[0]} (counted from 0) is continuous and has no classes to predict"
        raise InputError(f"{text}: use sap[r2], in Python predictor='r2'")
    if by_class:
        z = (z - z.mean(0)) / np.where(alive(z), z.std(0), 1) if standardize else z
        rows = train_and_test(len(c), train, seed)
        found[by_class] = [_accuracies(c.classes[j], j, z, groups, rows, asked[j]) for j in by_class]
    ordered = np.sort(found, 1)
    second = ordered[:, -2] if found.shape[1] > 1 else np.zeros(len(found))
    return float(np.mean(ordered[:, -1] - second))


def _asked(predictor: Predictor | Sequence[Predictor], count: int) -> list[Predictor]:
    """One for each factor."""
    asked = [predictor] * count if isinstance(predictor, str) else list(predictor)
    wrong = [how for how in asked if how not in get_args(Predictor)]
    if wrong:
        raise InputError(f"predictor={wrong[0]!r}: expected 'svm', 'logistic' or 'r2'")
    if len(asked) != count:
        raise InputError(
            f"{plural(len(asked), 'predictor')} for {plural(count, 'factor')}: expected one for all, or each"
        )
    return asked


def _accuracies(
    y: np.ndarray,
    j: int,
    z: np.ndarray,
    groups: list[np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    predictor: str,
) -> np.ndarray:
    """The test accuracy of each code or group alone, (d,); a dead one can only say the most frequent class."""
    learn, test = rows
    check_trainable(y[learn], j)
    found = np.full(len(groups), np.mean(y[test] == np.bincount(y[learn]).argmax()))
    for i, own in enumerate(groups):
        if not alive(z[:, own]).any():
            continue
        model: Any = LogisticRegression() if predictor == "logistic" else _machine()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[i] = model.fit(z[learn][:, own], y[learn]).score(z[test][:, own], y[test])
    return found


def _machine() -> LinearSVC:
    return LinearSVC(C=0.01, class_weight="balanced", random_state=0)
