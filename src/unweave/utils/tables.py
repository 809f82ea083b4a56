"""Write tables as CSV or Parquet. Text that a spreadsheet would execute as a formula is neutralized in CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.utils.atomic import atomic_file, write_atomic
from unweave.utils.files import check_file

NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*", re.ASCII)
# After spaces and characters without width; the last four signs are those of Chinese and Japanese keyboards.
FORMULA = r"[\s\0\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]"
UNSAFE = re.compile(rf"'*({FORMULA})")  # with apostrophes, so that reading restores the text
NEUTRALIZED = re.compile(rf"'+({FORMULA})")
OTHER_SEPARATORS = (";", "\t", "|")  # at which some spreadsheets split a line


def neutralize(value: Any) -> Any:
    """Return text that begins as a formula with an apostrophe before it; numbers and other values as they are.

    >>> neutralize("=1+2"), neutralize("@anna"), neutralize("-3.5"), neutralize("anna"), neutralize(-3.5)
    ("'=1+2", "'@anna", '-3.5', 'anna', -3.5)
    """
    is_unsafe = isinstance(value, str) and UNSAFE.match(value) and not NUMBER.fullmatch(value)
    return f"'{value}" if is_unsafe else value


def restore_text(value: Any) -> Any:
    """Inverse of `neutralize`, except for text that it does not change.

    >>> restore_text("'=1+2"), restore_text("-3.5"), restore_text("'quoted'")
    ('=1+2', '-3.5', "'quoted'")
    """
    return value[1:] if isinstance(value, str) and NEUTRALIZED.match(value) else value


def csv_text(table: pd.DataFrame, float_format: str | None = None) -> str:
    """Return a table as CSV without its index; no cell and no name of a column is a formula."""
    safe = map_text(table, neutralize)
    texts = [*safe.columns, *(value for name in _text_columns(safe) for value in safe[name])]
    is_split = any(sign in text for text in texts if isinstance(text, str) for sign in OTHER_SEPARATORS)
    return str(
        safe.to_csv(
            index=False, quoting=csv.QUOTE_NONNUMERIC if is_split else csv.QUOTE_MINIMAL, float_format=float_format
        )
    )


def map_text(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Return a table with the names of columns, and the values of columns that are no numbers, changed."""
    names = _text_columns(table)
    changed = table.assign(**{name: table[name].map(change) for name in names}) if names else table
    return changed.set_axis(changed.columns.map(change), axis=1)


def _text_columns(table: pd.DataFrame) -> list[Any]:
    """Return the names of columns that may hold text."""
    return [name for name, dtype in zip(table.columns, table.dtypes, strict=True) if dtype.kind not in "iufbcM"]


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as .csv or .parquet, by the suffix of the path."""
    TABLE_WRITERS[path.suffix.lower()](table, path)


def read_parquet(path: Path) -> pd.DataFrame:
    """Return a small table that we wrote; three times as fast as by pandas, which reads a data set of many files."""
    import pyarrow.parquet as pq

    check_file(path)
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False).to_pandas()


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet, atomically."""
    with atomic_file(path) as file:
        table.to_parquet(file)


TABLE_WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    ".csv": lambda table, path: write_atomic(path, csv_text(table)),
    ".parquet": write_parquet,
}
