"""Sets of observations in which one factor is constant, for the BetaVAE and FactorVAE scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData, IndexedData
from unweave.metrics.factors import MIN_GROUP_SIZE, active_codes, classes
from unweave.utils.errors import InputError

CHUNK_SIZE = 4_096  # observations that are rendered and encoded at a time


class EncodedSets(NamedTuple):
    """Codes of sets of observations: one factor is constant in each set, the same one in all sets of a vote."""

    codes: np.ndarray  # (votes, sets, size, d): active codes, divided by their deviation over all data
    factor: np.ndarray  # (votes,)


def encode_sets(
    data: FactorData, method: Any, *, votes: int, sets: int, size: int, prune: float = 0.0, seed: int = 0
) -> EncodedSets:
    """Draw a factor for every vote and sets of observations that share its value, and encode them."""
    candidates = [j for j, f in enumerate(data.factors) if not f.noise and (f.size is None or len(data.levels(j)) > 1)]
    if len(candidates) < 2:
        raise InputError("this score compares factors: the data need at least two")
    if not hasattr(method, "transform"):
        raise InputError(f"{type(method).__name__} in place of codes: with data, give a fitted method")
    rng = Generator().manual_seed(seed)
    reference = np.concatenate([_encode(method, data, data.sample(CHUNK_SIZE, rng)) for _ in range(2)])
    scale = reference.std(0)
    active = active_codes(reference) & (scale >= prune * scale.max(initial=0))
    factor = torch.randint(len(candidates), (votes,), generator=rng).numpy()
    codes = np.zeros((votes, sets, size, int(active.sum())))
    for k, j in enumerate(candidates):
        own = np.flatnonzero(factor == k)
        for chunk in np.array_split(own, max(1, len(own) * sets * size // CHUNK_SIZE)) if len(own) else ():
            points = sample_sets(data, j, len(chunk) * sets, size, rng)  # (chunk * sets, size, p)
            z = _encode(method, data, points.flatten(0, 1))[:, active] / scale[active]
            codes[chunk] = z.reshape(len(chunk), sets, size, -1)
    return EncodedSets(codes, factor)


def sample_sets(data: FactorData, j: int, sets: int, size: int, rng: Generator) -> Tensor:
    """Draw sets of points, (sets, size, p): factor j is constant in a set, all others follow the data."""
    if isinstance(data, IndexedData):
        return _sample_listed_sets(data, j, sets, size, rng)
    c = data.labels(data.sample(sets * size, rng)).clone().view(sets, size, -1)  # (sets, size, k)
    c[..., j] = c[:, :1, j]
    return data.locate(c.flatten(0, 1), rng).view(sets, size, -1)


def _sample_listed_sets(data: IndexedData, j: int, sets: int, size: int, rng: Generator) -> Tensor:
    """Draw from the points that have one value: a list may lack combinations of factors."""
    points, c = data.listing()
    column = c[:, j].numpy(force=True).astype(np.float64)
    group = torch.from_numpy(classes(column, discrete=data.factors[j].size is not None))
    order, counts = group.argsort(stable=True), group.bincount()
    first = counts.cumsum(0) - counts
    large = (counts >= min(size, MIN_GROUP_SIZE)).nonzero()[:, 0]
    if not len(large):
        raise InputError(f"no value of {data.factors[j].name} has {MIN_GROUP_SIZE} rows or more: give more samples")
    value = large[torch.randint(len(large), (sets, 1), generator=rng)]
    place = (torch.rand(sets, size, generator=rng) * counts[value]).long()
    return points[order[first[value] + place]]


def _encode(method: Any, data: FactorData, points: Tensor) -> np.ndarray:
    return np.asarray(method.transform(data.render(points).numpy(force=True)), dtype=np.float64)
