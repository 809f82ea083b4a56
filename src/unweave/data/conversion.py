"""Users' arrays and labels as `FactorData`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.data.containers import Paired, Table
from unweave.data.core import Factor, FactorData
from unweave.data.kinds import KindName, KindSpec, check_kinds, encode_column, split_factors, warn_of_dropped
from unweave.data.lazy import DEFAULT_MEMORY, LazyTable, open_rows
from unweave.data.rows import RowReader
from unweave.data.scaling import Scale, ScaleMode, check_scalable, resolve_scale, warn_of_units
from unweave.utils.errors import InputError
from unweave.utils.row_sources import is_row_source
from unweave.utils.validation import as_array, as_classes, check_finite

EncodedFactors = Sequence[tuple[np.ndarray, Factor]]
"""Values (n,) and description of each factor."""


def as_data(
    X: Any,
    y: Any = None,
    *,
    kinds: Mapping[str, KindSpec] | None = None,
    scale: Scale = "auto",
    memory: float = DEFAULT_MEMORY,
) -> FactorData:
    """Return an array as a `Table` whose factors are the columns of y, (n,) or (n, k).

    Text in y is nominal. Numbers are ordinal if they take few values, each in at least five rows, and continuous
    otherwise. A DataFrame keeps its column names; its identifiers, dates and free text are left out with a warning.

    Anything else with `__len__` and `__getitem__` is read on demand, as a `LazyTable`: a torch `Dataset`, a Hugging
    Face dataset, an h5py or zarr array, a numpy memory map, a list of images or of their paths. Without y, labels are
    those of its items.

    Args:
        X: Observations: an array (n, d) or (n, ..., h, w), a DataFrame, what is read on demand, or data.
        y: Factors, one row per observation.
        kinds: Kinds by the name of the factor: "nominal", "ordinal", "continuous", "circular", or with the length of a
            full turn ("circular", 360).
        scale: How methods scale the columns before they learn: 'standard' (mean 0, standard deviation 1), 'robust'
            (median and interquartile range), or 'none'. 'auto' standardizes DataFrames with named columns.
        memory: Gigabytes of rows to keep in memory of what is read on demand.

    Example:
        >>> data = as_data(np.zeros((4, 3)), ["a", "b", "a", "b"])
        >>> data.factors[0].values
        ('a', 'b')
        >>> as_data(np.zeros((4, 3)), [0, 90, 180, 270], kinds={"y": ("circular", 360)}).factors[0].period
        360.0
    """
    if isinstance(X, FactorData):
        return X if scale == "auto" else _with_scale(X, resolve_scale(scale, is_table=False))
    if isinstance(X, RowReader) or is_row_source(X):
        return read_on_demand(X, None if y is None else encode_factors(y, kinds), memory)
    names = column_names(X)
    array = as_array(X)
    if array.ndim < 2:
        raise InputError(f"data of shape {array.shape}: expected one row per observation, (n, d) or (n, ..., h, w)")
    check_finite(array, names or None)
    return make_table(array, encode_factors(y, kinds), names, resolve_scale(scale, is_table=bool(names)))


def encode_factors(y: Any, kinds: Mapping[str, KindSpec] | None = None) -> EncodedFactors:
    """Return the columns of y as factors of the stated kinds, or of those that their values suggest."""
    if hasattr(y, "columns"):
        y, notes = split_factors(y.set_axis(y.columns.map(str), axis=1), kinds)
        warn_of_dropped(notes)
    columns = _columns(y)
    check_kinds(kinds, [name for name, _ in columns])
    if kinds is None and _are_probabilities(y):
        kinds = dict.fromkeys((name for name, _ in columns), "continuous")
    return [encode_column(name, column, (kinds or {}).get(name)) for name, column in columns]


def _are_probabilities(y: Any) -> bool:
    """Return whether the rows of an array of floats, (n, classes), are probabilities, which may be 0 and 1 only."""
    array: np.ndarray = np.asarray(() if y is None or hasattr(y, "columns") else y)
    is_matrix = array.dtype.kind == "f" and array.ndim == 2 and array.shape[1] > 1
    return is_matrix and bool((array >= 0).all() and np.allclose(array.sum(1), 1))


def encode_classes(y: Any) -> EncodedFactors:
    """Return the columns of y as classes, however many values they have; floats are probabilities."""
    by_type: dict[str, KindName] = {"i": "ordinal", "u": "ordinal", "f": "continuous"}
    return [encode_column(name, column, by_type.get(column.dtype.kind, "nominal")) for name, column in _columns(y)]


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of the columns of a DataFrame; () for other data, and for columns that are only numbered."""
    names = tuple(getattr(X, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else ()


def make_table(
    array: np.ndarray, encoded: EncodedFactors = (), names: Sequence[str] = (), scale: ScaleMode = "none"
) -> Table:
    """Return validated observations (n, ...) as a `Table`; warn if named columns of different units are not scaled."""
    images = array.dtype == np.uint8 and array.ndim > 2  # bytes in a table are ordinary numbers
    x = torch.from_numpy(array if images or array.dtype.kind == "f" else array.astype(np.float64))
    table = Table(x, *stack_factors(encoded, len(x)))
    table.feature_names, table.scale = tuple(names), scale
    check_scalable(table.shape, scale)
    if names and scale == "none":
        warn_of_units(array, names)
    return table


def stack_factors(encoded: EncodedFactors, n: int) -> tuple[Tensor, list[Factor]]:
    """Return the values of factors side by side, (n, k), and their descriptions."""
    c = np.stack([values for values, _ in encoded], 1) if encoded else np.zeros((n, 0))
    return torch.as_tensor(c), [factor for _, factor in encoded]


def read_on_demand(source: Any, encoded: EncodedFactors | None, memory: float = DEFAULT_MEMORY) -> Table | LazyTable:
    """Return the rows of a source, see `is_row_source`, with these factors; None: with the labels of its items."""
    rows = open_rows(source, memory)
    if encoded is None:
        labels = rows.labels() if isinstance(rows, RowReader) else None
        encoded = () if labels is None else encode_classes(labels)
    if isinstance(rows, RowReader):
        return LazyTable(rows, *stack_factors(encoded, len(rows)))
    return make_table(rows, encoded)


def _with_scale(data: FactorData, scale: ScaleMode) -> FactorData:
    """Return the same data, whose columns methods scale in another way."""
    check_scalable(data.shape, scale)
    changed = copy.copy(data)
    changed.scale = scale
    return changed


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
    labels = [] if y is None else encode_classes(as_classes(y))
    first, second = (x if isinstance(x, FactorData) else as_data(as_array(x)) for x in (X, X2))
    if isinstance(first, Table):
        names = column_names(X)
        first = make_table(first.x.numpy(), labels, names, resolve_scale("auto", is_table=bool(names)))
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
