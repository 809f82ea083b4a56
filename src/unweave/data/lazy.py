"""Data that are read on demand: larger than memory, or in files and datasets of other libraries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from unweave.data.containers import MAX_STORED_ELEMENTS, LabeledRows
from unweave.data.core import Factor, as_float
from unweave.data.items import ItemRows
from unweave.data.readers.images import read_image_files
from unweave.data.rows import GIGABYTE, MappedRows, RowCache, RowReader, StoredRows
from unweave.utils.row_sources import is_stored_array

DEFAULT_MEMORY = 1.0  # gigabytes


@final
class LazyTable(LabeledRows):
    """Rows that are read when they are needed, with labels in memory. A point is a row number.

    Example:
        >>> from unweave.data.items import ItemRows
        >>> rows = ItemRows([torch.rand(3, 8, 8) for _ in range(10)])
        >>> table = LazyTable(rows, torch.zeros(10, 0), [])
        >>> table.render(torch.tensor([[0], [7]])).shape
        torch.Size([2, 3, 8, 8])
    """

    def __init__(self, reader: RowReader, c: Tensor, factors: Sequence[Factor]) -> None:
        super().__init__(len(reader), reader.shape, c, factors)
        self.reader: RowReader = reader

    def render(self, points: Tensor) -> Tensor:
        """Read rows, to the device of the points."""
        rows = points[..., 0]
        if rows.numel() and (int(rows.min()) < 0 or int(rows.max()) >= len(self)):
            raise IndexError(f"row numbers from {int(rows.min())} to {int(rows.max())}: there are {len(self):,} rows")
        x = torch.from_numpy(self.reader.read(rows.flatten().numpy(force=True))).to(points.device)
        return as_float(x).reshape(*rows.shape, *self.shape)

    def all_points(self, limit: int) -> Tensor | None:
        """Return all rows, unless there are more than `limit` and their observations would not fit into memory."""
        if len(self) > limit and len(self) * prod(self.shape) > MAX_STORED_ELEMENTS:
            warnings.warn(
                f"{len(self):,} observations are read on demand and too large to be held as floats: where many are "
                f"needed at once, a random sample of {limit:,} is used",
                stacklevel=2,
            )
            return None
        return torch.arange(len(self), device=self.c.device)[:, None]


def open_rows(source: Any, memory: float = DEFAULT_MEMORY) -> RowReader | np.ndarray:
    """Return a reader of the rows of a source, see `is_row_source`; images that fit into memory as an array.

    Args:
        source: A memory map, an h5py or zarr array, a dataset with `__len__` and `__getitem__`, or a list of images or
            their paths.
        memory: Gigabytes of rows to keep. The operating system keeps those of a memory map.
    """
    if isinstance(source, np.memmap):
        return MappedRows(source)
    if isinstance(source, list | tuple) and isinstance(source[0], str | Path):
        rows = read_image_files([Path(path) for path in source], memory * GIGABYTE)
        return rows if isinstance(rows, np.ndarray) else cached(rows, memory)
    reader = source if isinstance(source, RowReader) else None
    reader = reader or (StoredRows(source) if is_stored_array(source) else ItemRows(source))
    return cached(reader, memory)


def cached(reader: RowReader, memory: float) -> RowReader:
    """Return a reader that keeps as many of its rows as fit into `memory` gigabytes; the system does it for a map."""
    if isinstance(reader, MappedRows):
        return reader
    cache = RowCache(reader, memory * GIGABYTE)
    return cache if cache.capacity else reader
