"""Users' arrays and labels as `FactorData`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from unweave.data.containers import Paired, Table
from unweave.data.core import Factor, FactorData, Kind
from unweave.data.lazy import DEFAULT_MEMORY, LazyTable, open_rows
from unweave.data.rows import RowReader
from unweave.utils.errors import InputError
from unweave.utils.validation import as_array, as_classes, check_finite, is_row_source


def as_data(X: Any, y: Any = None, *, memory: float = DEFAULT_MEMORY) -> FactorData:
    """Return an array as a `Table` whose factors are the columns of y, (n,) or (n, k).

    Whole numbers and text in y are classes, floats are real-valued factors. A DataFrame keeps its column names.
    Anything else with `__len__` and `__getitem__` is read on demand, as a `LazyTable`: a torch `Dataset`, a Hugging
    Face dataset, an h5py or zarr array, a numpy memory map, a list of images or of their paths. Without y, labels are
    those of its items. Rows that were read stay in memory, up to `memory` gigabytes.

    Example:
        >>> data = as_data(np.zeros((4, 3)), ["a", "b", "a", "b"])
        >>> data.factors[0].values
        ('a', 'b')
    """
    if isinstance(X, FactorData):
        return X
    if isinstance(X, RowReader) or is_row_source(X):
        rows = open_rows(X, memory)
        if isinstance(rows, RowReader):
            labels = rows.labels() if y is None else y
            return LazyTable(rows, *_encode_labels(labels, len(rows)))
        X = rows
    return _as_table(X, y)


def open_observations(source: Any) -> FactorData:
    """Return a source of rows that are read on demand as data without labels, which need not be read."""
    return as_data(source, pd.DataFrame())


def _as_table(X: Any, y: Any = None) -> Table:
    """Return an array in memory as a table."""
    array = as_array(X)
    if array.ndim < 2:
        raise InputError(f"data of shape {array.shape}: expected one row per observation, (n, d) or (n, ..., h, w)")
    check_finite(array)
    images = array.dtype == np.uint8 and array.ndim > 2  # bytes in a table are ordinary numbers
    x = torch.from_numpy(array if images or array.dtype.kind == "f" else array.astype(np.float64))
    return Table(x, *_encode_labels(y, len(x)))


def _encode_labels(y: Any, n: int) -> tuple[Tensor, list[Factor]]:
    """Return the labels of n rows as numbers, (n, k), and their factors."""
    encoded = [_encode(name, column) for name, column in _columns(y)]
    c = np.stack([values for values, _ in encoded], 1) if encoded else np.zeros((n, 0))
    return torch.as_tensor(c), [factor for _, factor in encoded]


def as_pairs(X: Any, X2: Any, y: Any = None, *, changed: Any = 1) -> Paired:
    """Return pairs of observations as data: row i of X and X2, (n, ...), share all factors but `changed`.

    Both are read into memory, memory maps too.

    Args:
        X: First observations.
        X2: Second observations.
        y: Class that both observations of a pair share.
        changed: Number of factors that differ, one for all pairs or one for each, (n,).

    Example:
        >>> pairs = as_pairs(np.zeros((4, 3)), np.ones((4, 3)), changed=2)
        >>> len(pairs)
        8
    """
    labels = None if y is None else as_classes(y)
    first, second = (x if isinstance(x, FactorData) else _as_table(x, c) for x, c in ((X, labels), (X2, None)))
    try:
        count = np.atleast_1d(np.asarray(changed))
    except ValueError:  # lists of unequal lengths
        count = np.array([np.nan])
    if not isinstance(first, Table) or not isinstance(second, Table):
        raise InputError("pairs are built from arrays; data with factors of their own draw pairs themselves")
    if len(first) != len(second) or first.shape != second.shape:
        shapes = f"{tuple(first.x.shape)} and {tuple(second.x.shape)}"
        raise InputError(f"pairs of unequal length or shape, {shapes}: expected one observation of each for every pair")
    if (first.x.dtype == torch.uint8) != (second.x.dtype == torch.uint8):
        raise InputError(f"pairs of {first.x.dtype} and {second.x.dtype}: bytes run to 255; expected the same in both")
    if count.dtype.kind not in "iu" or (count < 1).any() or count.shape not in ((1,), (len(first),)):
        text = f"changed={changed!r}" if count.shape == (1,) else f"changed of shape {count.shape}"
        raise InputError(f"{text}: expected how many factors differ, one integer or one for each pair")
    k = torch.as_tensor(np.broadcast_to(count, (len(first),)).astype(np.int64))
    return Paired(torch.cat([first.x, second.x]), torch.cat([first.c, first.c]), first.factors, k)


def _columns(y: Any) -> list[tuple[str, np.ndarray]]:
    """Return the columns of labels with their names: those of a DataFrame, or y1, y2, ..."""
    if y is None:
        return []
    if hasattr(y, "columns"):
        return [(str(name), y[name].to_numpy()) for name in y.columns]
    array = np.asarray(y)
    if array.ndim == 1:
        return [("y", array)]
    return [(f"y{i + 1}", column) for i, column in enumerate(array.reshape(len(array), -1).T)]


def _encode(name: str, column: np.ndarray) -> tuple[np.ndarray, Factor]:
    """Return a column as float64, which holds real values and class numbers exactly, and its factor."""
    if column.dtype.kind == "O" and all(isinstance(value, float | int) for value in column):
        column = column.astype(np.float64)
    if column.dtype.kind == "f":
        check_finite(column[:, None], [name], what="factor")
        return column.astype(np.float64), Factor(name)
    text = column.dtype.kind not in "iub"
    classes, index = np.unique(column.astype(str) if text else column, return_inverse=True)
    counted = column.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
    values = () if counted else tuple(classes.tolist())
    kind: Kind = "nominal" if text or column.dtype.kind == "b" else "ordinal"
    return index.astype(np.float64), Factor(name, len(classes), kind, values=values)
