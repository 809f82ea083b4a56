"""Checks of a user's own observations: constant columns, columns that count the rows, rows that are read on demand."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unweave.data.rows import RowReader
from unweave.utils.errors import InputError, constant_data_error, plural

MAX_CHECKED_BYTES = 2**26  # of rows that are read at a time, before training


def check_rows(path: Path, reader: RowReader, *, drop: bool) -> None:
    """Read all rows once, in parts, if some may be not finite or some columns constant."""
    if reader.dtype == np.uint8:
        return
    constant = np.ones(reader.shape, dtype=bool)
    first = reader.read(np.array([0]))
    for rows in np.array_split(np.arange(len(reader)), max(1, reader.size_in_bytes() // MAX_CHECKED_BYTES)):
        constant &= (reader.read(rows) == first).all(0)
    if constant.ndim == 1:
        check_constants(path, constant, [f"column {i}" for i in range(len(constant))], drop=drop)
        if constant.any():
            text = f"{path} is read on demand, which leaves no column out"
            raise InputError(f"{text}: remove the constant ones, or raise --data.memory")


def check_constants(path: Path, constant: np.ndarray, names: list[str], *, drop: bool) -> None:
    """Raise an error that names the constant columns, (columns,), unless some are left and they may be dropped."""
    which = ", ".join(repr(names[i]) for i in np.flatnonzero(constant)[:5])
    which += f" and {constant.sum() - 5} more" if constant.sum() > 5 else ""
    if constant.all():
        raise constant_data_error(f"{path}", f" ({which})")
    if constant.any() and not drop:
        count = int(constant.sum())
        change, them = ("changes", "it") if count == 1 else ("change", "them")
        text = f"{plural(count, 'column')} of {path} never {change}: {which}"
        raise InputError(f"{text}. Remove {them}, or drop {them}: --data.drop-constant")


def warn_of_counters(path: Path, x: np.ndarray, names: Sequence[str]) -> None:
    """Warn of columns of x, (n, columns), that only count the rows: they carry no information and distort distances."""
    if len(x) <= 10:
        return
    candidates = np.flatnonzero(x[1] - x[0] == 1)
    for j in candidates[(np.diff(x[:, candidates], axis=0) == 1).all(0)]:
        warnings.warn(
            f"column {names[j]!r} of {path} only counts the rows, and the method learns from it; if it is not a "
            "measurement, name the columns to use: --data.columns A B ...",
            stacklevel=2,
        )
