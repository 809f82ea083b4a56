"""Landmarks: a few averaged points that represent many."""

from __future__ import annotations

import numpy as np

from unweave.methods.spectral.neighbors import build_tree

LLOYD_ITERATIONS = 2
POINTS_PER_LANDMARK = 30  # used for the averages at most; more would not help


def thin(n: int, count: int, n_first: int, rng: np.random.Generator) -> np.ndarray:
    """Return as many of n rows as the averages of `count` landmarks need, ascending; the first ones are among them."""
    most = POINTS_PER_LANDMARK * count
    if n <= most + n_first:
        return np.arange(n)
    drawn = n_first + rng.choice(n - n_first, most, replace=False)
    return np.concatenate([np.arange(n_first), np.sort(drawn)])


def average_landmarks(points: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return landmarks (count, D), the averages of the points (n, D) nearest to each: less noisy than any point.

    A few iterations of k-means (Lloyd's algorithm) from random points; convergence is not needed.
    """
    centers = points[rng.choice(len(points), count, replace=False)]
    if len(points) > POINTS_PER_LANDMARK * count:
        points = points[rng.choice(len(points), POINTS_PER_LANDMARK * count, replace=False)]
    for _ in range(LLOYD_ITERATIONS):
        nearest = build_tree(centers).query(points, workers=-1)[1]
        size = np.bincount(nearest, minlength=count)
        sums = np.stack([np.bincount(nearest, column, count) for column in points.T], 1)
        centers = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centers)
    return centers
