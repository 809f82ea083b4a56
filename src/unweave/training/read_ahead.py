"""Reading ahead: while a step is taken, a thread reads the observations of the next ones."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import as_float
from unweave.data.rows import RowReader

BLOCK_STEPS = 8  # steps whose observations are read at a time, fewer if they are large
BLOCK_BYTES = 2**24  # of observations that are read at a time
BLOCKS_AHEAD = 2  # blocks that are read while the steps of another one are taken

Block = dict[str, np.ndarray]
"""Rows of some steps by the name of the view, (lanes?, steps, batch, *shape)."""


class ReadAhead:
    """The observations of a chunk of steps, read on demand and a few steps ahead.

    Reading changes no result: rows depend on the plan alone, which is sampled before.
    """

    def __init__(self, reader: RowReader, axis: int) -> None:
        """Read from a reader; `axis` is the axis of steps in the tensors of a chunk."""
        self.reader, self.axis = reader, axis
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="unweave-read-ahead")
        self._blocks: deque[Future[Block]] = deque()
        self._current: tuple[int, Block] = -1, {}  # the block that steps are taken from, and its number

    def start(self, points: dict[str, Tensor], steps: int) -> None:
        """Begin to read a chunk; points are row numbers, (lanes?, steps, batch, 1), by the name of the view."""
        for block in self._blocks:  # a chunk that was not used up
            block.cancel()
        self._blocks.clear()
        self._current = -1, {}
        self._rows = {name: v[..., 0].numpy(force=True) for name, v in points.items()}
        row_bytes = self.reader.size_in_bytes() // len(self.reader)
        step_bytes = sum(v.size for v in self._rows.values()) // steps * row_bytes
        self._block_steps = max(1, min(BLOCK_STEPS, BLOCK_BYTES // max(1, step_bytes)))
        self._unread = deque(range(0, steps, self._block_steps))
        self._submit()

    def views(self, i: int, device: torch.device) -> dict[str, Tensor]:
        """Return the observations of step i by the name of the view, (lanes?, batch, *shape); steps go upward."""
        number, k = divmod(i, self._block_steps)
        while self._current[0] < number:
            block = self._blocks.popleft()
            self._submit()
            self._current = self._current[0] + 1, block.result()
        views = {name: np.take(x, k, self.axis) for name, x in self._current[1].items()}
        return {name: as_float(torch.from_numpy(x).to(device)).float() for name, x in views.items()}

    def _submit(self) -> None:
        while self._unread and len(self._blocks) < BLOCKS_AHEAD:
            self._blocks.append(self._thread.submit(self._read, self._unread.popleft()))

    def _read(self, start: int) -> Block:
        """Read the steps of a block from its first one on."""
        block: Any = {}
        for name, rows in self._rows.items():
            part = rows.take(range(start, min(start + self._block_steps, rows.shape[self.axis])), self.axis)
            block[name] = self.reader.read(part.ravel()).reshape(*part.shape, *self.reader.shape)
        return block
