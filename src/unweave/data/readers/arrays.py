"""Read numpy arrays: .npy and .npz, never unpickling."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.data.rows import MappedRows
from unweave.utils.errors import InputError, plural, unknown

ARRAY_FORMATS = {".npy", ".npz"}
FLOAT_BYTES = 8  # of a number that is not kept in its own type


def load_array(path: Path, *, mapped: bool = False) -> Any:
    """Return the contents of an .npy or .npz file, of an .npy as a memory map if asked for; never unpickles."""
    try:
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except Exception as error:  # numpy raises many types for a damaged file
        text = "it holds Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(
            f"{path} cannot be read: {text}. Save plain arrays of numbers (numpy.save, numpy.savez)"
        ) from error


def read_npy(path: Path, max_bytes: float = math.inf) -> np.ndarray | MappedRows:
    """Return the observations of an .npy file; as rows of a memory map if they take more than `max_bytes`."""
    if path.stat().st_size * FLOAT_BYTES > max_bytes:  # as large as they may become
        mapped = load_array(path, mapped=True)
        if mapped.size * (mapped.itemsize if _keeps_type(mapped) else FLOAT_BYTES) > max_bytes:
            check_array(path, "", mapped)
            return MappedRows(mapped)
    return check_array(path, "", load_array(path))


def read_npz(path: Path, factors: tuple[str, ...], columns: tuple[str, ...]) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the observations and the true factors of an .npz file.

    Observations are the named array, `x`, or the only array. Factors are the named arrays, or `factors`.
    """
    with load_array(path) as arrays:
        names = list(arrays.files)
        for name in (*factors, *columns):
            if name not in names:
                raise unknown(f"array in {path.name}", name, names)
        if len(columns) > 1:
            raise InputError(f"{path}: a method learns from one array, not {plural(len(columns), 'array')}")
        factors = factors or tuple(name for name in ("factors",) if name in names)
        rest = [name for name in names if name not in factors and name != "factor_names"]
        chosen = columns[0] if columns else "x" if "x" in rest else rest[0] if len(rest) == 1 else None
        if chosen is None:
            raise InputError(f"which array of {path} is the data? It has {', '.join(names)}; pass --data.columns NAME")
        x = check_array(path, chosen, read_member(path, arrays, chosen))
        parts = {name: read_member(path, arrays, name) for name in factors}
        factor_names = [str(n) for n in read_member(path, arrays, "factor_names")] if "factor_names" in names else []
    columns_by_name: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        if part.shape[:1] != x.shape[:1] or part.ndim > 2:
            raise InputError(f"array {name!r} of {path} has shape {part.shape}; expected ({len(x)},) or ({len(x)}, k)")
        if part.ndim == 1:
            columns_by_name[name] = part
        else:
            labels = factor_names if name == "factors" and len(factor_names) == part.shape[1] else None
            columns_by_name |= {labels[i] if labels else f"{name}{i + 1}": part[:, i] for i in range(part.shape[1])}
    return x, pd.DataFrame(columns_by_name)


def read_member(path: Path, arrays: Any, name: str) -> np.ndarray:
    """Return one array of an opened .npz, or raise an error that names it."""
    try:
        return np.asarray(arrays[name])
    except Exception as error:
        text = "it holds Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(f"array {name!r} of {path} cannot be read: {text}") from error


def check_array(path: Path, name: str, x: np.ndarray) -> np.ndarray:
    """Return an array of real numbers with one row per observation, or raise an error that names it."""
    where = f"array {name!r} of {path}" if name else str(path)
    if x.dtype.kind not in "fiub":
        raise InputError(f"{where} holds {x.dtype}, not real numbers")
    if len(x.shape) > 1 and len(x) == 1:
        raise InputError(f"{where} has shape {x.shape}: one observation; at least two are needed")
    if x.ndim < 2 or 0 in x.shape:
        raise InputError(f"{where} has shape {x.shape}; expected (rows, columns) or (images, ..., height, width)")
    if isinstance(x, np.memmap) or _keeps_type(x):
        return x  # a map is converted when it is read
    return x.astype(np.float64)


def _keeps_type(x: np.ndarray) -> bool:
    """Return whether numbers keep their type: floats, and the bytes of images."""
    return x.dtype.kind == "f" or (x.dtype == np.uint8 and x.ndim > 2)
