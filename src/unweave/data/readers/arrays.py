"""Read numpy arrays: .npy and .npz, never unpickling."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib import format as npy_format

from unweave.data.rows import MappedRows
from unweave.utils.errors import InputError, first_line, plural, unknown
from unweave.utils.files import check_file, check_memory

ARRAY_FORMATS = {".npy", ".npz"}
FLOAT_BYTES = 8  # of a number that is not kept in its own type
NUMBERS, LABELS = "fiub", "fiubUS"  # kinds of numpy types of observations, and of factors
ARRAY_ADVICE = "Raise --data.max-memory, or save the array as .npy, which is read on demand"


def load_array(path: Path, *, mapped: bool = False, limit: float | None = None) -> Any:
    """Return the contents of an .npy or .npz file, of an .npy as a memory map if asked for; never unpickles."""
    check_file(path)
    if not mapped and path.suffix.lower() == ".npy":
        check_memory(str(path), path.stat().st_size, limit, ARRAY_ADVICE)
    try:
        loaded = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (Exception, MemoryError) as error:  # numpy raises many types for a damaged file
        raise InputError(f"{path} cannot be read: {_describe(error)}. {_PLAIN}") from error
    if path.suffix.lower() == ".npy" and isinstance(loaded, np.lib.npyio.NpzFile):
        loaded.close()
        raise InputError(f"{path} holds an archive of arrays: rename it to .npz")
    return loaded


_PLAIN = "Save plain arrays of numbers (numpy.save, numpy.savez)"


def _describe(error: BaseException) -> str:
    return "it holds Python objects" if "allow_pickle" in str(error) else first_line(error)


def read_npy(path: Path, max_bytes: float = math.inf, limit: float | None = None) -> np.ndarray | MappedRows:
    """Return the observations of an .npy file; as rows of a memory map if they take more than `max_bytes`."""
    check_file(path)
    if path.stat().st_size * FLOAT_BYTES > max_bytes:  # as large as they may become
        mapped = load_array(path, mapped=True)
        if mapped.size * (mapped.itemsize if _keeps_type(mapped) else FLOAT_BYTES) > max_bytes:
            check_array(path, "", mapped)
            return MappedRows(mapped)
    return check_array(path, "", load_array(path, limit=limit))


@contextlib.contextmanager
def open_arrays(path: Path) -> Iterator[Any]:
    """Open an .npz; an error inside of the block that is none of ours says that the file is damaged."""
    arrays = load_array(path)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise InputError(f"{path} holds one array, and no archive of them: rename it to .npy")
    twice = [name for name in arrays.files if arrays.files.count(name) > 1]
    if twice:
        raise InputError(f"{path} has two arrays named {twice[0]!r}: rename one")
    with arrays:
        yield arrays


def read_npz(
    path: Path, factors: tuple[str, ...], columns: tuple[str, ...], limit: float | None = None
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the observations and the true factors of an .npz file.

    Observations are the named array, `x`, or the only array. Factors are the named arrays, or `factors`.
    """
    with open_arrays(path) as arrays:
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
        x = check_array(path, chosen, read_member(path, arrays, chosen, limit))
        parts = {name: read_member(path, arrays, name, limit) for name in factors}
        labels = [str(n) for n in read_member(path, arrays, "factor_names").ravel()] if "factor_names" in names else []
    named = [column for name, part in parts.items() for column in _factor_columns(path, name, part, len(x), labels)]
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            raise InputError(f"{path} has two factors named {name!r}: rename one in `factor_names`, or its array")
        seen.add(name)
    return x, pd.DataFrame(dict(named), index=range(len(x)))


def _factor_columns(
    path: Path, name: str, part: np.ndarray, rows: int, labels: list[str]
) -> list[tuple[str, np.ndarray]]:
    """Return the columns of an array of factors, (rows,) or (rows, k), with their names."""
    if part.shape[:1] != (rows,) or part.ndim > 2:
        raise InputError(f"array {name!r} of {path} has shape {part.shape}; expected ({rows},) or ({rows}, k)")
    part = check_labels(path, name, part)
    if part.ndim == 1:
        return [(name, part)]
    if name == "factors" and labels and len(labels) != part.shape[1]:
        text = f"{path} has {plural(len(labels), 'name')} in `factor_names` for {plural(part.shape[1], 'factor')}"
        raise InputError(f"{text}: expected one for each column of `factors`")
    own = labels if name == "factors" and labels else [f"{name}{i + 1}" for i in range(part.shape[1])]
    return list(zip(own, part.T, strict=True))


def check_labels(path: Path, name: str, x: np.ndarray) -> np.ndarray:
    """Return an array of factors, (n,) or (n, k), as numbers or names, or raise an error that names it."""
    if x.dtype.kind not in LABELS:
        raise InputError(f"array {name!r} of {path} holds {x.dtype}: expected factors that are numbers or names")
    if x.ndim not in (1, 2) or 0 in x.shape:
        raise InputError(f"array {name!r} of {path} has shape {x.shape}: expected (rows,) or (rows, factors)")
    return _as_usual_float(x)


def read_member(path: Path, arrays: Any, name: str, limit: float | None = None) -> np.ndarray:
    """Return one array of an opened .npz, or raise an error that names it; its header says what it takes in memory."""
    try:
        check_memory(f"array {name!r} of {path}", _member_bytes(arrays, name), limit, ARRAY_ADVICE)
        return np.asarray(arrays[name])
    except InputError:
        raise
    except (Exception, MemoryError) as error:
        raise InputError(f"array {name!r} of {path} cannot be read: {_describe(error)}. {_PLAIN}") from error


def _member_bytes(arrays: Any, name: str) -> float:
    """Return the bytes of memory that an array of an .npz takes, from its header."""
    member = name if name in arrays.zip.namelist() else f"{name}.npy"
    with arrays.zip.open(member) as file:
        read = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        shape, _, dtype = read[npy_format.read_magic(file)](file)
    keeps_type = dtype.kind not in NUMBERS or dtype.kind == "f" or (dtype == np.uint8 and len(shape) > 2)
    size = math.prod(shape) * (dtype.itemsize if keeps_type else max(FLOAT_BYTES, dtype.itemsize))
    return float(max(size, arrays.zip.getinfo(member).file_size))


def check_array(path: Path, name: str, x: np.ndarray) -> np.ndarray:
    """Return an array of real numbers with one row per observation, or raise an error that names it."""
    where = f"array {name!r} of {path}" if name else str(path)
    if x.dtype.kind not in NUMBERS:
        raise InputError(f"{where} holds {x.dtype}, not real numbers")
    if len(x.shape) > 1 and len(x) == 1:
        raise InputError(f"{where} has shape {x.shape}: one observation; at least two are needed")
    if x.ndim < 2 or 0 in x.shape:
        raise InputError(f"{where} has shape {x.shape}; expected (rows, columns) or (images, ..., height, width)")
    if isinstance(x, np.memmap):
        return x  # a map is converted when it is read
    return _as_usual_float(x) if _keeps_type(x) else x.astype(np.float64)


def _as_usual_float(x: np.ndarray) -> np.ndarray:
    """Return floats of more than eight bytes (long double) with eight, and others as they are."""
    return x.astype(np.float64) if x.dtype.kind == "f" and x.itemsize > FLOAT_BYTES else x


def _keeps_type(x: np.ndarray) -> bool:
    """Return whether numbers keep their type: floats, and the bytes of images."""
    return x.dtype.kind == "f" or (x.dtype == np.uint8 and x.ndim > 2)
