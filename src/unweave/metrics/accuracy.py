"""How right a classifier is, on average and in the group where it is worst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unweave.metrics.contract import metric
from unweave.utils.errors import InputError, plural


@metric(paper="Sagawa, Koh, Hashimoto and Liang (2020), Sec. 2", truth="labels")
def average_accuracy(labels: Any, predictions: Any, groups: Any = None) -> float:
    """The share of right predictions, over all samples, whatever their group."""
    return float(np.mean(_right(labels, predictions)))


@metric(paper="Sagawa, Koh, Hashimoto and Liang (2020), Sec. 2", truth="labels")
def worst_group_accuracy(labels: Any, predictions: Any, groups: Any = None) -> float:
    """The share of right predictions in the group where it is least.

    `groups`, (n,) or (n, columns), says which group each sample is in: equal rows are one group, e.g. of class and
    nuisance. Without them each class is a group.
    """
    right = _right(labels, predictions)
    table = pd.DataFrame(labels if groups is None else groups)
    if len(table) != len(right):
        raise InputError(f"{plural(len(table), 'row')} of groups and {plural(len(right), 'label')}: want the same")
    return float(pd.Series(right).groupby([table[c].to_numpy() for c in table], dropna=False).mean().min())


def _right(labels: Any, predictions: Any) -> np.ndarray:
    y, guess = np.asarray(labels), np.asarray(predictions)
    if guess.ndim == 2 and y.ndim == 1:
        raise InputError(f"predictions of shape {guess.shape}: expected one class per sample; take the argmax first")
    if y.shape != guess.shape or y.ndim != 1 or not len(y):
        raise InputError(f"labels of shape {y.shape} and predictions of shape {guess.shape}: expected (n,) both")
    return y == guess
