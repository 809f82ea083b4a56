"""Affine transformations of images, batched on the device."""

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
    """Return matrices (n, 2, 3) that rotate, scale and then shift images, for `torch.nn.functional.affine_grid`.

    Args:
        angle: Counter-clockwise rotation in degrees, (n,).
        shift: Shift to the right and down as a fraction of width and height, (n, 2).
        scale: Magnification, (n,).
        aspect: Width of the images divided by their height. A rotation in pixels is not one in the coordinates of
            `affine_grid`, from -1 to 1 along both sides.

    Returns:
        Matrices that map positions in the new image to positions in the old one.
    """
    c, s = torch.deg2rad(angle).cos() / scale, torch.deg2rad(angle).sin() / scale
    inverse = torch.stack([torch.stack([c, -s / aspect], -1), torch.stack([s * aspect, c], -1)], -2)  # y points down
    return torch.cat([inverse, -inverse @ (2 * shift)[..., None]], -1)


def warp(images: Tensor, theta: Tensor) -> Tensor:
    """Transform images (n, channels, h, w) by matrices (n, 2, 3), bilinearly; pixels from outside are black."""
    grid = F.affine_grid(theta.to(images), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def shift_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Rotate the hue of colored images (n, 3, h, w) by shares of the color circle, (n,); value and saturation stay.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
        >>> shift_hue(red, torch.tensor([1 / 3])).flatten().round(decimals=3).abs()
        tensor([0., 1., 0.])
    """
    value, strongest = images.max(1, keepdim=True)
    chroma = value - images.amin(1, keepdim=True)
    r, g, b = images[:, :1], images[:, 1:2], images[:, 2:]
    difference = torch.where(strongest == 0, g - b, torch.where(strongest == 1, b - r, r - g))
    sextant = 2 * strongest + difference / chroma.clamp(min=1e-12) + 6 * turns[:, None, None, None].to(images)
    k = (torch.tensor([5.0, 3.0, 1.0], device=images.device)[:, None, None] + sextant) % 6
    return value - chroma * torch.minimum(k, 4 - k).clamp(0, 1)


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
    """Draw n matrices (n, 2, 3) of some `KINDS`: shifts in +-`shift`, rotations in [0, `angle`], scales in `scale`."""
    u = torch.rand(
        n, 4, generator=rng, device=rng.device
    )  # always all four, so that the random stream does not depend on `kinds`
    shifts = (2 * u[:, :2] - 1) * (shift if "translation" in kinds else 0.0)
    angles = u[:, 2] * (angle if "rotation" in kinds else 0.0)
    scales = scale[0] + (scale[1] - scale[0]) * u[:, 3] if "scaling" in kinds else torch.ones_like(u[:, 3])
    return affine(angles, shifts, scales, aspect)
