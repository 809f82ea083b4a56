"""The local isometry score (Horan, Richardson and Weiss, 2021, Sec. 4), and the choice of eigenvectors by it.

A representation is locally isometric if near points are as far from each other in the codes as in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.metrics.pairwise import euclidean_distances

CLOSEST_FRACTION = 0.05  # of all pairs, as in the paper
N_AVERAGED = 10  # neighbors in a local average


class Pairs(NamedTuple):
    """Pairs of points and their distances in the data."""

    i: np.ndarray  # (m,)
    j: np.ndarray  # (m,)
    dx: np.ndarray  # (m,)


def closest_pairs(x: np.ndarray, fraction: float = CLOSEST_FRACTION) -> Pairs:
    """Return the closest fraction of all pairs of rows x, (n, D)."""
    distance = euclidean_distances(x - x.mean(0))  # by one matrix product; centered, so that little cancels
    upper = ~np.tri(len(x), dtype=bool)
    distances = distance[upper]
    count = max(1, int(fraction * len(distances)))
    keep = np.sort(np.argpartition(distances, count - 1)[:count])
    i, j = np.divmod(np.flatnonzero(upper)[keep], len(x))
    return Pairs(i, j, distances[keep])


def rescaled_distances(z: np.ndarray, pairs: Pairs, periods: Sequence[float | None] = ()) -> np.ndarray:
    """Return the distances of pairs in codes z (n, d), each code rescaled to fit the distances in the data, (m,).

    Codes with a period differ by the short way around.
    """
    difference = z[pairs.i] - z[pairs.j]  # (m, d)
    for j, period in enumerate(periods):
        if period:
            difference[:, j] -= period * np.round(difference[:, j] / period)
    gaps = difference**2
    return np.asarray(np.sqrt(gaps @ fit_rescaling(gaps, pairs.dx)))


def isometry_score(dz: np.ndarray, dx: np.ndarray) -> float:
    """Return the correlation of distances in codes and data, (m,) each; 0 where one of them is constant."""
    if np.ptp(dz) <= 1e-12 * max(dz.max(), 1e-300) or np.ptp(dx) == 0:
        return 0.0  # constant codes, or a grid on which all neighbors are equally far
    return float(np.corrcoef(dx, dz)[0, 1])


def fit_rescaling(gaps: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """Return squared scales w >= 0, (d,), that minimize the mean of (sqrt(sum_k w_k gaps_k) - dx)^2.

    Args:
        gaps: Squared differences of each code over pairs, (m, d).
        dx: Distances in the data, (m,).
    """
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
    optimum = minimize(lambda s: tuple(v / scale for v in loss(s)), start, jac=True, method="L-BFGS-B")
    return np.asarray(optimum.x**2 / unit)


class ColumnChoice(NamedTuple):
    """The columns of an embedding to keep, and how isometric they are up to a linear map."""

    columns: tuple[int, ...]
    score: float


def select_columns(
    y: np.ndarray, d: int, pairs: Pairs, margin: float = 0.02, steps: np.ndarray | None = None
) -> ColumnChoice:
    """Return the d columns of y (n, q) that keep near distances best up to a linear map.

    The first d columns win unless others score higher by more than `margin`. On a long thin manifold, functions of one
    factor fill the null space before the second factor appears. No linear map of the first d columns then keeps
    distances, but one of a later column does. Squared distances are fitted by least squares as a quadratic form of the
    differences, for every choice of columns from one table of products. `steps` are differences of a circular code over
    the pairs, (m,), which is used in addition to every choice.
    """
    difference = y[pairs.i] - y[pairs.j]  # (m, q)
    extra = () if steps is None else (y.shape[1],)
    difference = difference if steps is None else np.column_stack([difference, steps])
    a, b = np.triu_indices(difference.shape[1])
    products = difference[:, a] * difference[:, b]  # (m, q(q+1)/2)
    gram, target = products.T @ products, products.T @ pairs.dx**2
    best = first = None
    for columns in combinations(range(y.shape[1]), d):
        used = np.flatnonzero(np.isin(a, columns + extra) & np.isin(b, columns + extra))
        form = np.linalg.lstsq(gram[np.ix_(used, used)], target[used], rcond=1e-10)[0]
        fitted = np.sqrt(np.maximum(products[:, used] @ form, 0))
        choice = ColumnChoice(columns, isometry_score(fitted, pairs.dx))
        first = first or choice
        best = choice if best is None or choice.score > best.score else best
    assert best is not None and first is not None
    return best if best.score > first.score + margin else first


def averaged_isometry(points: np.ndarray, codes: np.ndarray, neighbors: np.ndarray, rows: np.ndarray) -> float:
    """Return the local isometry, up to a linear map, of averages over nearest neighbors.

    Noise moves near points by more than their distance, and lowers the score of a perfect embedding. Averages have less
    noise. Codes that repeat a factor, or fold, do not keep the distances of averages either.

    Args:
        points: The data, (n, D).
        codes: Their codes, (n, d), without a period; of an angle its cosine and its sine.
        neighbors: Each point's index and those of its neighbors, (n, k + 1).
        rows: The points to compare, (s,).
    """
    near = neighbors[rows, : N_AVERAGED + 1]
    pairs = closest_pairs(points[near].mean(1))
    y = codes[near].mean(1)
    return select_columns(y / np.maximum(y.std(0), 1e-300), codes.shape[1], pairs).score
