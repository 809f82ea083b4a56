"""Rows of a user's own data: observations, labels and identifiers, from one file or from images with a table."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unweave.data.kinds import numeric_columns, reason_to_leave_out
from unweave.data.readers.files import read_data
from unweave.data.readers.images import IMAGE_FORMATS, files_below, image_files, read_image_files
from unweave.data.readers.join import join_rows, key_columns
from unweave.data.readers.tables import TABLE_FORMATS, read_table, split_table
from unweave.data.rows import RowReader, SelectedRows
from unweave.utils.errors import InputError, list_names, plural, unknown

Missing = Literal["error", "drop", "median"]
MIN_IMAGE_SHARE = 0.9  # of the values of a column that must name image files before the images are read


@dataclass
class Rows:
    """Observations with their labels, row by row."""

    x: np.ndarray | pd.DataFrame | RowReader  # (n, d) or (n, ..., h, w)
    labels: pd.DataFrame  # (n, k)
    names: list[str] | None = None  # identifiers of the rows
    key: str = "row"  # what the identifiers are called
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Selection:
    """Which columns are learned from, are factors or are ignored, what becomes of gaps, and how images are read."""

    factors: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    missing: Missing = "error"
    max_bytes: float = math.inf  # of observations in memory; more are read on demand
    crop: int | None = None  # pixels of the central square of each image
    limit: float | None = None  # bytes of memory that reading may take; None: half of the free memory


def read_rows(path: Path, selection: Selection, table: Path | None = None) -> Rows:
    """Return the rows of a file or a folder of images; `table` has more labels for them, matched by file name."""
    sizes: Any = {"max_bytes": selection.max_bytes, "limit": selection.limit}
    if path.is_dir():
        return _read_folder(path, selection, table)
    if table is not None:
        x, labels = read_data(path, columns=selection.columns, **sizes)
        labels = labels if len(labels.columns) else pd.DataFrame(index=range(len(x)))
        return _with_table(Rows(x, labels), path, table, selection)
    if path.suffix.lower() in TABLE_FORMATS:
        return _read_table_rows(path, selection)
    if selection.ignore:
        raise InputError(f"{path} is no table: --data.ignore names columns of a table")
    x, labels = read_data(path, factors=selection.factors, columns=selection.columns, **sizes)
    return Rows(x, labels)


# Images -----------------------------------------------------------------------------------------------------------


def _read_folder(path: Path, selection: Selection, table: Path | None) -> Rows:
    if table is None and (selection.factors or selection.columns or selection.ignore):
        raise InputError(
            f"{path} is a folder of images and has no columns: its sub-folders are its labels, "
            "and --data.table FILE names a table with more of them"
        )
    if selection.columns:
        raise InputError(f"{path} is a folder of images: all pixels are learned from, so leave out --data.columns")
    x, labels = read_data(path, max_bytes=selection.max_bytes, crop=selection.crop, limit=selection.limit)
    names = [p.relative_to(path).as_posix() for p in image_files(path)]
    rows = Rows(x, labels, names, "file")
    others = [p.relative_to(path).as_posix() for p in files_below(path) if p.suffix.lower() not in IMAGE_FORMATS]
    if others:
        what = "1 file that is no image" if len(others) == 1 else f"{len(others):,} files that are no images"
        rows.notes.append(f"left out: {what} ({list_names(others)})")
    if len(labels.columns):
        rows.notes.append(f"labels from sub-folders: {', '.join(map(str, labels.columns))}")
    return rows if table is None else _with_table(rows, path, table, selection)


def _with_table(rows: Rows, path: Path, table_path: Path, selection: Selection) -> Rows:
    """Return the rows that a table has labels for, with the columns of the table."""
    table = _drop_ignored(table_path, read_table(table_path, selection.limit), selection.ignore)
    keys = pd.DataFrame({} if rows.names is None else {rows.key: rows.names}, index=range(len(rows.x)))
    join = join_rows(keys, key_columns(table), (path.name, table_path.name), (len(rows.x), len(table)))
    rows.notes.append(f"{table_path.name}: {join.note}")
    table = table.iloc[join.right].reset_index(drop=True)
    labels = rows.labels.iloc[join.left].reset_index(drop=True)
    for name in selection.factors:
        if name not in table.columns and name not in labels.columns:
            raise unknown(f"column of {table_path.name}", name, [*map(str, table.columns), *map(str, labels.columns)])
    both = pd.concat([labels.drop(columns=[n for n in labels if n in table.columns]), table], axis=1)
    chosen = both[list(selection.factors)] if selection.factors else _leave_out(both, rows.notes)
    x = _take(rows.x, join.left)
    names = None if rows.names is None else [rows.names[i] for i in join.left]
    return Rows(x, chosen, names, rows.key, rows.notes)


def _take(x: np.ndarray | pd.DataFrame | RowReader, rows: np.ndarray) -> np.ndarray | pd.DataFrame | RowReader:
    """Return some rows of observations."""
    if isinstance(x, RowReader):
        return SelectedRows(x, rows)
    return x.iloc[rows].reset_index(drop=True) if isinstance(x, pd.DataFrame) else x[rows]


def _image_column(path: Path, table: pd.DataFrame) -> tuple[str, list[Path]] | None:
    """Return the column of a table that names image files beside it, or in the working folder, and their paths."""
    for name in table.columns[~numeric_columns(table)]:
        texts = table[name].dropna().astype(str)
        if texts.empty:
            continue
        is_image = texts.map(lambda text: os.path.splitext(text)[1].lower() in IMAGE_FORMATS)  # noqa: PTH122
        if len(texts) < len(table) or is_image.sum() < MIN_IMAGE_SHARE * len(texts):
            continue
        files = [next((p for p in (path.parent / text, Path(text)) if p.is_file()), None) for text in texts]
        absent = [text for text, file in zip(texts, files, strict=True) if file is None]
        if len(absent) == len(texts):
            continue  # names of files that are not here: only identifiers
        if absent:
            raise InputError(
                f"column {name!r} of {path} names images, but {plural(len(absent), 'file')} do not exist, first "
                f"{absent[0]!r} (looked beside the table and in the working folder): add them, or drop those rows"
            )
        return str(name), [file for file in files if file is not None]
    return None


# Tables -----------------------------------------------------------------------------------------------------------


def _read_table_rows(path: Path, selection: Selection) -> Rows:
    table = _drop_ignored(path, read_table(path, selection.limit), selection.ignore)
    images = None if selection.columns else _image_column(path, table)
    if images is not None:
        return _read_listed_images(path, table, *images, selection)
    notes: list[str] = []
    stated = {*selection.factors, *selection.columns}
    names, key = _row_identifiers(table, selection.columns)
    if not selection.columns:
        kept = numeric_columns(table) | table.columns.isin(list(stated))
        if not kept.all():
            usable = kept | table.columns.isin(_leave_out(table.loc[:, ~kept], notes).columns)
            table = table.loc[:, usable]
        if key in table.columns and key not in stated and pd.api.types.is_numeric_dtype(table[key]):
            table = table.drop(columns=[key])
            notes.append(f"left out: {key} is an identifier")
    table, rows_left = _fill_gaps(path, table, selection, notes)
    x, labels = split_table(path, table, selection.factors, selection.columns)
    return Rows(x, labels, None if names is None else [names[i] for i in rows_left], key, notes)


def _read_listed_images(path: Path, table: pd.DataFrame, column: str, files: list[Path], selection: Selection) -> Rows:
    notes = [f"column {column!r} of {path.name} names {plural(len(files), 'image')}, which are learned from"]
    labels = table.drop(columns=[column])
    for name in selection.factors:
        if name not in labels.columns:
            raise unknown(f"column of {path.name}", name, map(str, labels.columns))
    labels = labels[list(selection.factors)] if selection.factors else _leave_out(labels, notes)
    images = read_image_files(files, selection.max_bytes, selection.crop, selection.limit)
    return Rows(images, labels, table[column].astype(str).tolist(), column, notes)


def _drop_ignored(path: Path, table: pd.DataFrame, ignore: tuple[str, ...]) -> pd.DataFrame:
    for name in ignore:
        if name not in table.columns:
            raise unknown(f"column of {path.name}", name, map(str, table.columns))
    return table.drop(columns=list(ignore)) if ignore else table


def _row_identifiers(table: pd.DataFrame, columns: tuple[str, ...]) -> tuple[list[str] | None, str]:
    """Return the column that names the rows, if every row has another name, and what it is called."""
    keys = key_columns(table.drop(columns=list(columns), errors="ignore") if columns else table)
    unique = [name for name in keys.columns if keys[name].is_unique and table[name].notna().all()]
    return (keys[unique[0]].tolist(), str(unique[0])) if unique else (None, "row")


def _leave_out(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the columns that may be factors; note the others with the reason."""
    reasons = {str(name): reason_to_leave_out(table[name]) for name in table.columns}
    reasons = {name: reason for name, reason in reasons.items() if reason}
    if reasons:
        notes.append("left out: " + "; ".join(f"{name} is {reason}" for name, reason in reasons.items()))
    return table.drop(columns=list(reasons))


def _fill_gaps(
    path: Path, table: pd.DataFrame, selection: Selection, notes: list[str]
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table without gaps, if so chosen, and the numbers of the rows that are left."""
    used = [n for n in (*selection.columns, *selection.factors) if n in table.columns] if selection.columns else None
    rows = np.arange(len(table))
    if selection.missing == "error":
        return table, rows
    gaps = (table if used is None else table[used]).isna()
    if not gaps.to_numpy().any():
        return table, rows
    if selection.missing == "drop":
        kept = ~gaps.any(axis=1).to_numpy()
        notes.append(f"{plural(int((~kept).sum()), 'row')} of {path.name} with missing values left out")
        return table[kept].reset_index(drop=True), rows[kept]
    numbers = [n for n in gaps.columns[gaps.any()] if pd.api.types.is_numeric_dtype(table[n])]
    numbers = [n for n in numbers if n not in selection.factors]
    count = int(gaps[numbers].to_numpy().sum())
    notes.append(f"{plural(count, 'missing value')} of {path.name} filled with the median of the column")
    return table.fillna({n: table[n].median() for n in numbers}), rows
