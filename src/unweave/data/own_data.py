"""The dataset of a user's own files: a table, an array, or a folder of images."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.data.conditions import rows_where
from unweave.data.containers import Table
from unweave.data.conversion import encode_factors, make_table, stack_factors
from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.data.kinds import KindSpec, check_kinds, hint_at_angles, kinds_from_flags
from unweave.data.lazy import DEFAULT_MEMORY, LazyTable, cached
from unweave.data.own_checks import check_constants, check_rows, warn_of_counters
from unweave.data.readers.images import image_files
from unweave.data.readers.own_rows import Missing, Rows, Selection, read_rows
from unweave.data.readers.tables import TABLE_FORMATS, check_gaps
from unweave.data.rows import GIGABYTE, RowReader, SelectedRows
from unweave.data.scaling import Scale, resolve_scale
from unweave.utils.errors import InputError, plural
from unweave.utils.files import check_exists
from unweave.utils.storage import sha256
from unweave.utils.validation import as_array, check_finite

NOT_CONTENT = ("path", "table", "scale", "max_memory")  # settings that are no content, or are in the recipe otherwise
TEST_SEED = 0  # the held-out rows do not depend on the seed of a method, so that seeds can be compared


class OwnData(Dataset):
    """Your own data: a table, an array, or a folder of images, whose sub-folders are labels.

    Example:
        >>> data = OwnData(path="photos/", table="factors.csv", circular=("azimuth=360",)).load()  # doctest: +SKIP
    """

    path: Path
    """File (.csv, .tsv, .txt, .parquet, .npy, .npz) or folder of images. A table may have a column of image paths."""
    table: Path | None = None
    """Table of factors for the images of a folder, matched by file name, with or without folder and extension."""
    factors: tuple[str, ...] = ()
    """Columns of a table, or arrays of an .npz, with true factors, for scores, labels and pairs."""
    columns: tuple[str, ...] = ()
    """Columns of a table, or the array of an .npz, to learn from; by default everything that is not a factor."""
    ignore: tuple[str, ...] = ()
    """Columns of a table to leave out."""
    missing: Missing = "error"
    """Missing values of a table: raise an error, drop the rows, or fill numbers with the median of their column."""
    drop_constant: bool = False
    """Leave out constant columns instead of raising an error."""
    continuous: tuple[str, ...] = ()
    """Factors that are measured numbers, such as age. By default those with more than 100 values or few rows each."""
    ordinal: tuple[str, ...] = ()
    """Factors whose values are ordered levels. By default numbers with few values."""
    nominal: tuple[str, ...] = ()
    """Factors whose values are classes without an order. By default text and true/false."""
    circular: tuple[str, ...] = ()
    """Factors that are angles, as NAME or NAME=PERIOD, e.g. azimuth=360 hour=24."""
    test: float = 0.0
    """Share of the rows that is held out, at random, and scored; 0 scores all rows."""
    test_where: str = ""
    """Condition on columns for the rows that are held out and scored, e.g. "azimuth > 50 and lab == B"."""
    scale: Scale = "auto"
    """Scaling of columns before learning: standard (mean 0, deviation 1), robust (median, interquartile range) or none.
    auto standardizes tables, and leaves arrays and images as they are."""
    resize: int = 0
    """Crop images to their central square and resize it to this many pixels; 0 takes them as they are."""
    memory: float = DEFAULT_MEMORY
    """Gigabytes of observations to hold in memory. If an .npy or a folder of images has more, rows are read on demand:
    by memory map, or decoded with a cache of this size."""
    max_memory: float = 0.0
    """Gigabytes that data may take which are read completely (tables, .npz); 0: half of the free memory. Larger files
    are refused before they are unpacked."""

    def title(self) -> str:
        """Return the name of the file or folder."""
        return Path(self.path).name or str(self.path)

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with the hash of the content, so that a moved file is the same data.

        Settings that an earlier version did not have are part of it only if they are not at their defaults.
        """
        always = {"factors": list(self.factors), "columns": list(self.columns), "drop_constant": self.drop_constant}
        defaults = {f.name: f.default for f in fields(self) if f.name not in (*NOT_CONTENT, *always)}
        changed = {name: getattr(self, name) for name, default in defaults.items() if getattr(self, name) != default}
        table = {} if self.table is None else {"table_sha256": sha256(Path(self.table))}
        scale = resolve_scale(self.scale, is_table=Path(self.path).suffix.lower() in TABLE_FORMATS)
        scaled = {} if scale == "none" else {"scale": scale}
        return {"name": self.title(), "sha256": self.sha256, **always, **changed, **table, **scaled}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file, or of all images of the folder with their names."""
        path = Path(self.path)
        check_exists(path)
        return sha256(*image_files(path), below=path) if path.is_dir() else sha256(path)

    def load(self) -> FactorData:
        """Read and validate the data; with a test set, return the other rows."""
        return self._load_part(test=False)

    def load_to_apply(self) -> FactorData:
        """Return all rows for a method that is trained already: columns and factors may be constant."""
        return self._load_part(test=None)

    def evaluation_data(self, data: FactorData) -> FactorData:
        """Return the rows that were held out, or all of them if there is no test set."""
        return self._load_part(test=True) if self.test or self.test_where else data

    def _load_part(self, *, test: bool | None) -> FactorData:
        """Return the held-out rows, the others, or with None all of them, whatever is constant."""
        if self.memory < 0:
            raise InputError(f"memory={self.memory}: expected gigabytes, or 0 to read everything on demand")
        if self.max_memory < 0:
            raise InputError(f"max_memory={self.max_memory}: expected gigabytes, or 0 for half of the free memory")
        if self.resize < 0:
            raise InputError(f"resize={self.resize}: expected a number of pixels, or 0 to keep the size")
        table = None if self.table is None else Path(self.table)
        selection = Selection(
            tuple(self.factors), tuple(self.columns), tuple(self.ignore), self.missing, self.memory * GIGABYTE,
            self.resize or None, self.max_memory * GIGABYTE or None,
        )  # fmt: skip
        rows = read_rows(Path(self.path), selection, table)
        x, names = self._observations(rows, may_be_constant=test is None)
        for name in rows.labels.columns:
            check_gaps(table or Path(self.path), rows.labels[name])
            if test is not None and rows.labels[name].nunique() < 2:
                raise InputError(f"factor {name!r} of {self.path} never changes: leave it out of --data.factors")
        data = self._with_factors(x, names, rows.labels)
        data.row_key, data.notes = rows.key, tuple(rows.notes + describe_kinds(data))
        data.row_names = None if rows.names is None else tuple(rows.names)
        return data if test is None or not (self.test or self.test_where) else self._split(data, rows, test=test)

    def _with_factors(
        self, x: np.ndarray | RowReader, names: tuple[str, ...], labels: pd.DataFrame
    ) -> Table | LazyTable:
        """Return observations with their factors; those of a reader are read on demand."""
        # Columns that were chosen, or are names of folders, are factors however many values they have.
        text = [str(n) for n in labels.columns if not pd.api.types.is_numeric_dtype(labels[n])]
        kinds: dict[str, KindSpec] = dict.fromkeys(text, "nominal")
        kinds |= kinds_from_flags(self.continuous, self.ordinal, self.nominal, self.circular)
        check_kinds(kinds, list(map(str, labels.columns)))
        encoded = encode_factors(labels if len(labels.columns) else None, kinds)
        if isinstance(x, RowReader):
            return LazyTable(cached(x, self.memory), *stack_factors(encoded, len(x)))
        return make_table(as_array(x), encoded, names, resolve_scale(self.scale, is_table=bool(names)))

    def _observations(self, rows: Rows, *, may_be_constant: bool) -> tuple[np.ndarray | RowReader, tuple[str, ...]]:
        """Return the observations without constant columns, and the names of the columns of a table."""
        if isinstance(rows.x, RowReader):
            check_rows(self.path, rows.x, drop=self.drop_constant)
            return rows.x, ()
        if rows.x.shape[1] == 0:
            raise InputError(f"{self.path} has no columns left to learn from: all of them are factors")
        is_table = isinstance(rows.x, pd.DataFrame)
        x = rows.x.to_numpy(np.float64) if isinstance(rows.x, pd.DataFrame) else rows.x
        names = [str(n) for n in rows.x.columns] if isinstance(rows.x, pd.DataFrame) else _numbered(x.shape[1])
        check_finite(x, names if x.ndim == 2 else None, what=str(self.path))
        if x.ndim > 2:
            return x, ()
        if not may_be_constant:
            if isinstance(rows.x, pd.DataFrame):
                warn_of_counters(self.path, x, names)
            constant = (x == x[:1]).all(0)
            check_constants(self.path, constant, names, drop=self.drop_constant)
            if constant.any():
                x, names = x[:, ~constant], [names[i] for i in np.flatnonzero(~constant)]
        return x, tuple(names) if is_table else ()

    def _split(self, data: Table | LazyTable, rows: Rows, *, test: bool) -> Table | LazyTable:
        """Return the rows that are held out, or the others."""
        held_out = self._held_out_rows(rows)
        count = int(held_out.sum())
        if count < 2 or len(held_out) - count < 2:
            text = f"{plural(count, 'row')} of {len(held_out):,} would be held out"
            raise InputError(f"{text}: expected at least two rows to learn from and two to score")
        chosen = np.flatnonzero(held_out == test)
        part: Table | LazyTable
        if isinstance(data, LazyTable):
            part = LazyTable(SelectedRows(data.reader, chosen), data.c[chosen], data.factors)
        else:
            part = Table(data.x[chosen], data.c[chosen], data.factors)
        part.feature_names, part.row_key, part.scale = data.feature_names, data.row_key, data.scale
        part.row_names = None if data.row_names is None else tuple(data.row_names[i] for i in chosen)
        learned = plural(len(held_out) - count, "row")
        part.notes = (*data.notes, f"scores are of {plural(count, 'held-out row')}; {learned} were learned from")
        return part

    def _held_out_rows(self, rows: Rows) -> np.ndarray:
        """Return which rows are held out, (n,)."""
        if self.test_where and self.test:
            raise InputError("--data.test and --data.test-where are two ways to choose the test set: give one")
        if self.test_where:
            columns = pd.concat([rows.labels, rows.x], axis=1) if isinstance(rows.x, pd.DataFrame) else rows.labels
            return rows_where(columns, self.test_where)
        if not 0 < self.test < 1:
            raise InputError(f"test={self.test:g}: expected a share of the rows between 0 and 1")
        order = np.random.default_rng(TEST_SEED).permutation(len(rows.x))
        return order < round(self.test * len(rows.x))


def _numbered(count: int) -> list[str]:
    return [f"column {i}" for i in range(count)]


def describe_kinds(data: Table | LazyTable) -> list[str]:
    """Return notes on the kinds of the factors."""
    if not data.factors:
        return []
    kinds = "factors: " + ", ".join(factor.summary() for factor in data.factors)
    return [kinds, *hint_at_angles(data.factors, data.c.numpy(), "--data.circular")]
