"""Conditions on the columns of a table, as users write them: azimuth > 50 and lab == "B"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from unweave.utils.errors import InputError, unknown

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq,
}  # fmt: skip
CLAUSE = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>==|!=|<=|>=|<|>|=)\s*(?P<value>.+?)\s*")


def rows_where(table: pd.DataFrame, condition: str) -> np.ndarray:
    """Return which rows meet a condition, (n,): comparisons of a column with a value, joined by `and` or `or`.

    >>> rows_where(pd.DataFrame({"age": [20, 40, 60], "lab": ["A", "B", "B"]}), "age > 30 and lab == B").tolist()
    [False, True, True]
    """
    alternatives = [re.split(r"\band\b", part) for part in re.split(r"\bor\b", condition)]
    masks = [np.all([_compare(table, clause, condition) for clause in clauses], axis=0) for clauses in alternatives]
    return np.asarray(np.any(masks, axis=0))


def _compare(table: pd.DataFrame, clause: str, condition: str) -> np.ndarray:
    match = CLAUSE.fullmatch(clause)
    if match is None:
        raise InputError(f'condition {condition!r}: expected comparisons such as "azimuth > 50 and lab == B"')
    name, value = match["name"].strip("`\"'"), match["value"].strip("\"'")
    if name not in table.columns:
        raise unknown("column", name, map(str, table.columns))
    column = table[name]
    compare = COMPARISONS[match["sign"]]
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        if match["sign"] not in ("==", "!=", "="):
            raise InputError(f"condition {condition!r}: {name} holds text; expected == or !=")
        return np.asarray(compare(column.astype(str), value))
    try:
        return np.asarray(compare(column, float(value)))
    except ValueError:
        raise InputError(f"condition {condition!r}: {name} holds numbers, and {value!r} is none") from None
