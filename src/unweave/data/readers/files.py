"""Read observations and factors from a file or a folder, whatever its format."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from unweave.data.readers.arrays import ARRAY_FORMATS, read_npy, read_npz
from unweave.data.readers.images import read_images
from unweave.data.readers.tables import TABLE_FORMATS, read_table, split_table
from unweave.data.rows import RowReader
from unweave.utils.errors import InputError
from unweave.utils.files import check_exists

SUPPORTED_FORMATS = f"{', '.join(sorted(TABLE_FORMATS | ARRAY_FORMATS))} or a folder of images"


def read_data(
    path: Path,
    *,
    factors: tuple[str, ...] = (),
    columns: tuple[str, ...] = (),
    max_bytes: float = math.inf,
    crop: int | None = None,
    limit: float | None = None,
) -> tuple[np.ndarray | pd.DataFrame | RowReader, pd.DataFrame]:
    """Return the observations, (n, d) or (n, ...), and the true factors, one row per observation.

    If they take more than `max_bytes`, images of a folder are decoded on demand, and an .npy is a memory map. Whatever
    is read into memory may take `limit` bytes there, by default half of the free memory.
    """
    check_exists(path)
    if path.is_dir():
        if factors or columns:
            raise InputError(f"{path} is a folder of images and has no columns; its sub-folders are its labels")
        return read_images(path, max_bytes, crop, limit)
    suffix = path.suffix.lower()
    if suffix in TABLE_FORMATS:
        return split_table(path, read_table(path, limit), factors, columns)
    if suffix == ".npy":
        if factors or columns:
            raise InputError(f"{path} is one array without names; put the true factors beside it in an .npz")
        return read_npy(path, max_bytes, limit), pd.DataFrame()
    if suffix == ".npz":
        return read_npz(path, factors, columns, limit)
    raise InputError(f"{path} has an unknown format ({suffix or 'no suffix'}): expected {SUPPORTED_FORMATS}")
