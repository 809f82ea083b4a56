"""The dataset of a user's own files: a table, an array, or a folder of images."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.data.conversion import make_table
from unweave.data.core import FactorData
from unweave.data.dataset import Dataset
from unweave.data.readers.files import check_exists, read_data
from unweave.data.readers.images import image_files
from unweave.data.readers.tables import TABLE_FORMATS
from unweave.data.scaling import Scale, resolve_scale
from unweave.utils.errors import InputError, constant_data_error, plural
from unweave.utils.storage import sha256
from unweave.utils.validation import as_array, check_finite


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
    scale: Scale = "auto"
    """Scaling of columns before learning: standard (mean 0, deviation 1), robust (median, interquartile range) or none.
    auto standardizes tables, and leaves arrays and images as they are."""

    def title(self) -> str:
        """Return the name of the file or folder."""
        return Path(self.path).name or str(self.path)

    def recipe(self) -> dict[str, Any]:
        """Return the recipe with the hash of the content, so that a moved file is the same data."""
        fields = {"factors": list(self.factors), "columns": list(self.columns), "drop_constant": self.drop_constant}
        scale = resolve_scale(self.scale, is_table=Path(self.path).suffix.lower() in TABLE_FORMATS)
        scaled = {} if scale == "none" else {"scale": scale}  # without it, runs of earlier versions keep their keys
        return {"name": self.title(), "sha256": self.sha256, **fields, **scaled}

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
        x, labels = read_data(Path(self.path), factors=self.factors, columns=self.columns)
        if x.shape[1] == 0:
            raise InputError(f"{self.path} has no columns left to learn from: all of them are factors")
        is_table = isinstance(x, pd.DataFrame)
        if isinstance(x, pd.DataFrame):
            _warn_of_counters(self.path, x)
            names, x = list(x.columns), x.to_numpy(np.float64)
        else:
            names = [f"column {i}" for i in range(x.shape[1])]
        check_finite(x, names if x.ndim == 2 else None, what=str(self.path))
        if x.ndim == 2:
            varying = self._varying_columns(x, names)
            if not varying.all():
                x, names = x[:, varying], [names[i] for i in np.flatnonzero(varying)]
        for name in labels.columns:
            if labels[name].nunique() < 2:
                raise InputError(f"factor {name!r} of {self.path} never changes: leave it out of --data.factors")
        y, scale = labels if len(labels.columns) else None, resolve_scale(self.scale, is_table=is_table)
        return make_table(as_array(x), y, names if is_table else (), scale)

    def _varying_columns(self, x: np.ndarray, names: list[str]) -> np.ndarray:
        """Return which columns are not constant, (columns,), or raise an error that names those that are."""
        constant = (x == x[:1]).all(0)
        if not constant.any():
            return ~constant
        which = ", ".join(repr(names[i]) for i in np.flatnonzero(constant)[:5])
        which += f" and {constant.sum() - 5} more" if constant.sum() > 5 else ""
        if constant.all():
            raise constant_data_error(f"{self.path}", f" ({which})")
        if not self.drop_constant:
            count = int(constant.sum())
            change, them = ("changes", "it") if count == 1 else ("change", "them")
            text = f"{plural(count, 'column')} of {self.path} never {change}: {which}"
            raise InputError(f"{text}. Remove {them}, or drop {them}: --data.drop-constant")
        return ~constant


def _warn_of_counters(path: Path, table: pd.DataFrame) -> None:
    """Warn of columns that only count the rows: they carry no information and distort all distances."""
    for name in table.columns:
        if len(table) > 10 and (np.diff(table[name].to_numpy(np.float64)) == 1).all():
            warnings.warn(
                f"column {name!r} of {path} only counts the rows, and the method learns from it; if it is not a "
                "measurement, name the columns to use: --data.columns A B ...",
                stacklevel=2,
            )
