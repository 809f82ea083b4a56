"""Random images per second into a training batch of 64, on the CPU: ours, and an .npz behind a DataLoader.

The peer's way: the same images in an .npz, a Dataset that gives one float tensor per index, a DataLoader that
shuffles, collates and uses two workers. Both give float tensors in [0, 1] with their factors. "compiled" is our
rendering after torch.compile, as a compiled training step has it. Run alone, on a quiet machine.
"""

import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from unweave.data.core import FactorData
from unweave.datasets import DSprites, Shapes3D
from unweave.datasets.dsprites import Sprites
from unweave.datasets.shapes3d import Room

BATCH = 64
STORED = 40_000  # images in the peer's file: enough that the file is not the point
ROUNDS = 5


class Stored(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """What the field's toolkits do: arrays from an .npz, one item at a time."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            self.images, self.factors = arrays["imgs"], arrays["factors"]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1)  # files hold height, width, channel
        return image.float() / 255, torch.from_numpy(self.factors[i])


def peer(path: Path) -> Iterator[Any]:
    """An endless stream of batches."""
    loader = DataLoader(Stored(path), BATCH, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True)
    while True:
        yield from loader


def rate(batches: Iterator[Any], count: int) -> float:
    """Images per second over `count` batches, after two to warm up."""
    for _ in range(2):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    return count * BATCH / (time.perf_counter() - start)


def ours(data: FactorData, *, compiled: bool) -> Iterator[Any]:
    rng = torch.Generator().manual_seed(0)
    render = torch.compile(data.render, fullgraph=True) if compiled else data.render
    while True:
        points = data.sample(BATCH, rng)
        yield render(points), data.labels(points)


def compare(name: str, data: FactorData, folder: Path) -> dict[str, float]:
    x, c = data.draw(STORED, torch.Generator().manual_seed(1))
    np.savez(folder / f"{name}.npz", imgs=(x * 255).round().byte().permute(0, 2, 3, 1).numpy(), factors=c.numpy())
    del x
    stream = peer(folder / f"{name}.npz")
    mine = [ours(data, compiled=compiled) for compiled in (False, True)]
    # Interleaved, so that all see the same load.
    rounds = [(*(rate(way, 300) for way in mine), rate(stream, 100)) for _ in range(ROUNDS)]
    eager, compiled, slow = (statistics.median(side) for side in zip(*rounds, strict=True))
    print(f"{name}: DataLoader {slow:,.0f} images/s; unweave {eager:,.0f}, {eager / slow:.1f} times as fast; ", end="")
    print(f"compiled {compiled:,.0f}, {compiled / slow:.1f} times as fast")
    return {"dataloader": slow, "unweave": eager, "compiled": compiled}


def main() -> None:
    torch.set_num_threads(2)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sprites = DSprites(source="rendered").load()
    assert isinstance(sprites, Sprites)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"dsprites: all {len(sprites):,} images rendered in {seconds:.1f} s, {sprites.bits.nbytes / 1e6:.0f} MB kept")
    print(f"  (process: {before / 1e3:.0f} MB before, {after / 1e3:.0f} MB at most)")
    room = Shapes3D(source="rendered").load()
    assert isinstance(room, Room)
    print(f"shapes3d: {len(room):,} images from {room.basis.nbytes / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        results = {name: compare(name, d, Path(folder)) for name, d in (("dsprites", sprites), ("shapes3d", room))}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
