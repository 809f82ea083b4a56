"""Read observations, codes or factors from a file or a folder, whatever its format."""

from __future__ import annotations

import difflib
import math
from pathlib import Path

import numpy as np
import pandas as pd

from unweave.data.readers.arrays import ARRAY_FORMATS, load_array, read_member, read_npy, read_npz
from unweave.data.readers.images import read_images
from unweave.data.readers.tables import TABLE_FORMATS, read_table, split_table
from unweave.data.rows import RowReader
from unweave.utils.errors import InputError
from unweave.utils.validation import as_array, check_finite

SUPPORTED_FORMATS = f"{', '.join(sorted(TABLE_FORMATS | ARRAY_FORMATS))} or a folder of images"
FILE_COLUMN = "file"  # names the image that the codes of a row come from


def read_data(
    path: Path, *, factors: tuple[str, ...] = (), columns: tuple[str, ...] = (), max_bytes: float = math.inf
) -> tuple[np.ndarray | pd.DataFrame | RowReader, pd.DataFrame]:
    """Return the observations, (n, d) or (n, ...), and the true factors, one row per observation.

    If they take more than `max_bytes`, images of a folder are decoded on demand, and an .npy is a memory map.
    """
    if path.is_dir():
        if factors or columns:
            raise InputError(f"{path} is a folder of images and has no columns; its sub-folders are its labels")
        return read_images(path, max_bytes)
    suffix = path.suffix.lower()
    check_exists(path)
    if suffix in TABLE_FORMATS:
        return split_table(path, read_table(path), factors, columns)
    if suffix == ".npy":
        if factors or columns:
            raise InputError(f"{path} is one array without names; put the true factors beside it in an .npz")
        return read_npy(path, max_bytes), pd.DataFrame()
    if suffix == ".npz":
        return read_npz(path, factors, columns)
    raise InputError(f"{path} has an unknown format ({suffix or 'no suffix'}): expected {SUPPORTED_FORMATS}")


def check_exists(path: Path) -> None:
    """Raise an error that names the most similar file in the same folder if `path` does not exist."""
    if not path.exists():
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        similar = difflib.get_close_matches(path.name, names, 1)
        raise InputError(f"{path} does not exist" + (f"; did you mean {path.parent / similar[0]}?" if similar else ""))


def read_codes(path: Path) -> np.ndarray:
    """Return the codes in a file from any tool, (n, d)."""
    if path.suffix.lower() == ".npy":
        check_exists(path)
        codes = as_array(load_array(path), str(path))
    elif path.suffix.lower() in TABLE_FORMATS and path.is_file():
        table = read_table(path)
        named = table.columns[0] == FILE_COLUMN and table.dtypes.iloc[0].kind not in "fiu"
        skip = (FILE_COLUMN,) if named and table.shape[1] > 1 else ()  # written by `unweave fit`
        text = [str(n) for n, kind in table.dtypes.items() if kind.kind not in "fiu" and n not in skip]
        if text:
            raise InputError(f"column {text[0]!r} of {path} holds text, not numbers: codes must be numbers")
        codes = split_table(path, table.drop(columns=list(skip)), (), ())[0].to_numpy(np.float64)
    else:
        x, _ = read_data(path)
        assert not isinstance(x, RowReader)  # without a limit, everything is read
        codes = x.to_numpy(np.float64) if isinstance(x, pd.DataFrame) else x
    check_finite(codes.reshape(len(codes), -1) if codes.ndim else codes, what=str(path))
    return codes[:, None] if codes.ndim == 1 else codes


def read_factors(path: Path) -> pd.DataFrame:
    """Return all columns of a file of true factors; classes may be numbers or names."""
    if path.suffix.lower() in TABLE_FORMATS:
        check_exists(path)
        table = read_table(path)
        return split_table(path, table, tuple(str(name) for name in table.columns), ())[1]
    if path.suffix.lower() == ".npz":
        with load_array(path) as arrays:
            named = "factors" if "factors" in arrays.files else arrays.files[0] if len(arrays.files) == 1 else None
            if named is None:
                names = ", ".join(arrays.files) or "nothing"
                raise InputError(f"{path} holds {names}: save the factors as one array named 'factors'")
            return pd.DataFrame(read_member(path, arrays, named)).add_prefix("factor")
    return pd.DataFrame(read_codes(path)).add_prefix("factor")
