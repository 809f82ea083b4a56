"""The local isometry score: does a small step in the codes mean the same step in the data, everywhere?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.metrics.pairwise import euclidean_distances

from ..errors import InputError
from ..scoring import checked, metric


class NearPairs(NamedTuple):
    """The closest pairs of points, and their distances in the data and in the rescaled codes."""

    i: np.ndarray  # (m,)
    j: np.ndarray  # (m,)
    dx: np.ndarray  # (m,)
    dz: np.ndarray  # (m,)


@metric(paper="Horan, Richardson and Weiss (2021), Sec. 4", truth="inputs")
def local_isometry(inputs: Any, codes: Any, *, closest: float = 0.05, points: int = 3_000, seed: int = 0) -> float:
    """Correlation of distances in the data with distances in the codes, over the closest 5 % of pairs of inputs.

    The codes are first rescaled, each dimension by its own factor, so that the mean squared difference of the two
    distances is least. No labels are needed. Beyond `points` samples, a random subset of that size is used.
    """
    pairs = near_pairs(inputs, codes, closest=closest, points=points, seed=seed)
    if np.ptp(pairs.dz) <= 1e-12 * max(pairs.dz.max(), 1e-300) or np.ptp(pairs.dx) == 0:
        return 0.0  # codes that say nothing, or a grid on which all neighbours are equally far
    return float(np.corrcoef(pairs.dx, pairs.dz)[0, 1])


def near_pairs(inputs: Any, codes: Any, *, closest: float = 0.05, points: int = 3_000, seed: int = 0) -> NearPairs:
    """The closest share of all pairs of inputs, d(x_i, x_j) < epsilon, with both their distances."""
    x, z = checked(inputs, codes, what="inputs")
    if not 0 < closest <= 1:
        raise InputError(f"closest={closest}: wanted a share of the pairs between 0 and 1")
    if len(x) > points:
        chosen = np.random.default_rng(seed).choice(len(x), points, replace=False)
        chosen.sort()
        x, z = x[chosen], z[chosen]
    i, j = np.triu_indices(len(x), 1)
    distance = euclidean_distances(x - x.mean(0))[i, j]  # by one matrix product; centred, so that little cancels
    count = max(1, int(closest * len(distance)))
    keep = np.sort(np.argpartition(distance, count - 1)[:count])
    i, j, dx = i[keep], j[keep], distance[keep]
    gaps = (z[i] - z[j]) ** 2  # (m, d)
    return NearPairs(i, j, dx, np.sqrt(gaps @ _rescaling(gaps, dx)))


def _rescaling(gaps: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """Squared scales w >= 0, (d,), that minimise the mean of (sqrt(sum_k w_k gaps_k) - dx)^2."""
    unit = gaps.mean(0)
    unit[unit == 0] = 1
    gaps = gaps / unit
    w0, _ = nnls(gaps.T @ gaps, gaps.T @ dx**2)  # least squares of squared distances: a good start, in closed form

    def loss(s: np.ndarray) -> tuple[float, np.ndarray]:
        dz = np.sqrt(gaps @ s**2)
        error = dz - dx
        return float(error @ error), 2 * s * (gaps.T @ (error / np.maximum(dz, 1e-12 * dx.max() + 1e-300)))

    scale = float(dx @ dx) or 1.0
    start = np.sqrt(np.maximum(w0, 1e-6 * max(w0.max(initial=0), 1e-12)))
    found = minimize(lambda s: tuple(v / scale for v in loss(s)), start, jac=True, method="L-BFGS-B")
    return np.asarray(found.x**2 / unit)
