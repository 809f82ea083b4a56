"""Users' arrays and labels as `FactorData`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unweave.data.containers import Paired, Table
from unweave.data.core import Factor, FactorData, Kind
from unweave.data.scaling import Scale, ScaleMode, check_scalable, resolve_scale, warn_of_units
from unweave.utils.errors import InputError
from unweave.utils.validation import as_array, as_classes, check_finite


def as_data(X: Any, y: Any = None, *, scale: Scale = "auto") -> FactorData:
    """Return an array as a `Table` whose factors are the columns of y, (n,) or (n, k).

    Whole numbers and text in y are classes, floats are real-valued factors. A DataFrame keeps its column names.

    Args:
        X: An array (n, d) or (n, ..., h, w), a DataFrame, or data.
        y: Labels, (n,) or (n, k).
        scale: How methods scale the columns before they learn: 'standard' (mean 0, standard deviation 1), 'robust'
            (median and interquartile range), or 'none'. 'auto' standardizes DataFrames with named columns.

    Example:
        >>> data = as_data(np.zeros((4, 3)), ["a", "b", "a", "b"])
        >>> data.factors[0].values
        ('a', 'b')
    """
    if isinstance(X, FactorData):
        return X if scale == "auto" else _with_scale(X, resolve_scale(scale, is_table=False))
    names = column_names(X)
    array = as_array(X)
    if array.ndim < 2:
        raise InputError(f"data of shape {array.shape}: expected one row per observation, (n, d) or (n, ..., h, w)")
    check_finite(array, names or None)
    return make_table(array, y, names, resolve_scale(scale, is_table=bool(names)))


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of the columns of a DataFrame; () for other data, and for columns that are only numbered."""
    names = tuple(getattr(X, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else ()


def make_table(array: np.ndarray, y: Any, names: Sequence[str], scale: ScaleMode) -> Table:
    """Return validated observations (n, ...) as a `Table`; warn if named columns of different units are not scaled."""
    images = array.dtype == np.uint8 and array.ndim > 2  # bytes in a table are ordinary numbers
    x = torch.from_numpy(array if images or array.dtype.kind == "f" else array.astype(np.float64))
    encoded = [_encode(name, column) for name, column in _columns(y)]
    c = np.stack([values for values, _ in encoded], 1) if encoded else np.zeros((len(x), 0))
    table = Table(x, torch.as_tensor(c), [factor for _, factor in encoded])
    table.feature_names, table.scale = tuple(names), scale
    check_scalable(table.shape, scale)
    if names and scale == "none":
        warn_of_units(array, names)
    return table


def _with_scale(data: FactorData, scale: ScaleMode) -> FactorData:
    """Return the same data, whose columns methods scale in another way."""
    check_scalable(data.shape, scale)
    changed = copy.copy(data)
    changed.scale = scale
    return changed


def as_pairs(X: Any, X2: Any, y: Any = None, *, changed: Any = 1) -> Paired:
    """Return pairs of observations as data: row i of X and X2, (n, ...), share all factors but `changed`.

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
    first, second = as_data(X, None if y is None else as_classes(y)), as_data(X2)
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
    paired = Paired(torch.cat([first.x, second.x]), torch.cat([first.c, first.c]), first.factors, k)
    paired.feature_names, paired.scale = first.feature_names, first.scale
    return paired


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
