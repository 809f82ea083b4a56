"""What users have, as data: arrays, tables with named columns, and their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .checks import as_array, check_finite
from .data import Factor, FactorData, Kind, Table
from .errors import InputError


def as_data(X: Any, y: Any = None) -> FactorData:
    """What users have, as `FactorData`: an array becomes a `Table`, the columns of y (n,) or (n, k) its factors.

    Whole numbers and text in y are classes, floats are real-valued factors; a DataFrame brings its names.
    """
    if isinstance(X, FactorData):
        return X
    array = as_array(X)
    if array.ndim < 2:
        raise InputError(f"data of shape {array.shape}: wanted one row per observation, (n, d) or (n, ..., h, w)")
    check_finite(array)
    images = array.dtype == np.uint8 and array.ndim > 2  # bytes in a table are numbers like others
    x = torch.from_numpy(array if images or array.dtype.kind == "f" else array.astype(np.float64))
    coded = [_coded(name, column) for name, column in _columns(y)]
    c = np.stack([values for values, _ in coded], 1) if coded else np.zeros((len(x), 0))
    return Table(x, torch.as_tensor(c), [factor for _, factor in coded])


def _columns(y: Any) -> list[tuple[str, np.ndarray]]:
    """The columns of labels with their names: a DataFrame's own, or y1, y2, ..."""
    if y is None:
        return []
    if hasattr(y, "columns"):
        return [(str(name), y[name].to_numpy()) for name in y.columns]
    array = np.asarray(y)
    if array.ndim == 1:
        return [("y", array)]
    return [(f"y{i + 1}", column) for i, column in enumerate(array.reshape(len(array), -1).T)]


def _coded(name: str, column: np.ndarray) -> tuple[np.ndarray, Factor]:
    """Real values as they are, classes as numbers from zero, in float64, which holds both exactly."""
    if column.dtype.kind == "O" and all(isinstance(value, float | int) for value in column):
        column = column.astype(np.float64)
    if column.dtype.kind == "f":
        check_finite(column[:, None], [name], what="factor")
        return column.astype(np.float64), Factor(name)
    text = column.dtype.kind not in "iub"
    classes, index = np.unique(column.astype(str) if text else column, return_inverse=True)
    values = () if not text and np.array_equal(classes, np.arange(len(classes))) else tuple(classes.tolist())
    kind: Kind = "nominal" if text or column.dtype.kind == "b" else "ordinal"
    return index.astype(np.float64), Factor(name, len(classes), kind, values=values)
