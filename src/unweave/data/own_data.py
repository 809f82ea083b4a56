"""The dataset of a user's own files: a table, an array, or a folder of images."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.data.conversion import as_data
from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.data.lazy import DEFAULT_MEMORY
from unweave.data.readers.files import check_exists, read_data
from unweave.data.readers.images import image_files
from unweave.data.rows import GIGABYTE, RowReader
from unweave.utils.errors import InputError, constant_data_error, plural
from unweave.utils.storage import sha256
from unweave.utils.validation import check_finite

MAX_CHECKED_BYTES = 2**26  # of rows that are read at a time, before training


class OwnData(Dataset):
    """Your own data: a table, an array, or a folder of images, whose sub-folders are labels.

    Example:
        >>> data = OwnData(path="measurements.csv", factors=("age",)).load()  # doctest: +SKIP
    """

    path: Path
    """File (.csv, .tsv, .txt, .parquet, .npy, .npz) or folder of images."""
    factors: tuple[str, ...] = ()
    """Columns of a table, or arrays of an .npz, with true factors, for scores, labels and pairs."""
    columns: tuple[str, ...] = ()
    """Columns of a table, or the array of an .npz, to learn from; by default everything that is not a factor."""
    drop_constant: bool = False
    """Leave out constant columns instead of raising an error."""
    memory: float = DEFAULT_MEMORY
    """Gigabytes of observations to hold in memory. If an .npy or a folder of images has more, rows are read on demand:
    by memory map, or decoded with a cache of this size."""

    def title(self) -> str:
        """Return the name of the file or folder."""
        return Path(self.path).name or str(self.path)

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with the hash of the content, so that a moved file is the same data."""
        fields = {"factors": list(self.factors), "columns": list(self.columns), "drop_constant": self.drop_constant}
        # What is read on demand is scored on a sample, so that another limit may be another result.
        limit = {} if self.memory == DEFAULT_MEMORY else {"memory": float(self.memory)}
        return {"name": self.title(), "sha256": self.sha256, **fields, **limit}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file, or of all images of the folder with their names."""
        path = Path(self.path)
        check_exists(path)
        return sha256(*image_files(path), below=path) if path.is_dir() else sha256(path)

    def row_names(self) -> list[str] | None:
        """Return the image file of each row, relative to the folder; None for other data."""
        path = Path(self.path)
        return [p.relative_to(path).as_posix() for p in image_files(path)] if path.is_dir() else None

    def load(self) -> FactorData:
        """Read and validate the data."""
        if self.memory < 0:
            raise InputError(f"memory={self.memory}: expected gigabytes, or 0 to read everything on demand")
        max_bytes = self.memory * GIGABYTE
        x, labels = read_data(Path(self.path), factors=self.factors, columns=self.columns, max_bytes=max_bytes)
        if isinstance(x, RowReader):
            self._check_rows(x)
        else:
            x = self._check_array(x)
        for name in labels.columns:
            if labels[name].nunique() < 2:
                raise InputError(f"factor {name!r} of {self.path} never changes: leave it out of --data.factors")
        return as_data(x, labels if len(labels.columns) else None, memory=self.memory)

    def _check_array(self, x: np.ndarray | pd.DataFrame) -> np.ndarray:
        """Return an array of finite numbers without constant columns."""
        if x.shape[1] == 0:
            raise InputError(f"{self.path} has no columns left to learn from: all of them are factors")
        if isinstance(x, pd.DataFrame):
            _warn_of_counters(self.path, x)
            names, x = list(x.columns), x.to_numpy(np.float64)
        else:
            names = [f"column {i}" for i in range(x.shape[1])]
        check_finite(x, names if x.ndim == 2 else None, what=str(self.path))
        if x.ndim == 2:
            constant = (x == x[:1]).all(0)
            self._check_constants(constant, names)
            x = x[:, ~constant] if constant.any() else x
        return x

    def _check_rows(self, reader: RowReader) -> None:
        """Read all rows once, in parts, if some may be not finite or some columns constant."""
        if reader.dtype == np.uint8:
            return
        constant = np.ones(reader.shape, dtype=bool)
        first = reader.read(np.array([0]))
        for rows in np.array_split(np.arange(len(reader)), max(1, reader.size_in_bytes() // MAX_CHECKED_BYTES)):
            constant &= (reader.read(rows) == first).all(0)
        if constant.ndim == 1:
            self._check_constants(constant, [f"column {i}" for i in range(len(constant))])
            if constant.any():
                text = f"{self.path} is read on demand, which leaves no column out"
                raise InputError(f"{text}: remove the constant ones, or raise --data.memory")

    def _check_constants(self, constant: np.ndarray, names: list[str]) -> None:
        """Raise an error that names the constant columns, (columns,), unless some are left and they may be dropped."""
        which = ", ".join(repr(names[i]) for i in np.flatnonzero(constant)[:5])
        which += f" and {constant.sum() - 5} more" if constant.sum() > 5 else ""
        if constant.all():
            raise constant_data_error(f"{self.path}", f" ({which})")
        if constant.any() and not self.drop_constant:
            count = int(constant.sum())
            change, them = ("changes", "it") if count == 1 else ("change", "them")
            text = f"{plural(count, 'column')} of {self.path} never {change}: {which}"
            raise InputError(f"{text}. Remove {them}, or drop {them}: --data.drop-constant")


def _warn_of_counters(path: Path, table: pd.DataFrame) -> None:
    """Warn of columns that only count the rows: they carry no information and distort all distances."""
    for name in table.columns:
        if len(table) > 10 and (np.diff(table[name].to_numpy(np.float64)) == 1).all():
            warnings.warn(
                f"column {name!r} of {path} only counts the rows, and the method learns from it; if it is not a "
                "measurement, name the columns to use: --data.columns A B ...",
                stacklevel=2,
            )
