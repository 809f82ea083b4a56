"""Loops of a point cloud: whether there is one, and a first circular coordinate of it.

The neighbor graph measures distances along the data. Persistent cohomology finds the loops among a few landmarks, and
a cocycle of the most persistent one becomes an angle by least squares (its harmonic representative).
"""

from __future__ import annotations

from math import ceil, pi
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array, csr_matrix, diags_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from unweave.methods.spectral.cohomology import Cocycle, persistent_loops
from unweave.methods.spectral.eigensolver import factorize
from unweave.methods.spectral.landmarks import average_landmarks
from unweave.methods.spectral.neighbors import build_tree, find_neighbors, is_connected

MIN_PERSISTENCE = 2.0  # below which a loop is an accident of sampling; what exceeds it is examined further
MIN_SECOND_PERSISTENCE = 2.5  # of a second loop that counts
MIN_SECOND_SHARE = 0.7  # of its persistence in that of the first
MAX_POINTS = 400  # whose graph is searched for loops; averages represent more
MAX_LANDMARKS = 80  # on which cohomology is computed
GRAPH_SIZES = (1.5, 2.0, 3.0)  # neighborhoods, in multiples of the smallest one that connects the graph
ROUNDING = 1e-6  # of a full turn, from images in single precision
MAX_EMPTY_ARC = np.pi  # in radians: a coordinate that leaves more of the circle empty does not go around


class Loop(NamedTuple):
    """The most persistent loop of a point cloud."""

    angle: np.ndarray  # (n,): a circular coordinate in radians, smooth, but with any speed
    persistence: float
    second: float  # persistence of the next loop; 1 if there is none
    k: int  # size of the neighborhoods


def has_several_loops(loop: Loop) -> bool:
    """Return whether there is a second loop that is nearly as persistent as the first, as in a torus or an eight."""
    return loop.second > max(MIN_SECOND_PERSISTENCE, MIN_SECOND_SHARE * loop.persistence)


def wrap_angle(angle: np.ndarray) -> np.ndarray:
    """Return angles in radians, of any shape, moved to -pi to pi by whole turns."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def to_full_turn(angle: Tensor, period: float = 2 * pi) -> Tensor:
    """Return angles of any shape from 0 to below their period. Those just below it, by rounding errors, become 0."""
    angle = angle % period
    return torch.where(angle > period * (1 - ROUNDING), 0.0, angle)


def find_loop(points: np.ndarray, neighbors: np.ndarray) -> Loop | None:
    """Return the most persistent loop of points (n, D) with their neighbors (n, k + 1); None without a clear one."""
    few = len(points) <= MAX_POINTS
    centers, near = summarize(points, neighbors)
    largest, least = near.shape[1] - 1, smallest_connected(near)
    sizes = {min(ceil(factor * least), largest) for factor in (GRAPH_SIZES if few else GRAPH_SIZES[1:2])}
    best: LandmarkLoops | None = None
    for k in sorted(sizes) if least else ():
        trial = find_landmark_loops(weighted_graph(centers, near, k), k)
        best = trial if best is None or trial.persistence > best.persistence else best
    if best is None or best.persistence < MIN_PERSISTENCE:
        return None
    angle, k = best.angles(), best.k
    if not few:
        angle = angle[build_tree(centers).query(points)[1]]
        k = min(ceil(GRAPH_SIZES[-1] * smallest_connected(neighbors)), neighbors.shape[1] - 1)
    if k == 0:
        return None
    angle = smooth_angle(angle, weighted_graph(points, neighbors, k))
    return None if largest_gap(angle) > MAX_EMPTY_ARC else Loop(angle, best.persistence, best.second, k)


def summarize(points: np.ndarray, neighbors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most 400 averages of points (n, D), and their neighbors; the points themselves if these are few.

    Averages have less noise, and the distance of neighbors is larger than what remains of it.
    """
    if len(points) <= MAX_POINTS:
        return points, neighbors
    centers = average_landmarks(points, MAX_POINTS, np.random.default_rng(0))
    return centers, find_neighbors(centers, neighbors.shape[1] - 1)


class LandmarkLoops(NamedTuple):
    """The loops among the landmarks of a graph."""

    loops: list[Cocycle]  # the most persistent first
    landmarks: np.ndarray  # (m,)
    distances: np.ndarray  # (m, n): along the graph, from landmarks to all points
    k: int  # size of the neighborhoods

    @property
    def persistence(self) -> float:
        """Return the persistence of the first loop; 1 if there is none."""
        return self.loops[0].persistence if self.loops else 1.0

    @property
    def second(self) -> float:
        """Return the persistence of the second loop; 1 if there is none."""
        return self.loops[1].persistence if len(self.loops) > 1 else 1.0

    def angles(self) -> np.ndarray:
        """Return the angle along the first loop of each point's nearest landmark, in radians, (n,).

        The cocycle is that of the middle of the loop's life, by the geometric mean. An edge without a value has 0.
        """
        loop, m = self.loops[0], len(self.landmarks)
        turns = np.zeros((m, m))
        turns[loop.i, loop.j] = loop.value
        length = self.distances[:, self.landmarks]
        i, j = np.nonzero(np.triu(np.minimum(length, length.T) <= np.sqrt(loop.birth * loop.death), 1))
        angle = harmonic_angle(np.zeros(m), i, j, 2 * np.pi * turns[i, j], np.ones(len(i)))
        return angle[self.distances.argmin(0)]


def find_landmark_loops(graph: csr_matrix, k: int) -> LandmarkLoops:
    """Return the loops among landmarks of a connected graph, whose neighborhoods have the size k."""
    landmarks, distances = choose_landmarks(graph)
    between = distances[:, landmarks]
    return LandmarkLoops(persistent_loops(np.minimum(between, between.T)), landmarks, distances, k)


def smallest_connected(neighbors: np.ndarray) -> int:
    """Return the smallest neighborhood, from two on, whose graph is connected; 0 if none is, neighbors (n, k + 1)."""
    return next((k for k in range(2, neighbors.shape[1]) if is_connected(neighbors, k)), 0)


def weighted_graph(points: np.ndarray, neighbors: np.ndarray, k: int) -> csr_matrix:
    """Return the distances of points (n, D) to their k neighbors, or of these to them, as a symmetric matrix."""
    n = len(points)
    distance = np.linalg.norm(points[neighbors[:, 1 : k + 1]] - points[:, None], axis=2)
    distance = np.maximum(distance, 1e-9 * distance.max())  # a zero would be no edge
    rows = np.repeat(np.arange(n), k)
    one_way = csr_matrix((distance.ravel(), (rows, neighbors[:, 1 : k + 1].ravel())), shape=(n, n))
    return one_way.maximum(one_way.T).tocsr()


def choose_landmarks(graph: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return landmarks (m,), each the farthest point from those before it, and their distances to all, (m, n)."""
    nearest = dijkstra(graph, directed=False, indices=0)
    landmarks: list[int] = []
    rows: list[np.ndarray] = []
    while len(landmarks) < min(MAX_LANDMARKS, graph.shape[0]):
        landmarks.append(int(nearest.argmax()))
        rows.append(dijkstra(graph, directed=False, indices=landmarks[-1]))
        nearest = rows[0] if len(rows) == 1 else np.minimum(nearest, rows[-1])
    return np.array(landmarks), np.stack(rows)


def smooth_angle(angle: np.ndarray, graph: csr_matrix) -> np.ndarray:
    """Return the smoothest circular coordinate (n,) that goes around as `angle` (n,) does, in radians, 0 to 2 pi.

    Weights are inverse distances: along a chain of points the angle is then proportional to arc length.
    """
    edges = graph.tocoo()
    upper = edges.row < edges.col
    i, j, distance = edges.row[upper], edges.col[upper], edges.data[upper]
    return harmonic_angle(angle, i, j, wrap_angle(angle[j] - angle[i]), 1 / distance)


def harmonic_angle(
    angle: np.ndarray, i: np.ndarray, j: np.ndarray, steps: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return angle + f in radians, 0 to 2 pi, with the f that minimizes the sum of weights (steps + f_j - f_i)^2.

    Args:
        angle: Coordinates of the points, (n,).
        i: First ends of the edges, (e,).
        j: Second ends of the edges, (e,).
        steps: Change of the angle from i to j, (e,).
        weights: Weights of the edges, (e,).
    """
    e, n = np.arange(len(i)), len(angle)
    difference = coo_array((np.repeat([1.0, -1.0], len(i)), (np.tile(e, 2), np.r_[j, i])), shape=(len(i), n)).tocsr()
    weighted = difference.T @ diags_array(weights)
    change = factorize((weighted @ difference).tocsc()).solve(-(weighted @ steps))
    return np.asarray((angle + change) % (2 * np.pi))


def largest_gap(angle: np.ndarray) -> float:
    """Return the largest arc without any of the angles (n,), in radians."""
    ordered = np.sort(angle)
    return float(np.diff(ordered, append=ordered[0] + 2 * np.pi).max())
