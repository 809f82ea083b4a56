"""Rows that are read when they are needed: memory maps, arrays on disk, and a bounded cache."""

from __future__ import annotations

import itertools
import mmap
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import prod
from typing import Any, TypeVar, final

import numpy as np
import pandas as pd

from unweave.utils.errors import InputError

GIGABYTE = 10**9
READ_THREADS = 8  # more than there are processors: they mostly wait for the disk
MIN_ROWS_PER_THREAD = 16  # rows of a memory map that are worth another thread
MAX_MAPPED_BYTES = 2**29  # read from a memory map until its pages are given back; they count as memory of the process
FAULT_BYTES = 2**16  # that the system maps around a row, where the file is in its cache

A = TypeVar("A")
B = TypeVar("B")


class RowReader(ABC):
    """Abstract: observations that are read by row number when they are needed."""

    shape: tuple[int, ...]
    """Shape of one observation."""
    dtype: np.dtype[Any]
    """Type of the rows as they are returned: bytes for images of bytes, otherwise floats."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return rows by number, (m,) -> (m, *shape), in any order and with repeats; called by several threads."""

    def labels(self) -> pd.DataFrame | None:
        """Return the labels that come with the rows, one column per factor; None where there are none."""
        return None

    @final
    def size_in_bytes(self) -> int:
        """Return the memory that all rows would take."""
        return len(self) * prod(self.shape) * self.dtype.itemsize

    @final
    def convert(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return rows x, (m, *shape), in the type of this reader; raise an error that names a row with NaN."""
        x = np.ascontiguousarray(x, self.dtype)
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            bad = int(rows[~np.isfinite(x).reshape(len(x), -1).all(1)].min())
            raise InputError(
                f"row {bad:,} of the data contains NaN or infinity (rows count from 0): leave such rows out, or fill "
                "the gaps"
            )
        return x


def row_dtype(dtype: np.dtype[Any], ndim: int, what: str = "data") -> np.dtype[Any]:
    """Return the type in which numbers are read: images of bytes stay bytes, whole numbers become float64.

    Args:
        dtype: Type of the numbers.
        ndim: Axes of an array of rows, the first one included.
        what: Name in the error for anything but real numbers.
    """
    if dtype.kind not in "fiub":
        raise InputError(f"{what} holds {dtype}, not real numbers")
    if dtype == np.uint8 and ndim > 2:
        return dtype
    is_double = dtype.kind != "f" or dtype.itemsize > 4  # long double too
    return np.dtype(np.float64 if is_double else np.float32)


@final
class MappedRows(RowReader):
    """Rows of a memory map. The operating system holds what fits, and this process next to nothing.

    Example:
        >>> from tempfile import mkdtemp
        >>> x = np.memmap(mkdtemp() + "/x", np.uint8, "w+", shape=(10, 4, 4))
        >>> MappedRows(x).read(np.array([3, 3, 0])).shape
        (3, 4, 4)
    """

    def __init__(self, array: np.memmap) -> None:
        check_row_shape(array.shape)
        self.array, self.shape = np.asarray(array), array.shape[1:]
        self.dtype = row_dtype(array.dtype, array.ndim)
        mapping = getattr(array, "_mmap", None)
        # Pages of a private map ("c") may hold changes that are not in the file, and must not be given back.
        is_shared = array.mode in ("r", "r+") and hasattr(mapping, "madvise")
        self._mapping: mmap.mmap | None = mapping if is_shared else None
        self._in_order: bool | None = None
        self._bytes_read = 0

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Gather rows by several threads, which wait for the disk together."""
        self._advise(in_order=len(rows) > 1 and bool((np.diff(rows) == 1).all()))
        flags = self.array.flags
        if not (flags.c_contiguous and flags.aligned):  # `take` would copy the whole array
            return self.convert(self.array[rows], rows)
        x = np.empty((len(rows), *self.shape), self.array.dtype)
        cuts = np.linspace(0, len(rows), min(READ_THREADS, len(rows) // MIN_ROWS_PER_THREAD + 1) + 1).astype(int)

        def gather(start: int, stop: int) -> None:
            np.take(self.array, rows[start:stop], axis=0, out=x[start:stop], mode="clip")  # releases the GIL

        run_in_threads(lambda part: gather(*part), itertools.pairwise(cuts))
        self._return_pages(x.nbytes + (0 if self._in_order else len(rows) * FAULT_BYTES))
        return self.convert(x, rows)

    def _advise(self, *, in_order: bool) -> None:
        """Turn the reading ahead of the system off for random rows, where it would read 128 kB for each."""
        if self._mapping is not None and in_order is not self._in_order:
            self._in_order = in_order
            self._mapping.madvise(mmap.MADV_NORMAL if in_order else mmap.MADV_RANDOM)

    def _return_pages(self, count: int) -> None:
        """Give pages back to the system's cache now and then, so that they do not add up in this process."""
        self._bytes_read += count
        if self._mapping is not None and self._bytes_read > MAX_MAPPED_BYTES:
            self._bytes_read = 0
            self._mapping.madvise(mmap.MADV_DONTNEED)


@final
class StoredRows(RowReader):
    """Rows of an array on disk that can be sliced, such as an h5py dataset or a zarr array.

    Example:
        >>> import h5py
        >>> file = h5py.File("x.h5", "w", driver="core", backing_store=False)
        >>> array = file.create_dataset("x", data=np.arange(40.0).reshape(20, 2), chunks=(5, 2))
        >>> StoredRows(array).read(np.array([7, 0]))
        array([[14., 15.],
               [ 0.,  1.]])
    """

    def __init__(self, array: Any) -> None:
        shape = tuple(int(size) for size in array.shape)
        check_row_shape(shape)
        self.array, self.shape, self._rows = array, shape[1:], shape[0]
        self.dtype = row_dtype(np.dtype(array.dtype), len(shape))
        chunks = getattr(array, "chunks", None)
        self._chunk_rows = chunks[0] if chunks and isinstance(chunks[0], int) else 1  # dask's chunks may differ

    def __len__(self) -> int:
        return self._rows

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Read in ascending order, one slice for the rows of a chunk: a compressed chunk is unpacked once."""
        unique, inverse = np.unique(rows, return_inverse=True)
        chunk = unique // self._chunk_rows
        starts = np.flatnonzero((np.diff(unique) > 1) & (np.diff(chunk) > 0)) + 1
        x = np.empty((len(unique), *self.shape), self.dtype)
        place = 0
        for part in np.split(unique, starts):
            block = np.asarray(self.array[int(part[0]) : int(part[-1]) + 1])
            x[place : place + len(part)] = block[part - part[0]]
            place += len(part)
        return self.convert(x, unique)[inverse]


@final
class SelectedRows(RowReader):
    """Some rows of another reader, in an order of their own.

    Example:
        >>> from tempfile import mkdtemp
        >>> x = np.memmap(mkdtemp() + "/x", np.float64, "w+", shape=(10, 2))
        >>> len(SelectedRows(MappedRows(x), np.array([7, 0])))
        2
    """

    def __init__(self, reader: RowReader, rows: np.ndarray) -> None:
        self.reader, self.rows, self.shape, self.dtype = reader, rows, reader.shape, reader.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by their places in the selection."""
        return self.reader.read(self.rows[rows])


@final
class RowCache(RowReader):
    """Another reader whose rows stay in memory, up to a limit; then the oldest make room for new ones.

    Example:
        >>> from tempfile import mkdtemp
        >>> x = np.memmap(mkdtemp() + "/x", np.uint8, "w+", shape=(10, 4, 4))
        >>> cached = RowCache(MappedRows(x), max_bytes=100)
        >>> cached.capacity
        6
    """

    def __init__(self, reader: RowReader, max_bytes: float) -> None:
        self.reader, self.shape, self.dtype = reader, reader.shape, reader.dtype
        row_bytes = max(1, prod(self.shape) * self.dtype.itemsize)
        self.capacity = min(len(reader), int(max_bytes) // row_bytes)
        self._store = np.empty((self.capacity, *self.shape), self.dtype)  # takes memory only where it is filled
        self._slot_of = np.full(len(reader), -1)  # where each row is stored, or -1
        self._row_in = np.full(self.capacity, -1)  # the row in each slot, or -1
        self._next, self._lock = 0, threading.Lock()

    def __len__(self) -> int:
        return len(self.reader)

    def labels(self) -> pd.DataFrame | None:
        return self.reader.labels()

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return stored rows, and read the others."""
        unique, inverse = np.unique(rows, return_inverse=True)
        x = np.empty((len(unique), *self.shape), self.dtype)
        with self._lock:
            slots = self._slot_of[unique]
            is_stored = slots >= 0
            x[is_stored] = self._store[slots[is_stored]]
        if not is_stored.all():
            missing = unique[~is_stored]
            x[~is_stored] = fresh = self.reader.read(missing)
            with self._lock:
                self._keep(missing, fresh)
        return x[inverse]

    def _keep(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Store rows, (m,), that are not stored yet, in place of the oldest ones."""
        is_new = self._slot_of[rows] < 0  # another thread may have read the same rows
        rows, x = rows[is_new][: self.capacity], x[is_new][: self.capacity]
        slots = (self._next + np.arange(len(rows))) % max(1, self.capacity)
        former = self._row_in[slots]
        self._slot_of[former[former >= 0]] = -1
        self._store[slots], self._row_in[slots], self._slot_of[rows] = x, rows, slots
        self._next = (self._next + len(rows)) % max(1, self.capacity)


def check_row_shape(shape: tuple[int, ...]) -> None:
    """Raise an error unless an array of this shape has one row per observation."""
    if len(shape) < 2 or 0 in shape:
        raise InputError(f"data of shape {shape}: expected one row per observation, (n, d) or (n, ..., h, w)")


def run_in_threads(function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Apply a function that mostly waits or releases the GIL to items by several threads; results are in order."""
    listed = list(items)
    if len(listed) < 2:
        return [function(item) for item in listed]
    cuts = np.linspace(0, len(listed), min(READ_THREADS, len(listed)) + 1).astype(int)  # few tasks for many items
    parts = [listed[start:stop] for start, stop in itertools.pairwise(cuts)]
    return [result for part in _pool().map(lambda part: [function(item) for item in part], parts) for result in part]


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that read; they are started when they are needed first."""
    return ThreadPoolExecutor(READ_THREADS, thread_name_prefix="unweave-read")
