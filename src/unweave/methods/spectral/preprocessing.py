"""Observations as points of few dimensions: smoothed if they are images, projected to their main directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Generator, Tensor

from unweave.data.core import split_rows
from unweave.utils.errors import InputError

SUBSET = 1_500  # observations that the main directions are learned from
AT_ONCE = 2**25  # numbers that are held as floats at a time
EXACT = 512  # up to so many columns or rows the main directions are computed exactly
SPARE = 10  # directions more than asked for, and
POWERS = 1  # rounds of iteration, that make a random projection find the main ones


class Projection(NamedTuple):
    """A linear map from observations to points."""

    mean: Tensor  # (features,)
    components: Tensor  # (keep, features)

    def __call__(self, x: Tensor) -> Tensor:
        """(n, *shape) -> (n, keep), in double precision."""
        flat = x.flatten(1)
        if flat.dtype == torch.float64:
            return (flat - self.mean) @ self.components.T
        components = self.components.to(flat)
        return (flat @ components.T).double() - (self.components @ self.mean)


def smoothed(x: Tensor, sigma: float, shape: tuple[int, ...]) -> Tensor:
    """Rows (n, features) that are images of a shape, blurred by a Gaussian of so many pixels; zero outside."""
    if not sigma:
        return x
    images = x.reshape(-1, *shape).numpy()
    widths = (0,) * (images.ndim - 2) + (sigma, sigma)
    return torch.from_numpy(gaussian_filter(images, widths, mode="constant")).reshape(len(x), -1)


def fit_projection(x: Tensor, keep: int, sigma: float, shape: tuple[int, ...], rng: Generator) -> Projection:
    """The main directions of the rows x (n, features), blurred by sigma.

    A blur with zeros outside equals its own transpose, so it is folded into the directions: new observations are never
    blurred, only projected.
    """
    mean, directions = main_directions(smoothed(x, sigma, shape), keep, rng)
    if not sigma:
        return Projection(mean, directions)
    folded = smoothed(directions, sigma, shape)
    return Projection(x.mean(0).double(), folded)


def main_directions(x: Tensor, keep: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """The mean (features,) of rows x (n, features) and up to `keep` of their leading directions, (rank, features).

    Exact where there are few rows or columns; else by a random projection and power iteration (Halko, Martinsson and
    Tropp, 2011), which `torch.svd_lowrank` does too, but from the global generator and on a centered copy of the rows.
    Directions without variance are left out; the largest weight of each is positive.
    """
    mean = x.mean(0)
    if min(x.shape) <= EXACT:
        _, spread, directions = torch.linalg.svd((x - mean).double(), full_matrices=False)
    else:
        # The rows are never centered, which would copy them: (x - 1 m') A = x A - 1 (m' A).
        start = torch.randn(x.shape[1], min(keep + SPARE, *x.shape), generator=rng).to(x)
        Q = torch.linalg.qr(x @ start - mean @ start)[0]
        for _ in range(POWERS):
            R = torch.linalg.qr(x.T @ Q - torch.outer(mean, Q.sum(0)))[0]
            Q = torch.linalg.qr(x @ R - mean @ R)[0]
        short = Q.T @ x - torch.outer(Q.sum(0), mean)
        _, spread, directions = torch.linalg.svd(short.double(), full_matrices=False)
    directions = directions[:keep]
    rank = int((spread[:keep] > 1e-6 * spread[0]).sum()) if float(spread[0]) > 0 else 0
    directions = directions[:rank]
    sign = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    return mean.double(), directions * sign


def project(view: Projection, render: Callable[[Tensor], Tensor], points: Tensor, features: int) -> Tensor:
    """All observations as points, (n, keep): rendered, projected and forgotten a part at a time."""
    return finite(torch.cat([view(render(part)) for part in split_rows(points, AT_ONCE // features)]))


def finite(points: Tensor) -> Tensor:
    """The same points, or an error that names the one that is none."""
    if not torch.isfinite(points).all():
        bad = int((~torch.isfinite(points)).any(1).nonzero()[0, 0])
        raise InputError(f"observation {bad} contains NaN or infinity: mend it, or leave it out")
    return points


def unique_rows(points: Tensor) -> Tensor:
    """The numbers of the rows that are not copies of earlier ones: coinciding neighbors say nothing of a manifold."""
    rows = np.ascontiguousarray(points.numpy())
    whole = rows.itemsize * rows.shape[1] % 8 == 0
    bits = rows.view(np.uint64) if whole else rows.view(np.uint32).astype(np.uint64)
    odd = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    # A quick hash of each row, modulo 2^64; rows that share one are compared, and all of them if any differ.
    _, first, home = np.unique(bits @ odd, return_index=True, return_inverse=True)
    if len(first) < len(rows) and not np.array_equal(bits[first[home]], bits):
        _, first = np.unique(bits, axis=0, return_index=True)
    return torch.from_numpy(np.sort(first))
