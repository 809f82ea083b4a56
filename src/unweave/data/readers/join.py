"""Match the rows of two tables by identifiers: names of files or columns of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pandas as pd

from unweave.data.kinds import is_identifier_name, is_mostly_numeric
from unweave.utils.errors import InputError, plural

MIN_SHARE = 0.5  # of rows that must match before columns of different names count as the same key
MAX_NAMED = 3  # rows without a partner that a message names


class Matching(NamedTuple):
    """Rows of two tables that belong together."""

    left: np.ndarray  # (m,): row numbers, ascending
    right: np.ndarray  # (m,): row numbers of their partners
    rule: str  # how names were compared, '' for equal ones


class Join(NamedTuple):
    """Matched rows, how they were matched, and whether the reader should look at it twice."""

    left: np.ndarray
    right: np.ndarray
    note: str
    is_doubtful: bool


def _as_path(name: str) -> PurePosixPath:
    return PurePosixPath(name.strip().replace("\\", "/"))


def _without_suffix(path: PurePosixPath) -> str:
    """Return a path without the extension of its file; a number such as 1.5 is no extension."""
    return str(path.with_suffix("")) if re.fullmatch(r"\.[A-Za-z][A-Za-z0-9]*", path.suffix) else str(path)


def _as_number(name: str) -> str:
    stem = _without_suffix(PurePosixPath(_as_path(name).name))
    return str(int(float(stem))) if re.fullmatch(r"\d+(\.0*)?", stem) else stem


RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", lambda name: str(_as_path(name))),
    ("without extension", lambda name: _without_suffix(_as_path(name))),
    ("without folder", lambda name: _as_path(name).name),
    ("without folder and extension", lambda name: _without_suffix(PurePosixPath(_as_path(name).name))),
    ("without folder, extension and case", lambda name: _without_suffix(PurePosixPath(_as_path(name).name)).lower()),
    ("as numbers", _as_number),
)


def match_names(left: Sequence[str], right: Sequence[str]) -> Matching | None:
    """Return the rows whose names agree under the strictest rule that matches most; None if none does.

    A rule under which two rows of one side have the same name is not used.

    >>> match_names(["a/1.png", "a/2.png"], ["2", "1", "3"]).right.tolist()
    [1, 0]
    """
    best: Matching | None = None
    for rule, normalize in RULES:
        names, others = [normalize(str(n)) for n in left], [normalize(str(n)) for n in right]
        places = {name: i for i, name in enumerate(others)}
        if len(places) < len(others) or len(set(names)) < len(names):
            continue
        rows = np.array([i for i, name in enumerate(names) if name in places], dtype=np.int64)
        if len(rows) and (best is None or len(rows) > len(best.left)):
            best = Matching(rows, np.array([places[names[i]] for i in rows], dtype=np.int64), rule)
    return best


def key_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that may identify rows: text with a different value in (nearly) every row, and whole ids."""
    names = []
    for name, dtype in zip(table.columns, table.dtypes, strict=True):  # there may be 100,000
        if dtype.kind in "fbMc":
            continue
        is_key = is_identifier_name(str(name))
        if not is_key and dtype.kind not in "iu":
            column = table[name]
            is_key = column.nunique() * 2 > len(column) and not is_mostly_numeric(column)
        if is_key:
            names.append(name)
    return table[names].astype(str) if names else pd.DataFrame(index=table.index)


def join_rows(left: pd.DataFrame, right: pd.DataFrame, what: tuple[str, str], counts: tuple[int, int]) -> Join:
    """Match the rows of two tables by their key columns; by position only where they have no key in common.

    Args:
        left: Key columns of the first table.
        right: Key columns of the second one.
        what: What the rows are, for messages: ("codes.csv", "factors.csv").
        counts: Numbers of rows.
    """
    pairs = _shared_keys(left, right)
    matches = [(a, b, match_names(left[a].tolist(), right[b].tolist())) for a, b in pairs]
    by_name = [(a, b, m) for a, b, m in matches if m is not None]
    same = [(a, b, m) for a, b, m in by_name if a.lower() == b.lower()]
    enough = [(a, b, m) for a, b, m in by_name if len(m.left) >= MIN_SHARE * counts[0]]
    candidates = same or enough
    if candidates:
        a, b, matching = max(candidates, key=lambda entry: len(entry[2].left))
        return _describe_join(a, b, matching, (left[a], right[b]), what)
    common = [(a, b) for a, b in pairs if a.lower() == b.lower()]
    if len(common) > 1:
        joined = [keys[[pair[i] for pair in common]].agg("\t".join, axis=1) for i, keys in enumerate((left, right))]
        matching_all = match_names(joined[0].tolist(), joined[1].tolist())
        if matching_all is not None:
            name = " and ".join(a for a, _ in common)
            return _describe_join(name, name, matching_all, (joined[0], joined[1]), what)
    if common:
        raise _unmatched_keys(*common[0], left, right, what)
    return _join_by_position(left, right, what, counts)


def _shared_keys(left: pd.DataFrame, right: pd.DataFrame) -> list[tuple[str, str]]:
    """Return pairs of columns that may hold the same key: those of the same name first."""
    pairs = [(str(a), str(b)) for a in left.columns for b in right.columns]
    return sorted(pairs, key=lambda pair: pair[0].lower() != pair[1].lower())


def _describe_join(
    a: str, b: str, matching: Matching, keys: tuple[pd.Series, pd.Series], what: tuple[str, str]
) -> Join:
    by = f"`{a}`" if a == b else f"`{a}` and `{b}`"
    note = f"{plural(len(matching.left), 'row')} matched by {by}" + (f" ({matching.rule})" if matching.rule else "")
    rests = [np.setdiff1d(np.arange(len(column)), rows) for column, rows in zip(keys, matching[:2], strict=True)]
    for name, rest, column in zip(what, rests, keys, strict=True):
        if len(rest):
            shown = ", ".join(column.iloc[rest[:MAX_NAMED]]) + (", ..." if len(rest) > MAX_NAMED else "")
            note += f"; {plural(len(rest), 'row')} of {name} without a partner left out ({shown})"
    return Join(matching.left, matching.right, note, is_doubtful=bool(len(rests[0])))


def _unmatched_keys(a: str, b: str, left: pd.DataFrame, right: pd.DataFrame, what: tuple[str, str]) -> InputError:
    for name, column in zip(what, (left[a], right[b]), strict=True):
        if column.duplicated().any():
            value = column[column.duplicated()].iloc[0]
            text = f"column {column.name!r} of {name} has {value!r} more than once: rows cannot be matched by it"
            return InputError(f"{text}. Make it unique, or rename it in one of the files to match rows by position")
    examples = f"{left[a].iloc[0]!r} and {right[b].iloc[0]!r}"
    text = f"{what[0]} and {what[1]} both have a column {a!r}, but no row has the same value in both (e.g. {examples})"
    return InputError(f"{text}. Correct the names, or rename the column in one file to match rows by position")


def _join_by_position(left: pd.DataFrame, right: pd.DataFrame, what: tuple[str, str], counts: tuple[int, int]) -> Join:
    if counts[0] != counts[1]:
        text = f"{plural(counts[0], 'row')} of {what[0]} and {plural(counts[1], 'row')} of {what[1]}"
        if not len(left.columns) and not len(right.columns):
            raise InputError(f"{text}: expected the same rows in both, one per sample (are the axes swapped?)")
        raise InputError(
            f"{text}, and no column names the rows of both: expected the same rows, or a key such as `file`"
        )
    rows = np.arange(counts[0])
    named = [name for name, keys in zip(what, (left, right), strict=True) if len(keys.columns)]
    note = f"{plural(counts[0], 'row')} matched by position"
    if len(named) == 1:
        keys = left if len(left.columns) else right
        note += f", since only {named[0]} names its rows (`{keys.columns[0]}`): check that the order is the same"
    elif len(named) == 2:
        note += (
            f": the keys `{left.columns[0]}` and `{right.columns[0]}` do not agree. Check that the order is the same"
        )
    return Join(rows, rows, note, is_doubtful=bool(named))
