"""Sources of rows that are read on demand: recognized by what they can do, without importing other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from unweave.utils.errors import InputError


def is_row_source(x: Any) -> bool:
    """Return whether rows are to be read from x on demand; arrays in memory and tables are not.

    Sources are memory maps, arrays on disk (h5py, zarr), lists of images or of their paths, and anything else with
    `__len__` and `__getitem__`, such as a torch or Hugging Face dataset.

    Raises:
        InputError: If x only gives its items one after the other, so that rows cannot be read by number.
    """
    if isinstance(x, np.memmap) or is_stored_array(x):
        return True
    if isinstance(x, list | tuple):
        first = x[0] if x else None
        return isinstance(first, Image.Image | Path) or (isinstance(first, str) and Path(first).suffix != "")
    if isinstance(x, np.ndarray | Tensor | str | bytes | Mapping) or hasattr(x, "__array__") or hasattr(x, "toarray"):
        return False
    if hasattr(x, "__iter__") and not (hasattr(x, "__len__") and hasattr(x, "__getitem__")):
        text = f"{type(x).__name__} gives its items one after the other only: expected len(x) and x[i]"
        raise InputError(f"{text}, to read any of them{'; pass its dataset' if hasattr(x, 'dataset') else ''}")
    return hasattr(x, "__len__") and hasattr(x, "__getitem__")


def is_stored_array(x: Any) -> bool:
    """Return whether x is an array on disk, which is stored in chunks (h5py, zarr, dask)."""
    return hasattr(x, "chunks") and hasattr(x, "shape") and hasattr(x, "dtype")
