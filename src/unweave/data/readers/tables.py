"""Read tables: .csv, .tsv, .txt and .parquet."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from unweave.data.readers.layout import detect_layout, first_lines
from unweave.utils.errors import InputError, first_line, plural, unknown
from unweave.utils.files import check_file, check_memory
from unweave.utils.tables import map_text, restore_text

NUMBER_BYTES = 8  # of a value of a table in memory
MAX_THREADED_COLUMNS = 1_000  # of a parquet file that threads read; of more, they hold one another up
TABLE_ADVICE = "Raise --data.max-memory, leave out columns, or save the numbers as .npy, which is read on demand"
TABLE_FORMATS = {".csv", ".tsv", ".txt", ".parquet"}


def read_table(path: Path, limit: float | None = None) -> pd.DataFrame:
    """Return a table as a DataFrame; separator, decimal comma and a missing header are detected.

    Args:
        path: A file.
        limit: Bytes of memory that the table may take; None: half of the free memory.
    """
    check_file(path)
    try:
        table = _read_parquet(path, limit) if path.suffix.lower() == ".parquet" else _read_text(path, limit)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({error}): save it again with that encoding") from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InputError(f"{path} cannot be read as a table: {first_line(error)}") from error
    except Exception as error:  # pyarrow raises many types; all mean that the file is not what its suffix says
        text = f"{path} cannot be read: {first_line(error)}"
        raise InputError(f"{text}. It is truncated, or its suffix is wrong") from error
    names = table.columns.map(restore_text)
    if not names.is_unique:
        raise InputError(f"{path} has several columns named {names[names.duplicated()][0]!r}: rename one")
    return map_text(table, restore_text)  # our own files: formulas are neutralized in them


def _read_parquet(path: Path, limit: float | None) -> pd.DataFrame:
    # As a file and not as a data set, which takes gigabytes for 100,000 columns.
    with pq.ParquetFile(path) as file:
        nested = [field.name for field in file.schema_arrow if pa.types.is_nested(field.type)]
        if nested:
            text = f"column {nested[0]!r} of {path} holds lists or records: expected numbers, classes or text"
            raise InputError(f"{text}. Save the table without it, or one value in each column")
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        stored = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        size = max(NUMBER_BYTES * rows * columns, stored)
        check_memory(f"{path} ({rows:,} rows, {columns:,} columns)", size, limit, TABLE_ADVICE)
        table = file.read(use_threads=columns < MAX_THREADED_COLUMNS).to_pandas()
    table.columns = table.columns.map(str)
    return table


def _read_text(path: Path, limit: float | None) -> pd.DataFrame:
    size = path.stat().st_size
    check_memory(str(path), size, limit, TABLE_ADVICE)
    lines = first_lines(path)
    layout = detect_layout(path, lines)
    characters = sum(len(line) + 1 for line in lines)
    cells = sum(line.count(layout["sep"]) + 1 for line in lines)
    check_memory(str(path), size / characters * cells * NUMBER_BYTES, limit, TABLE_ADVICE)
    # The C parser fills short rows with NaN, which is reported later with its position. Types are those of whole
    # columns: in parts, 100,000 columns take minutes.
    table = pd.read_csv(
        path, **layout, index_col=False, encoding="utf-8-sig", skipinitialspace=True, low_memory=False
    )  # fmt: skip
    table.columns = [f"column {i}" if layout["header"] is None else str(name) for i, name in enumerate(table.columns)]
    return table


def split_table(
    path: Path, table: pd.DataFrame, factors: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the columns to learn from, which must be numeric, and the columns of factors, which may be anything."""
    if len(table) < 2:
        raise InputError(f"{path} has {plural(len(table), 'row')} of data; at least two are needed")
    for name, count in Counter((*factors, *columns)).items():
        if name not in table.columns:
            raise unknown(f"column of {path.name}", name, [str(c) for c in table.columns])
        if count > 1:
            raise InputError(f"column {name!r} of {path} is named more than once in --data.factors and --data.columns")
    labels = table[list(factors)] if factors else pd.DataFrame(index=table.index)
    for name in factors:
        check_gaps(path, labels[name])
    x = table[list(columns)] if columns else table.drop(columns=list(factors)) if factors else table
    text = [j for j, dtype in enumerate(x.dtypes) if dtype.kind not in "iuf"]
    if text:
        raise InputError(_describe_text_column(path, x.iloc[:, text[0]]))
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
