"""Users' arrays and labels as `FactorData`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.data.containers import Paired, Table
from unweave.data.core import Factor, FactorData
from unweave.data.kinds import KindName, KindSpec, check_kinds, encode_column, split_factors, warn_of_dropped
from unweave.utils.errors import InputError
from unweave.utils.validation import as_array, as_classes, check_finite


def as_data(X: Any, y: Any = None, *, kinds: Mapping[str, KindSpec] | None = None) -> FactorData:
    """Return an array as a `Table` whose factors are the columns of y, (n,) or (n, k).

    Text in y is nominal. Numbers are ordinal if they take few values, each in at least five rows, and continuous
    otherwise. A DataFrame keeps its column names; its identifiers, dates and free text are left out with a warning.

    Args:
        X: Observations, (n, d) or (n, ..., h, w).
        y: Factors, one row per observation.
        kinds: Kinds by the name of the factor: "nominal", "ordinal", "continuous", "circular", or with the length of a
            full turn ("circular", 360).

    Example:
        >>> data = as_data(np.zeros((4, 3)), ["a", "b", "a", "b"])
        >>> data.factors[0].values
        ('a', 'b')
        >>> as_data(np.zeros((4, 3)), [0, 90, 180, 270], kinds={"y": ("circular", 360)}).factors[0].period
        360.0
    """
    if isinstance(X, FactorData):
        return X
    x = _observations(X)
    if hasattr(y, "columns"):
        y, notes = split_factors(y.set_axis(y.columns.map(str), axis=1), kinds)
        warn_of_dropped(notes)
    columns = _columns(y)
    check_kinds(kinds, [name for name, _ in columns])
    encoded = [encode_column(name, column, (kinds or {}).get(name)) for name, column in columns]
    return _table(x, encoded)


def as_labeled_data(X: Any, y: Any) -> Table:
    """Return an array as a `Table` whose factors are classes, whatever the number of their values."""
    by_type: dict[str, KindName] = {"i": "ordinal", "u": "ordinal", "f": "continuous"}  # floats are probabilities
    encoded = [encode_column(name, column, by_type.get(column.dtype.kind, "nominal")) for name, column in _columns(y)]
    return _table(_observations(X), encoded)


def _observations(X: Any) -> Tensor:
    """Return observations as a tensor: images as bytes or floats, everything else as floats."""
    array = as_array(X)
    if array.ndim < 2:
        raise InputError(f"data of shape {array.shape}: expected one row per observation, (n, d) or (n, ..., h, w)")
    check_finite(array)
    images = array.dtype == np.uint8 and array.ndim > 2  # bytes in a table are ordinary numbers
    return torch.from_numpy(array if images or array.dtype.kind == "f" else array.astype(np.float64))


def _table(x: Tensor, encoded: Sequence[tuple[np.ndarray, Factor]]) -> Table:
    c = np.stack([values for values, _ in encoded], 1) if encoded else np.zeros((len(x), 0))
    return Table(x, torch.as_tensor(c), [factor for _, factor in encoded])


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
    first: FactorData = as_data(X) if y is None else as_labeled_data(X, as_classes(y))
    second = as_data(X2)
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
