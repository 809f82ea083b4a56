"""Read tables: .csv, .tsv, .txt and .parquet."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.utils.errors import InputError, plural, unknown
from unweave.utils.tables import map_text, restore_text

TABLE_FORMATS = {".csv", ".tsv", ".txt", ".parquet"}


def read_table(path: Path) -> pd.DataFrame:
    """Return a table as a DataFrame; separator, decimal comma and a missing header are detected."""
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\r\n") for line in itertools.islice(file, 50)]
        layout = _layout(path, lines)
        # The C parser fills short rows with NaN, which is reported later with its position.
        table = pd.read_csv(path, **layout, index_col=False, encoding="utf-8-sig", skipinitialspace=True)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({error}): save it again with that encoding") from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    except Exception as error:  # pyarrow raises many types; all mean that the file is not what its suffix says
        raise InputError(f"{path} cannot be read: {error}. It is truncated, or its suffix is wrong") from error
    table.columns = [f"column {i}" if layout["header"] is None else str(name) for i, name in enumerate(table.columns)]
    return map_text(table, restore_text)  # our own files: formulas are neutralized in them


def _layout(path: Path, lines: list[str]) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` that fit the first lines: separator, decimal sign and header."""
    if not lines:
        raise InputError(f"{path} cannot be read as a table: it is empty")
    separator = next((s for s in "\t;" if s in lines[0]), ",")
    head, *body = ([cell.strip().strip('"') for cell in line.split(separator)] for line in lines if line.strip())
    comma = separator != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for row in (head, *body) for cell in row)
    quoted = any('"' in line for line in lines)  # a separator inside quotes does not count
    if body and len(body[0]) > len(head) and not quoted:
        raise InputError(f"{path} names {len(head)} columns, and its first row has {len(body[0])} values")
    header = None if _is_data(head, body) else 0
    names = [restore_text(name.strip()) for name in next(csv.reader([lines[0]], delimiter=separator))]
    twice = [name for name in names if names.count(name) > 1 and name]
    if header == 0 and twice:
        raise InputError(f"{path} has several columns named {twice[0]!r}: rename one")
    return {"sep": separator, "decimal": "," if comma else ".", "header": header}


def _is_data(head: list[str], body: list[list[str]]) -> bool:
    """Return whether the first line holds values, not names.

    Whole numbers are names if they count (1, 2, 3) or if the values below are fractions.
    """
    if not all(_is_number(cell) for cell in head):
        return False
    if not all(cell.isdigit() for cell in head) or len(set(head)) < len(head):
        return True
    numbers = [int(cell) for cell in head]
    counting = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return not counting and all(cell.lstrip("-").isdigit() for row in body for cell in row)


def _is_number(text: str) -> bool:
    """Return whether a cell holds a number; a decimal comma is allowed."""
    return bool(re.fullmatch(r"[-+]?(\d+[.,]?\d*|\.\d+)([eE][-+]?\d+)?|nan|inf", text, re.IGNORECASE))


def split_table(
    path: Path, table: pd.DataFrame, factors: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the columns to learn from, which must be numeric, and the columns of factors, which may be anything."""
    if len(table) < 2:
        raise InputError(f"{path} has {plural(len(table), 'row')} of data; at least two are needed")
    for name in (*factors, *columns):
        if name not in table.columns:
            raise unknown(f"column of {path.name}", name, [str(c) for c in table.columns])
        if (*factors, *columns).count(name) > 1:
            raise InputError(f"column {name!r} of {path} is named more than once in --data.factors and --data.columns")
    labels = table[list(factors)]
    for name in factors:
        check_gaps(path, labels[name])
    x = table[list(columns)] if columns else table.drop(columns=list(factors))
    for name in x.columns:
        if not pd.api.types.is_numeric_dtype(x[name]) or pd.api.types.is_bool_dtype(x[name]):
            raise InputError(_describe_text_column(path, x[name]))
    return x, labels


def check_gaps(path: Path, factor: pd.Series) -> None:
    """Raise an InputError for a factor with missing values."""
    if factor.isna().any():
        raise InputError(f"factor {factor.name!r} of {path} has gaps, first in row {int(factor.isna().argmax())}")


def _describe_text_column(path: Path, column: pd.Series) -> str:
    """Return the message for a column that should hold numbers."""
    name, values = str(column.name), column.dropna()
    text = np.flatnonzero((pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy())
    if 0 < len(text) < len(values) / 2:
        place = f"first {str(column.iloc[text[0]])[:30]!r} in row {text[0]} (counted from 0)"
        rows = plural(len(text), "row")
        return f"column {name!r} of {path} holds numbers, but text in {rows}: {place}. Correct or drop them"
    return (
        f"column {name!r} of {path} holds {'text' if column.dtype != bool else 'true/false'}"
        + (f" ({str(values.iloc[0])[:30]!r})" if len(values) else "")
        + f", not numbers. Make it a factor (--data.factors {_quote(name)}), or name the columns to use "
        "(--data.columns A B ...)"
    )


def _quote(name: str) -> str:
    """Return a column name as it is typed in a shell."""
    return f'"{name}"' if re.search(r"\W", name) else name
