"""Observations that share the value of one factor, drawn from data that can render any combination."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData, IndexedData
from unweave.metrics.factors import ENOUGH, alive, classes
from unweave.utils.errors import InputError

CHUNK = 4_096  # images that are rendered and encoded at a time


class Shared(NamedTuple):
    """Codes of sets of observations; all of a set share the value of a factor, the same one in all sets of a vote."""

    codes: np.ndarray  # (votes, sets, size, d): the codes that ever change, with unit variance over all data
    factor: np.ndarray  # (votes,)


def shared(
    data: FactorData, method: Any, *, votes: int, sets: int, size: int, prune: float = 0.0, seed: int = 0
) -> Shared:
    """For every vote a random factor, and sets of observations that share its value, encoded by a fitted method."""
    sought = [j for j, f in enumerate(data.factors) if not f.noise and (f.size is None or len(data.levels(j)) > 1)]
    if len(sought) < 2:
        raise InputError("this score tells factors apart: the data need two at least")
    if not hasattr(method, "transform"):
        raise InputError(f"{type(method).__name__} in place of codes: with data, give a fitted method")
    rng = Generator().manual_seed(seed)
    everything = np.concatenate([_encoded(method, data, data.sample(CHUNK, rng)) for _ in range(2)])
    living = alive(everything) & (everything.std(0) >= prune * everything.std(0).max(initial=0))
    factor = torch.randint(len(sought), (votes,), generator=rng).numpy()
    codes = np.zeros((votes, sets, size, int(living.sum())))
    for k, j in enumerate(sought):
        mine = np.flatnonzero(factor == k)
        for part in np.array_split(mine, max(1, len(mine) * sets * size // CHUNK)) if len(mine) else ():
            points = fixed(data, j, len(part) * sets, size, rng)  # (part * sets, size, p)
            z = _encoded(method, data, points.flatten(0, 1))[:, living] / everything.std(0)[living]
            codes[part] = z.reshape(len(part), sets, size, -1)
    return Shared(codes, factor)


def fixed(data: FactorData, j: int, sets: int, size: int, rng: Generator) -> Tensor:
    """Points of which each set shares factor j, everything else being as the data have it, (sets, size, p)."""
    if isinstance(data, IndexedData):
        return _listed(data, j, sets, size, rng)
    c = data.labels(data.sample(sets * size, rng)).clone().view(sets, size, -1)  # (sets, size, k)
    c[..., j] = c[:, :1, j]
    return data.locate(c.flatten(0, 1), rng).view(sets, size, -1)


def _listed(data: IndexedData, j: int, sets: int, size: int, rng: Generator) -> Tensor:
    """From a list, by picking among the points that have one value: no combination is asked for that is not there."""
    points, c = data.listing()
    column = c[:, j].numpy(force=True).astype(np.float64)
    group = torch.from_numpy(classes(column, discrete=data.factors[j].size is not None))
    order, counts = group.argsort(stable=True), group.bincount()
    first = counts.cumsum(0) - counts
    large = (counts >= min(size, ENOUGH)).nonzero()[:, 0]
    if not len(large):
        raise InputError(f"no value of {data.factors[j].name} has {ENOUGH} rows or more: give more samples")
    value = large[torch.randint(len(large), (sets, 1), generator=rng)]
    place = (torch.rand(sets, size, generator=rng) * counts[value]).long()
    return points[order[first[value] + place]]


def _encoded(method: Any, data: FactorData, points: Tensor) -> np.ndarray:
    return np.asarray(method.transform(data.render(points).numpy(force=True)), dtype=np.float64)
