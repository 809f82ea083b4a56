"""Affine transformations of images, batched on the device: for augmented sets and rotated digits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

# Self-supervised GIN, Appendix B: each transformation alone and all their combinations, seven in all.
KINDS = ("translation", "rotation", "scaling")
COMBINATIONS = tuple(c for size in (1, 2, 3) for c in itertools.combinations(KINDS, size))


def affine(angle: Tensor, shift: Tensor, scale: Tensor, aspect: float = 1.0) -> Tensor:
    """The matrices (n, 2, 3) that turn by degrees (n,), counter-clockwise, scale (n,), and then shift (n, 2).

    Shifts are shares of the width and the height, to the right and down. The matrices map places of the new image to
    places of the old one, in coordinates from -1 to 1, as `torch.nn.functional.affine_grid` wants them; in these, a
    turn of images that are `aspect` times as wide as high is none.
    """
    c, s = torch.deg2rad(angle).cos() / scale, torch.deg2rad(angle).sin() / scale
    back = torch.stack([torch.stack([c, -s / aspect], -1), torch.stack([s * aspect, c], -1)], -2)  # y runs downwards
    return torch.cat([back, -back @ (2 * shift)[..., None]], -1)


def warp(images: Tensor, theta: Tensor) -> Tensor:
    """Images (n, channels, h, w), moved by matrices (n, 2, 3), bilinearly; what comes in from outside is black."""
    grid = F.affine_grid(theta.to(images), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def draw_affine(
    n: int,
    rng: Generator,
    kinds: Sequence[str],
    *,
    shift: float = 0.1,
    angle: float = 5.0,
    scale: tuple[float, float] = (0.8, 1.25),
    aspect: float = 1.0,
) -> Tensor:
    """n random matrices (n, 2, 3) with the `kinds`: shifts up to +-0.1, turns by 0 to 5 degrees, scales 0.8 to 1.25."""
    u = torch.rand(n, 4, generator=rng, device=rng.device)  # always drawn, so that kinds do not change the stream
    moved = (2 * u[:, :2] - 1) * shift * ("translation" in kinds)
    turned = u[:, 2] * angle * ("rotation" in kinds)
    scaled = scale[0] + (scale[1] - scale[0]) * u[:, 3] if "scaling" in kinds else torch.ones_like(u[:, 3])
    return affine(turned, moved, scaled, aspect)
