"""Read codes from any tool, and the true factors to compare them with; rows are matched by keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from unweave.data.containers import Table
from unweave.data.conversion import as_data
from unweave.data.kinds import KindSpec, check_kinds, hint_at_angles, split_factors
from unweave.data.readers.arrays import check_labels, load_array, open_arrays, read_member
from unweave.data.readers.files import read_data
from unweave.data.readers.images import image_files
from unweave.data.readers.join import join_rows, key_columns
from unweave.data.readers.tables import TABLE_FORMATS, check_gaps, read_table, split_table
from unweave.data.rows import RowReader
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import as_array, check_finite


class Codes(NamedTuple):
    """Codes with the identifiers of their rows."""

    values: np.ndarray  # (n, d)
    keys: pd.DataFrame  # (n, any number of columns): text
    source: str  # name of the file, for messages


class ComparedFactors(NamedTuple):
    """Factors beside the codes that they belong to, row by row, and notes on how they were brought together."""

    codes: np.ndarray  # (n, d)
    keys: pd.DataFrame  # identifiers of the rows
    data: Table  # its factors and their values c (n, k); the observations are empty
    notes: list[str]
    warnings: list[str]


def read_codes(path: Path, factor_names: Sequence[str] = ()) -> Codes:
    """Return the codes in a file, and columns that identify its rows.

    Columns that the file shares with the factors are not codes: they would be compared with themselves.
    """
    if path.suffix.lower() in TABLE_FORMATS:
        table = read_table(path)
        keys = key_columns(table)
        rest = table.drop(columns=[*keys.columns, *(n for n in factor_names if n in table.columns and n not in keys)])
        if not len(rest.columns):  # numbers that are all named like identifiers
            rest, keys = table, table[[]]
        text = [str(n) for n, kind in rest.dtypes.items() if kind.kind not in "fiu"]
        if text:
            raise InputError(f"column {text[0]!r} of {path} holds text, not numbers: codes must be numbers")
        codes = split_table(path, rest, (), ())[0].to_numpy(np.float64)
        check_finite(codes, what=str(path))
        return Codes(codes, keys, path.name)
    codes = as_array(load_array(path), str(path)) if path.suffix.lower() == ".npy" else _in_memory(path)
    if codes.ndim not in (1, 2):
        raise InputError(f"{path} has shape {codes.shape}: expected (rows,) or (rows, columns)")
    check_finite(codes, what=str(path))
    codes = codes[:, None] if codes.ndim == 1 else codes
    return Codes(codes, pd.DataFrame(index=range(len(codes))), path.name)


def read_factors(path: Path) -> pd.DataFrame:
    """Return all columns of a file of true factors, identifiers included; classes may be numbers or names."""
    if path.suffix.lower() in TABLE_FORMATS:
        table = read_table(path)
        if len(table) < 2:
            raise InputError(f"{path} has {plural(len(table), 'row')} of data; at least two are needed")
        return table
    if path.suffix.lower() == ".npz":
        with open_arrays(path) as arrays:
            named = "factors" if "factors" in arrays.files else arrays.files[0] if len(arrays.files) == 1 else None
            if named is None:
                names = ", ".join(arrays.files) or "nothing"
                raise InputError(f"{path} holds {names}: save the factors as one array named 'factors'")
            return pd.DataFrame(check_labels(path, named, read_member(path, arrays, named))).add_prefix("factor")
    return pd.DataFrame(read_codes(path).values).add_prefix("factor")


def read_inputs(path: Path) -> Codes:
    """Return observations (n, ...) with the identifiers of their rows, for metrics that need no factors."""
    x = _in_memory(path)
    keys = pd.DataFrame(index=range(len(x)))
    if path.is_dir():
        keys = pd.DataFrame({"file": [p.relative_to(path).as_posix() for p in image_files(path)]})
    return Codes(x, keys, path.name)


def _in_memory(path: Path) -> np.ndarray:
    """Return the observations of a file or folder as an array."""
    x, _ = read_data(path)
    assert not isinstance(x, RowReader)  # without a limit, everything is read
    return x.to_numpy(np.float64) if isinstance(x, pd.DataFrame) else x


def compare_factors(codes: Codes, path: Path, kinds: Mapping[str, KindSpec] | None = None) -> ComparedFactors:
    """Return the factors in a file beside the codes: rows matched by a key that both have, else by position."""
    table = read_factors(path)
    table.columns = table.columns.map(str)
    join = join_rows(codes.keys, key_columns(table), (codes.source, path.name), (len(codes.values), len(table)))
    check_kinds(kinds, list(table.columns))
    factors, dropped = split_factors(table.iloc[join.right].reset_index(drop=True), kinds)
    if not len(factors.columns):
        raise InputError(f"{path} has no factors: {'; '.join(dropped)}")
    for name in factors.columns:
        check_gaps(path, factors[name])
    data = as_data(np.zeros((len(factors), 1)), factors, kinds=kinds)
    assert isinstance(data, Table)
    notes = [] if join.is_doubtful else [f"rows: {join.note}"]
    notes.append("factors: " + ", ".join(factor.summary() for factor in data.factors))
    notes += [f"left out: {'; '.join(dropped)}"] if dropped else []
    notes += hint_at_angles(data.factors, data.c.numpy())
    doubts = [f"rows: {join.note}"] if join.is_doubtful else []
    keys = codes.keys.iloc[join.left].reset_index(drop=True)
    return ComparedFactors(codes.values[join.left], keys, data, notes, doubts)
