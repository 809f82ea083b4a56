"""Accuracy of a classifier: over all samples, and in its worst group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unweave.metrics.contract import metric
from unweave.utils.errors import InputError, plural


@metric(paper="Sagawa, Koh, Hashimoto and Liang (2020), Sec. 2", truth="labels")
def average_accuracy(labels: Any, predictions: Any, groups: Any = None) -> float:
    """Share of correct predictions over all samples (Sagawa et al., 2020, Sec. 2).

    Args:
        labels: True classes, (n,).
        predictions: Predicted classes, (n,).
        groups: Ignored, so that both accuracies can be called alike.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> average_accuracy([0, 0, 1, 1], [0, 0, 1, 0])
        0.75
    """
    return float(np.mean(_is_correct(labels, predictions)))


@metric(paper="Sagawa, Koh, Hashimoto and Liang (2020), Sec. 2", truth="labels")
def worst_group_accuracy(labels: Any, predictions: Any, groups: Any = None) -> float:
    """Share of correct predictions in the group where it is lowest (Sagawa et al., 2020, Sec. 2).

    Args:
        labels: True classes, (n,).
        predictions: Predicted classes, (n,).
        groups: Group of each sample, (n,) or (n, columns): equal rows are one group, e.g. of class and nuisance.
            Without it each class is a group.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> worst_group_accuracy([0, 0, 1, 1], [0, 0, 1, 0])
        0.5
    """
    correct = _is_correct(labels, predictions)
    table = pd.DataFrame(labels if groups is None else groups)
    if len(table) != len(correct):
        raise InputError(
            f"{plural(len(table), 'row')} of groups and {plural(len(correct), 'label')}: expected the same"
        )
    return float(pd.Series(correct).groupby([table[c].to_numpy() for c in table], dropna=False).mean().min())


def _is_correct(labels: Any, predictions: Any) -> np.ndarray:
    """Return whether each prediction is correct, (n,)."""
    y, guess = np.asarray(labels), np.asarray(predictions)
    if guess.ndim == 2 and y.ndim == 1:
        raise InputError(f"predictions of shape {guess.shape}: expected one class per sample; take the argmax first")
    if y.shape != guess.shape or y.ndim != 1 or not len(y):
        raise InputError(f"labels of shape {y.shape} and predictions of shape {guess.shape}: expected (n,) both")
    return y == guess
