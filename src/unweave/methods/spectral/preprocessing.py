"""Observations as points of few dimensions: images are blurred, and everything is projected by PCA."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Generator, Tensor

from unweave.data.core import FactorData, split_rows
from unweave.utils.errors import InputError, constant_data_error

MAX_SOLVED_POINTS = 5_000  # points that are embedded without landmarks, and preprocessed in one piece
PCA_SUBSET = 1_500  # observations that the principal directions are computed from
MAX_FLOAT_ELEMENTS = 2**25  # numbers held as floats at a time
MAX_EXACT_SIZE = 512  # rows or columns up to which the principal directions are computed exactly
EXTRA_DIRECTIONS = 10  # of a randomized PCA, besides those asked for
POWER_ITERATIONS = 1  # of a randomized PCA


class Projection(NamedTuple):
    """A linear map from observations to points."""

    mean: Tensor  # (features,)
    components: Tensor  # (components, features)

    def __call__(self, x: Tensor) -> Tensor:
        """Project observations, (n, *shape) -> (n, components), in double precision."""
        flat = x.flatten(1)
        if flat.dtype == torch.float64:
            return (flat - self.mean) @ self.components.T
        components = self.components.to(flat)
        return (flat @ components.T).double() - (self.components @ self.mean)


def project_data(
    data: FactorData, indices: Tensor, sigma: float, *, max_components: int, latent_dim: int, seed: int,
    rng: np.random.Generator,
) -> tuple[Projection, Tensor]:  # fmt: skip
    """Return a projection fitted to observations, and the projected observations without repeats, (n, components).

    Args:
        data: The observations.
        indices: The points of the data to use.
        sigma: Width of the Gaussian blur of images in pixels; 0 for none.
        max_components: Number of principal components; 0 for all.
        latent_dim: Number of components needed at least.
        seed: Seed of a randomized PCA.
        rng: Chooses the subset that the projection is fitted to.
    """
    n, features = len(indices), prod(data.shape)
    small = n <= MAX_SOLVED_POINTS and n * features <= MAX_FLOAT_ELEMENTS
    if small:  # all observations fit into memory as floats
        x = data.render(indices).flatten(1)
        kept = unique_rows(x)
        x = x if len(kept) == n else x[kept]
        n = len(x)
        sample = x[_choose_subset(n, rng)] if n > PCA_SUBSET else x
    else:
        sample = data.render(indices[_choose_subset(n, rng)]).flatten(1)
    if bool((check_finite_points(sample)[-1] == sample[0]).all()) and bool((sample == sample[:1]).all()):
        raise constant_data_error()
    count = min(max_components or features, features, max(n - 1, 1))
    projection = fit_projection(sample, count, sigma, data.shape, Generator().manual_seed(seed))
    if len(projection.components) < latent_dim:
        raise InputError(
            f"latent_dim={latent_dim} is more than the data allow: all their columns are combinations of "
            f"{len(projection.components)}; lower it"
        )
    points = check_finite_points(projection(x)) if small else _project_in_batches(projection, data, indices)
    scale = float(points.abs().max()) or 1.0  # Gram matrices are in single precision: keep them near one
    points, projection = points / scale, Projection(projection.mean, projection.components / scale)
    return projection, points if small else points[unique_rows(points)]


def _choose_subset(n: int, rng: np.random.Generator) -> Tensor:
    """Return the row indices, ascending, that the principal directions are computed from."""
    return torch.from_numpy(np.sort(rng.choice(n, min(n, PCA_SUBSET), replace=False)))


def _project_in_batches(projection: Projection, data: FactorData, indices: Tensor) -> Tensor:
    """Render and project a batch of observations at a time, (n, components)."""
    batches = split_rows(indices, MAX_FLOAT_ELEMENTS // prod(data.shape))
    return check_finite_points(torch.cat([projection(data.render(batch)) for batch in batches]))


def blur_images(x: Tensor, sigma: float, shape: tuple[int, ...]) -> Tensor:
    """Blur images of a shape, flattened to rows (n, features), by a Gaussian of `sigma` pixels; zero outside."""
    if not sigma:
        return x
    images = x.reshape(-1, *shape).numpy()
    widths = (0,) * (images.ndim - 2) + (sigma, sigma)
    return torch.from_numpy(gaussian_filter(images, widths, mode="constant")).reshape(len(x), -1)


def fit_projection(x: Tensor, count: int, sigma: float, shape: tuple[int, ...], rng: Generator) -> Projection:
    """Return the projection to the principal directions of rows x (n, features), blurred by `sigma`.

    A blur with zeros outside equals its own transpose, so it is applied to the directions. New observations are only
    projected, never blurred.
    """
    mean, directions = principal_directions(blur_images(x, sigma, shape), count, rng)
    if not sigma:
        return Projection(mean, directions)
    return Projection(x.mean(0).double(), blur_images(directions, sigma, shape))


def principal_directions(x: Tensor, count: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """Return the mean (features,) of rows x (n, features) and their leading directions, (at most count, features).

    Exact where there are few rows or columns. Otherwise randomized (Halko, Martinsson and Tropp, 2011), as in
    `torch.svd_lowrank`, but with a generator of its own and without a centered copy of the rows. Directions without
    variance are left out; the largest weight of each is positive.
    """
    mean = x.mean(0)
    if min(x.shape) <= MAX_EXACT_SIZE:
        _, spread, directions = torch.linalg.svd((x - mean).double(), full_matrices=False)
    else:
        # The rows are never centered, which would copy them: (x - 1 m') A = x A - 1 (m' A).
        start = torch.randn(x.shape[1], min(count + EXTRA_DIRECTIONS, *x.shape), generator=rng).to(x)
        Q = torch.linalg.qr(x @ start - mean @ start)[0]
        for _ in range(POWER_ITERATIONS):
            R = torch.linalg.qr(x.T @ Q - torch.outer(mean, Q.sum(0)))[0]
            Q = torch.linalg.qr(x @ R - mean @ R)[0]
        short = (Q.T @ x - torch.outer(Q.sum(0), mean)).double()
        squares, rotation = torch.linalg.eigh(short @ short.T)  # faster than its singular values
        spread = squares.flip(0).clamp_min(0).sqrt()
        directions = (rotation.T @ short).flip(0) / spread.clamp_min(1e-300)[:, None]
    directions = directions[:count]
    rank = int((spread[:count] > 1e-6 * spread[0]).sum()) if float(spread[0]) > 0 else 0
    directions = directions[:rank]
    sign = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    return mean.double(), directions * sign


def check_finite_points(points: Tensor) -> Tensor:
    """Return the points (n, d); raise an error that names the first one with NaN or infinity."""
    if not torch.isfinite(points.sum()) and not torch.isfinite(points).all():  # a sum is fast, but may overflow
        row = int((~torch.isfinite(points)).any(1).nonzero()[0, 0])
        raise InputError(f"observation {row} contains NaN or infinity: repair it, or leave it out")
    return points


def unique_rows(points: Tensor) -> Tensor:
    """Return the indices, ascending, of rows that repeat no earlier one, (n, d) -> (m,).

    Coinciding neighbors carry no information on a manifold.
    """
    rows = np.ascontiguousarray(points.numpy())
    aligned = rows.itemsize * rows.shape[1] % 8 == 0
    bits = rows.view(np.uint64) if aligned else rows.view(np.uint32).astype(np.uint64)
    odd = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64) * 2 + 1
    # A fast hash of each row, modulo 2^64. Rows with equal hashes are compared, and all of them if any pair differs.
    _, first, home = np.unique(bits @ odd, return_index=True, return_inverse=True)
    if len(first) < len(rows) and not np.array_equal(bits[first[home]], bits):
        _, first = np.unique(bits, axis=0, return_index=True)
    return torch.from_numpy(np.sort(first))
