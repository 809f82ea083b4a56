"""Images of a moving square: the two simple manifolds of the HLLE+ICA paper, rendered from a few numbers."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError

PAPER = "Horan, Richardson and Weiss (2021), Sec. 4"


@final
class SquaresXY(Dataset):
    """A white square on black, moved in x and y, both uniform: locally isometric to its position."""

    name = "squares-xy"
    paper = PAPER

    points: int = 3_000
    """number of images"""
    size: int = 64
    """width and height of an image in pixels"""
    side: float = 16.0
    """side of the square in pixels"""
    blur: float = 0.0
    """standard deviation, in pixels, of the smoothing of its edges; 0 keeps them hard"""
    seed: int = 0
    """the same seed gives the same images"""

    def load(self) -> FactorData:
        room = _room(self.size, self.side, self.blur)

        def prior(n: int, rng: Generator) -> Tensor:
            return torch.rand(n, 2, generator=rng, device=rng.device) * room

        def mix(c: Tensor) -> Tensor:  # (..., 2) -> (..., 1, size, size)
            x, y = (self._profile(c[..., i]) for i in (0, 1))
            return (y[..., :, None] * x[..., None, :])[..., None, :, :]

        factors = (Factor("x"), Factor("y"))
        return Mixing(factors, (1, self.size, self.size), prior, mix, points=self.points, seed=self.seed)

    def _profile(self, start: Tensor) -> Tensor:
        return profile(start, self.size, self.side, self.blur)


@final
class SquaresXC(Dataset):
    """A colored square on black, moved along the diagonal; position and color are uniform."""

    name = "squares-xc"
    paper = PAPER

    points: int = 3_000
    """number of images"""
    size: int = 64
    """width and height of an image in pixels"""
    side: float = 16.0
    """side of the square in pixels"""
    blur: float = 0.0
    """standard deviation, in pixels, of the smoothing of its edges; 0 keeps them hard"""
    seed: int = 0
    """the same seed gives the same images"""

    def load(self) -> FactorData:
        room = _room(self.size, self.side, self.blur)

        def prior(n: int, rng: Generator) -> Tensor:
            return torch.rand(n, 2, generator=rng, device=rng.device) * torch.tensor([room, 1.0], device=rng.device)

        def mix(c: Tensor) -> Tensor:  # (..., 2) -> (..., 3, size, size)
            p = profile(c[..., 0], self.size, self.side, self.blur)
            # Colors on a quarter circle of constant norm, red to green: equal steps of hue are equal steps of x.
            angle = c[..., 1] * (math.pi / 2)
            rgb = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], -1)
            return rgb[..., :, None, None] * (p[..., :, None] * p[..., None, :])[..., None, :, :]

        factors = (Factor("position"), Factor("color"))
        return Mixing(factors, (3, self.size, self.size), prior, mix, points=self.points, seed=self.seed)


def profile(start: Tensor, size: int, side: float, blur: float) -> Tensor:
    """How much of each pixel an interval [start, start + side] covers, (...) -> (..., size)."""
    left = torch.arange(size, dtype=start.dtype, device=start.device)
    start = start[..., None]
    if blur == 0:
        return (torch.minimum(left + 1, start + side) - torch.maximum(left, start)).clamp(0, 1)
    center = left + 0.5
    return torch.special.ndtr((start + side - center) / blur) - torch.special.ndtr((start - center) / blur)


def _room(size: int, side: float, blur: float) -> float:
    """How far the square can move without leaving the image."""
    if not 0 < side < size:
        raise InputError(f"a square of side {side:g} cannot move in an image of {size} x {size}: side must be smaller")
    if blur < 0:
        raise InputError(f"blur={blur:g}: expected pixels, 0 or more")
    return size - side
