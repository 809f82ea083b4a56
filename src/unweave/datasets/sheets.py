"""Manifolds with known flat coordinates: what methods that rely on local isometry are tried on first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import pi
from typing import final

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError

TURNS = (1.5 * pi, 4.5 * pi)  # of the roll, as angles
HEIGHT = 30.0


@final
class FlatSheet(Dataset):
    """Factors that are uniform on [0, 1], each along one turn of a helix of its own: curved, and exactly isometric."""

    name = "flat-sheet"
    paper = "Horan, Richardson and Weiss (2021), the assumption of local isometry"

    dimensions: int = 2
    """how many factors"""
    width: int = 50
    """how many numbers are observed: a random rotation spreads the helices over them"""
    points: int = 3_000
    """number of observations"""
    seed: int = 0
    """the same seed gives the same observations"""

    def load(self) -> FactorData:
        k = self.dimensions
        if k < 1 or self.width < 3 * k:
            raise InputError(
                f"dimensions={k}, width={self.width}: expected one factor at least, and three numbers for each"
            )
        spread = np.linalg.qr(np.random.default_rng(self.seed).normal(size=(self.width, 3 * k)))[0]
        rotation = torch.from_numpy(spread)  # (width, 3 k), orthonormal columns

        def mix(z: Tensor) -> Tensor:  # (..., k) -> (..., width)
            turn = 2 * pi * z.double()
            helices = torch.cat([turn.cos() / (2 * pi), turn.sin() / (2 * pi), z.double()], -1)
            return helices @ rotation.to(z.device).T

        names = [Factor(f"z{j + 1}", None, "real") for j in range(k)]
        return Mixing(
            names, (self.width,), _uniform(torch.zeros(k), torch.ones(k)), mix, points=self.points, seed=self.seed
        )


@final
class SwissRoll(Dataset):
    """The Swiss roll, a turn and a half, uniform along its length and its height: two factors in three dimensions."""

    name = "swiss-roll"
    paper = "Tenenbaum, de Silva and Langford (2000); coordinates as in Donoho and Grimes (2003)"

    points: int = 3_000
    """number of observations"""
    seed: int = 0
    """the same seed gives the same observations"""

    def load(self) -> FactorData:
        angles, lengths = _unrolled()

        def mix(z: Tensor) -> Tensor:  # (..., 2) -> (..., 3)
            t = torch.from_numpy(np.interp(z[..., 0].cpu().numpy(), lengths, angles)).to(z.device)
            return torch.stack([t * t.cos(), z[..., 1].double(), t * t.sin()], -1)

        low, high = torch.zeros(2), torch.tensor([float(lengths[-1]), HEIGHT])
        names = [Factor("length", None, "real"), Factor("height", None, "real")]
        return Mixing(names, (3,), _uniform(low, high), mix, points=self.points, seed=self.seed)


@cache
def _unrolled() -> tuple[np.ndarray, np.ndarray]:
    """Angles of the roll and the length of the spiral up to each."""
    t = np.linspace(*TURNS, 20_000)
    step = np.sqrt(1 + ((t[1:] + t[:-1]) / 2) ** 2) * np.diff(t)
    return t, np.concatenate([[0], np.cumsum(step)])


def _uniform(low: Tensor, high: Tensor) -> Callable[[int, Generator], Tensor]:
    def prior(n: int, rng: Generator) -> Tensor:
        draws = torch.rand(n, len(low), generator=rng, device=rng.device)
        return low.to(rng.device) + (high - low).to(rng.device) * draws

    return prior
