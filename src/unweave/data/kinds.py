"""Kinds of factors: which columns are classes, numbers, angles, or no factors at all, and how a user says so."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from unweave.data.core import Factor, Kind
from unweave.utils.errors import InputError, plural, unknown
from unweave.utils.validation import check_finite

MAX_CLASSES = 100  # a factor with more values is continuous
MIN_ROWS_PER_CLASS = 5  # a factor whose values are rarer is continuous
MIN_TEXT_LENGTH = 25  # mean characters of values from which different texts are sentences, not names of classes
IDENTIFIER_NAMES = re.compile(
    r"(.*[ _-])?(id|ids|uid|uuid|guid|key|index|idx|row|name|file|files|path|filename|filepath)|unnamed:? ?\d*|",
    re.IGNORECASE,
)
DATES = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([T ].*)?|\d{1,2}:\d{2}(:\d{2})?"
)

KindName = Literal["nominal", "ordinal", "continuous", "circular"]
KindSpec = KindName | tuple[Literal["circular"], float]
"""A kind as users say it: a name, or ("circular", period)."""


class ColumnRole(NamedTuple):
    """What a column of labels is: a factor, or a reason to leave it out."""

    name: str
    reason: str  # '' for a factor


def is_discrete(column: np.ndarray) -> bool:
    """Return whether a column of numbers takes few values, each in several rows; a constant shift changes nothing."""
    count = len(np.unique(column))
    return count <= 2 or (count <= MAX_CLASSES and len(column) >= MIN_ROWS_PER_CLASS * count)


def numeric_columns(table: pd.DataFrame) -> np.ndarray:
    """Return which columns of a table hold numbers or true/false, (columns,), without a look at each of them."""
    types = table.dtypes
    by_type = {dtype: pd.api.types.is_numeric_dtype(dtype) for dtype in types.unique()}
    return types.map(by_type).to_numpy(dtype=bool)


def is_identifier_name(name: str) -> bool:
    """Return whether a column is named like an identifier of rows: id, file, sample_id, ...

    >>> [is_identifier_name(name) for name in ("file", "sample_id", "age", "Unnamed: 0")]
    [True, True, False, True]
    """
    return bool(IDENTIFIER_NAMES.fullmatch(name.strip()))


def is_mostly_numeric(texts: pd.Series) -> bool:
    """Return whether a column of text holds numbers, but for a few wrong cells."""
    return bool(pd.to_numeric(texts, errors="coerce").notna().sum() * 2 > len(texts))


def reason_to_leave_out(column: pd.Series) -> str:
    """Return why a column is no factor (identifier, date, free text, constant); '' if it may be one."""
    values = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column):
        return "a date"
    if values.nunique() < 2:
        return "constant"
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_float_dtype(column):
        return ""
    is_unique = values.is_unique and len(values) > 2
    if pd.api.types.is_numeric_dtype(column):
        return "an identifier" if is_unique and is_identifier_name(str(column.name)) else ""
    texts = values.astype(str)
    if is_mostly_numeric(texts):
        return ""  # another message names the wrong cells
    if texts.str.fullmatch(DATES.pattern).all():
        return "a date"
    count = texts.nunique()
    if is_unique or (count > 2 and count * 2 > len(texts)):
        is_prose = texts.str.len().mean() >= MIN_TEXT_LENGTH and texts.str.contains(" ", regex=False).mean() > 0.5
        return "free text" if is_prose else "an identifier"
    return ""


def split_factors(table: pd.DataFrame, kinds: Mapping[str, KindSpec] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns that are factors, and a note for each that was left out; a stated kind keeps a column."""
    stated = set(kinds or {})
    roles = [
        ColumnRole(str(name), "" if str(name) in stated else reason_to_leave_out(table[name])) for name in table.columns
    ]
    notes = [f"{role.name} is {role.reason}" for role in roles if role.reason]
    return table[[role.name for role in roles if not role.reason]], notes


def kinds_from_flags(
    continuous: Sequence[str] = (),
    ordinal: Sequence[str] = (),
    nominal: Sequence[str] = (),
    circular: Sequence[str] = (),
) -> dict[str, KindSpec]:
    """Return kinds by the name of their factor, from flags; those of --circular may state a period: azimuth=360.

    >>> kinds_from_flags(continuous=["age"], circular=["azimuth=360"])
    {'age': 'continuous', 'azimuth': ('circular', 360.0)}
    """
    kinds: dict[str, KindSpec] = {}
    plain: tuple[tuple[KindName, Sequence[str]], ...] = (
        ("continuous", continuous), ("ordinal", ordinal), ("nominal", nominal),
    )  # fmt: skip
    for kind, names in plain:
        for name in names:
            _add_kind(kinds, name, kind)
    for text in circular:
        name, equals, period = text.rpartition("=") if "=" in text else (text, "", "")
        try:
            _add_kind(kinds, name, ("circular", float(period)) if equals else "circular")
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"--circular {text}: expected NAME or NAME=PERIOD, e.g. azimuth=360") from None
    return kinds


def _add_kind(kinds: dict[str, KindSpec], name: str, kind: KindSpec) -> None:
    if name in kinds:
        raise InputError(f"factor {name!r} is given two kinds, {_kind_name(kinds[name])} and {_kind_name(kind)}")
    kinds[name] = kind


def _kind_name(spec: KindSpec) -> str:
    return spec if isinstance(spec, str) else spec[0]


def check_kinds(kinds: Mapping[str, KindSpec] | None, names: Sequence[str]) -> None:
    """Raise an InputError for kinds of factors that do not exist, and for unknown kinds."""
    for name, spec in (kinds or {}).items():
        if name not in names:
            raise unknown("factor", name, names)
        if _kind_name(spec) not in ("nominal", "ordinal", "continuous", "circular"):
            raise InputError(f"factor {name!r}: kind {spec!r}; expected nominal, ordinal, continuous or circular")


def encode_column(name: str, column: np.ndarray, spec: KindSpec | None = None) -> tuple[np.ndarray, Factor]:
    """Return a column as float64, which holds real values and class numbers exactly, and its factor.

    Without a stated kind, text and true/false are nominal. Numbers are ordinal if they take few values, each in several
    rows, and real otherwise.
    """
    if column.dtype.kind == "O" and all(isinstance(value, float | int) for value in column):
        column = column.astype(np.float64)
    is_number = column.dtype.kind in "iuf"
    if is_number:
        check_finite(column[:, None], [name], what="factor")
    kind = _kind_name(spec) if spec is not None else _inferred_kind(column)
    if kind in ("continuous", "circular") and not is_number:
        raise InputError(f"factor {name!r} holds {column.dtype}, not numbers: it cannot be {kind}")
    if kind == "continuous":
        return column.astype(np.float64), Factor(name)
    classes, index = np.unique(
        column if is_number or column.dtype.kind == "b" else column.astype(str), return_inverse=True
    )
    period = _period(name, column, spec) if kind == "circular" else None
    if kind == "circular" and not is_discrete(column):
        return column.astype(np.float64), Factor(name, kind="circular", period=period)
    counted = is_number and np.array_equal(classes, np.arange(len(classes)))
    values = () if counted else tuple(classes.tolist())
    final: Kind = "ordinal" if kind == "ordinal" else "circular" if kind == "circular" else "nominal"
    return index.astype(np.float64), Factor(name, len(classes), final, values=values, period=period)


def _inferred_kind(column: np.ndarray) -> KindName:
    if column.dtype.kind not in "iuf":
        return "nominal"
    return "ordinal" if is_discrete(column) else "continuous"


def _period(name: str, column: np.ndarray, spec: KindSpec | None) -> float:
    """Return the stated period, or that of angles in radians or degrees where the values leave no doubt."""
    low, high = float(column.min()), float(column.max())
    if isinstance(spec, tuple):
        if not 0 < spec[1] < math.inf:
            raise InputError(f"factor {name!r}: period {spec[1]:g}; expected a positive number, e.g. {name}=360")
        return float(spec[1])
    if math.pi < high - low <= 2 * math.pi + 1e-6 and not np.array_equal(column, np.round(column)):
        return 2 * math.pi
    if 180 < high - low <= 360:
        return 360.0
    text = f"factor {name!r} runs from {low:g} to {high:g}: its period is unclear"
    raise InputError(f"{text}; give it with the name, e.g. {name}=360, in Python ('circular', 360)")


def hint_at_angles(factors: Sequence[Factor], c: np.ndarray, flag: str = "--circular") -> list[str]:
    """Return a hint, with the flag, for each factor that looks like degrees but is compared as an ordinary number."""
    hints = []
    for factor, column in zip(factors, c.T, strict=True):
        if factor.kind not in ("ordinal", "real") or any(isinstance(value, str) for value in factor.values):
            continue
        values = np.unique(np.asarray(factor.values)[column.astype(int)] if factor.values else column)
        step = np.diff(values).max() if len(values) > 2 else math.inf
        closes = math.isclose(values[-1] - values[0] + step, 360, rel_tol=0.02) or values[-1] - values[0] == 360
        if closes and step <= 90:
            hints.append(f"{factor.name} looks like an angle in degrees: {flag} {factor.name}=360 compares it as one")
    return hints


def warn_of_dropped(notes: Sequence[str]) -> None:
    """Warn once of all columns that were left out."""
    if notes:
        warnings.warn(f"left out: {'; '.join(notes)}", stacklevel=3)


def as_kind_list(kinds: Any, count: int) -> list[KindSpec | None]:
    """Return one kind or None per factor; a single kind is for all."""
    if kinds is None:
        return [None] * count
    every = (
        [kinds] * count
        if isinstance(kinds, str) or (isinstance(kinds, tuple) and kinds[:1] == ("circular",))
        else kinds
    )
    if len(every) != count:
        raise InputError(f"{plural(len(every), 'kind')} for {plural(count, 'factor')}: expected one for all, or each")
    return list(every)
