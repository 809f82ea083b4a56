"""Manifolds with known flat coordinates, to test methods that rely on local isometry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import pi
from typing import final

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError

TURNS = (1.5 * pi, 4.5 * pi)  # first and last angle of the roll, in radians
HEIGHT = 30.0


@final
class FlatSheet(Dataset):
    """Uniform factors on [0, 1], each along one turn of its own helix: a curved but exactly isometric manifold.

    Example:
        >>> FlatSheet(points=100).load().shape
        (50,)
    """

    name = "flat-sheet"
    loads_fast = True
    paper = "Horan, Richardson and Weiss (2021), the assumption of local isometry"

    dimensions: int = 2
    """Number of factors."""
    width: int = 50
    """Number of observed features; a random rotation mixes the helices into them."""
    points: int = 3_000
    """Number of observations."""
    seed: int = 0
    """Seed of the random sample."""

    def load(self) -> Mixing:
        k = self.dimensions
        if k < 1 or self.width < 3 * k:
            raise InputError(
                f"dimensions={k}, width={self.width}: expected at least one factor, and three features for each"
            )
        columns = np.linalg.qr(np.random.default_rng(self.seed).normal(size=(self.width, 3 * k)))[0]
        rotation = torch.from_numpy(columns)  # (width, 3 k), orthonormal columns

        def mix(z: Tensor) -> Tensor:  # (..., k) -> (..., width)
            turn = 2 * pi * z.double()
            helices = torch.cat([turn.cos() / (2 * pi), turn.sin() / (2 * pi), z.double()], -1)
            return helices @ rotation.to(z.device).T

        factors = [Factor(f"z{j + 1}", None, "real") for j in range(k)]
        return Mixing(
            factors, (self.width,), _uniform(torch.zeros(k), torch.ones(k)), mix, points=self.points, seed=self.seed
        )


@final
class SwissRoll(Dataset):
    """The Swiss roll, one and a half turns, uniform in length and height: two factors in three dimensions.

    Example:
        >>> SwissRoll(points=100).load().shape
        (3,)
    """

    name = "swiss-roll"
    loads_fast = True
    paper = "Tenenbaum, de Silva and Langford (2000); coordinates as in Donoho and Grimes (2003)"

    points: int = 3_000
    """Number of observations."""
    seed: int = 0
    """Seed of the random sample."""

    def load(self) -> Mixing:
        angles, lengths = _arc_lengths()

        def mix(z: Tensor) -> Tensor:  # (..., 2) -> (..., 3)
            t = torch.from_numpy(np.interp(z[..., 0].cpu().numpy(), lengths, angles)).to(z.device)
            return torch.stack([t * t.cos(), z[..., 1].double(), t * t.sin()], -1)

        low, high = torch.zeros(2), torch.tensor([float(lengths[-1]), HEIGHT])
        factors = [Factor("length", None, "real"), Factor("height", None, "real")]
        return Mixing(factors, (3,), _uniform(low, high), mix, points=self.points, seed=self.seed)


@cache
def _arc_lengths() -> tuple[np.ndarray, np.ndarray]:
    """Return angles of the spiral and its arc length up to each."""
    t = np.linspace(*TURNS, 20_000)
    step = np.sqrt(1 + ((t[1:] + t[:-1]) / 2) ** 2) * np.diff(t)
    return t, np.concatenate([[0], np.cumsum(step)])


def _uniform(low: Tensor, high: Tensor) -> Callable[[int, Generator], Tensor]:
    """Return a sampler of independent uniform sources between `low` and `high`, (k,) each."""

    def prior(n: int, rng: Generator) -> Tensor:
        draws = torch.rand(n, len(low), generator=rng, device=rng.device)
        return low.to(rng.device) + (high - low).to(rng.device) * draws

    return prior
