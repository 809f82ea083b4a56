"""Images of a moving square: the two simple manifolds of the HLLE+ICA paper."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Generator, Tensor

from unweave.data.containers import Mixing
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError

PAPER = "Horan, Richardson and Weiss (2021), Sec. 4"


@final
class SquaresXY(Dataset):
    """A white square on black at a uniform position (x, y): images are locally isometric to the position.

    Example:
        >>> SquaresXY(points=100).load().shape
        (1, 64, 64)
    """

    name = "squares-xy"
    loads_fast = True
    paper = PAPER

    points: int = 3_000
    """Number of images."""
    size: int = 64
    """Width and height of an image in pixels."""
    side: float = 16.0
    """Side of the square in pixels."""
    blur: float = 0.0
    """Standard deviation of the blur of its edges in pixels; 0 keeps them sharp."""
    seed: int = 0
    """Seed of the random sample."""

    def load(self) -> Mixing:
        distance = _check_range(self.size, self.side, self.blur)

        def prior(n: int, rng: Generator) -> Tensor:
            return torch.rand(n, 2, generator=rng, device=rng.device) * distance

        def mix(c: Tensor) -> Tensor:  # (..., 2) -> (..., 1, size, size)
            x, y = (profile(c[..., i], self.size, self.side, self.blur) for i in (0, 1))
            return (y[..., :, None] * x[..., None, :])[..., None, :, :]

        factors = (Factor("x"), Factor("y"))
        return Mixing(factors, (1, self.size, self.size), prior, mix, points=self.points, seed=self.seed)


@final
class SquaresXC(Dataset):
    """A colored square on black, moved along the diagonal; position and color are uniform.

    Example:
        >>> SquaresXC(points=100).load().shape
        (3, 64, 64)
    """

    name = "squares-xc"
    loads_fast = True
    paper = PAPER

    points: int = 3_000
    """Number of images."""
    size: int = 64
    """Width and height of an image in pixels."""
    side: float = 16.0
    """Side of the square in pixels."""
    blur: float = 0.0
    """Standard deviation of the blur of its edges in pixels; 0 keeps them sharp."""
    seed: int = 0
    """Seed of the random sample."""

    def load(self) -> Mixing:
        distance = _check_range(self.size, self.side, self.blur)

        def prior(n: int, rng: Generator) -> Tensor:
            return torch.rand(n, 2, generator=rng, device=rng.device) * torch.tensor([distance, 1.0], device=rng.device)

        def mix(c: Tensor) -> Tensor:  # (..., 2) -> (..., 3, size, size)
            p = profile(c[..., 0], self.size, self.side, self.blur)
            # Colors on a quarter circle of constant norm, red to green: equal steps of hue are equal steps of x.
            angle = c[..., 1] * (math.pi / 2)
            rgb = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], -1)
            return rgb[..., :, None, None] * (p[..., :, None] * p[..., None, :])[..., None, :, :]

        factors = (Factor("position"), Factor("color"))
        return Mixing(factors, (3, self.size, self.size), prior, mix, points=self.points, seed=self.seed)


def profile(start: Tensor, size: int, side: float, blur: float) -> Tensor:
    """Return the fraction of each pixel that the interval [start, start + side] covers, (...) -> (..., size)."""
    left = torch.arange(size, dtype=start.dtype, device=start.device)
    start = start[..., None]
    if blur == 0:
        return (torch.minimum(left + 1, start + side) - torch.maximum(left, start)).clamp(0, 1)
    center = left + 0.5
    return torch.special.ndtr((start + side - center) / blur) - torch.special.ndtr((start - center) / blur)


def _check_range(size: int, side: float, blur: float) -> float:
    """Return how far the square can move without leaving the image, in pixels."""
    if not 0 < side < size:
        raise InputError(
            f"a square of side {side:g} cannot move in an image of {size} x {size}: expected a smaller side"
        )
    if blur < 0:
        raise InputError(f"blur={blur:g}: expected pixels, 0 or more")
    return size - side
