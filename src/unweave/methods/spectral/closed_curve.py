"""A closed curve through a point cloud, and the angle along it.

A closed curve is isometric to a circle, so its arc length is an angle. Where points follow each other in even steps, as
the views of a turntable do, the steps are counted instead: the speed at which images change depends on the view.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.methods.spectral.loops import Loop, has_several_loops, summarize, to_full_turn, wrap_angle
from unweave.methods.spectral.neighbors import build_tree

REFINEMENTS = 4  # times that points are projected onto the curve and the curve is averaged again, with noise
CV_TOLERANCE = 1.05  # cross-validated error above the smallest by this factor counts as equal, and more averaging wins
MIN_NODES = 60  # of a curve whose nodes average several points
MAX_GAP = 2.5  # the largest step divided by the second: beyond, the curve is open
N_FOLLOWING = 3  # points before each on a curve and after it, which are its nearest ones
MAX_CLEAN_SPREAD = 1.06  # of `spread_of_order` on a curve without noise
MAX_NOISY_SPREAD = (1.1, 1.2)  # on a persistent loop with noise: of few points, of many
MAX_DOUBTFUL_SPREAD = (1.12, 1.28)  # on what may be a curve: of few points, of many
MANY_POINTS = 150  # below, a few points in a wide band look like a curve
MIN_NOISY_PERSISTENCE = 4.0
EVEN_WINDOW = 72  # of a full turn: steps are compared at this scale
MAX_ROUGHNESS = 0.35  # standard deviation of the log-ratio of steps that follow each other, if they are even
MAX_SEQUENCE_ROUGHNESS, MAX_SEQUENCE_RANGE = 0.9, 8.0  # the same for rows in order; those of random angles: 1.8, 60
MIN_ORDERED_SHARE, MAX_SKIPPED_PLACES = 0.9, 3  # rows that must follow each other around the circle, and how closely
MAX_STEP_RANGE = 2.5  # ratio of large to small steps (95 % and 5 %), if they are even
N_BLOCKS = 36  # of the circle, over which a wide loop is averaged
N_SEARCHED = 3  # nearest nodes whose segments are compared


class ClosedCurve(NamedTuple):
    """A closed polygon with an angle at each node."""

    nodes: Tensor  # (m, D)
    angles: Tensor  # (m,): ascending around the circle, from 0 to 2 pi

    def __call__(self, points: Tensor) -> Tensor:
        """Return the angle of the nearest place on the curve, in radians, 0 to 2 pi, (n, D) -> (n,)."""
        angles = project(self.nodes.numpy(), self.angles.numpy(), points.double().numpy())[0]
        return to_full_turn(torch.from_numpy(angles))

    def turn(self, zero: float, direction: int) -> ClosedCurve:
        """Return the curve with angles from another zero, in the same direction (1) or the opposite one (-1)."""
        nodes, angles = (self.nodes, self.angles) if direction > 0 else (self.nodes.flip(0), self.angles.flip(0))
        return ClosedCurve(nodes.contiguous(), to_full_turn(direction * (angles - zero)).contiguous())


class CurveFit(NamedTuple):
    """A closed curve fitted to points, and how well they agree with it."""

    curve: ClosedCurve
    certain: bool  # whether the points are surely a curve; otherwise an embedding may be better
    even: bool  # whether the angle counts steps; otherwise it is arc length
    difference: float  # median difference of the two, in radians
    loop: Loop


def fit_closed_curve(
    points: np.ndarray, neighbors: np.ndarray, loop: Loop, *, even: bool | None = None
) -> CurveFit | None:
    """Return the closed curve through points (n, D) with neighbors (n, k + 1); None if they are none, or it is open.

    The angle counts steps (`even`), or is arc length; by default it counts them where they are even.
    """
    nodes = fit_nodes(points, loop.angle)
    steps = np.sort(_steps(nodes))
    centers, near = summarize(points, neighbors)
    spread = spread_of_order(centers, near, loop.angle[build_tree(points).query(centers)[1]])
    many = len(points) > MANY_POINTS
    if spread > MAX_DOUBTFUL_SPREAD[many] or steps[-1] > MAX_GAP * steps[-2] or has_several_loops(loop):
        return None
    even = has_even_steps(nodes, in_order=follows_rows(loop.angle)) if even is None else even
    arc_length, counted = node_angles(nodes, even=False), node_angles(nodes, even=True)
    turned = wrap_angle(arc_length - counted)
    curve = ClosedCurve(torch.from_numpy(nodes), torch.from_numpy(counted if even else arc_length))
    noisy = loop.persistence > MIN_NOISY_PERSISTENCE and spread < MAX_NOISY_SPREAD[many]
    certain = noisy or spread < MAX_CLEAN_SPREAD
    return CurveFit(curve, certain, even, float(np.median(np.abs(turned - np.median(turned)))), loop)


def fit_nodes(points: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return the nodes (m, D) of a closed polygon through points (n, D), in the order of their angles, (n,).

    Without noise each point is a node. With noise a node is the average of several points that follow each other, as
    many as predict held-out points well. Points are then projected onto the polygon, which corrects their order.
    """
    sizes = [1]
    while len(points) >= 2 * sizes[-1] * MIN_NODES:
        sizes.append(2 * sizes[-1])
    for _ in range(REFINEMENTS):
        errors = np.array([_validation_error(points, angle, size) for size in sizes])
        size = sizes[np.flatnonzero(errors <= CV_TOLERANCE * errors.min())[-1]]
        nodes = average_blocks(points, angle, size)
        if size == 1:
            break
        angle = project(nodes, node_angles(nodes, even=False), points)[0]
    return nodes


def rescale_angle(points: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return angles (n,) in the same order as `angle` (n,), with a better speed, for points (n, D) around a wide loop.

    Averages over a few blocks of the circle are a closed curve, whose steps are counted if they are even.
    """
    size = max(1, len(points) // N_BLOCKS)
    nodes = average_blocks(points, angle, size)
    centers = average_blocks(angle[:, None], angle, size)[:, 0]
    target = node_angles(nodes, even=has_even_steps(nodes))
    start, end = (np.concatenate([a[-1:] - 2 * pi, a, a[:1] + 2 * pi]) for a in (centers, target))
    return np.asarray(np.interp(angle, start, end) % (2 * pi))


def average_blocks(points: np.ndarray, angle: np.ndarray, size: int) -> np.ndarray:
    """Return the averages of blocks of `size` points in the order of their angles, (n, D), (n,) -> (m, D)."""
    order = np.argsort(angle, kind="stable")
    m = max(len(points) // size, min(3, len(points)))
    starts = (np.arange(m) * len(points) + m - 1) // m
    return np.add.reduceat(points[order], starts, 0) / np.diff(starts, append=len(points))[:, None]


def node_angles(nodes: np.ndarray, *, even: bool) -> np.ndarray:
    """Return the angles of the nodes (m, D) of a closed polygon, by arc length or in even steps, (m,), from 0."""
    steps = np.ones(len(nodes)) if even else _steps(nodes)
    position = np.cumsum(steps)
    return np.asarray(2 * pi * np.concatenate([[0.0], position[:-1]]) / position[-1])


def project(nodes: np.ndarray, angles: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the angle of the nearest place on a closed polygon (n,), and the squared distance to it, (n,).

    Args:
        nodes: The polygon, (m, D).
        angles: Angles of the nodes, ascending, (m,).
        points: Points to project, (n, D).
    """
    m = len(nodes)
    count = min(N_SEARCHED, m)
    near = build_tree(nodes).query(points, count, workers=-1)[1].reshape(len(points), count)
    best, result = np.full(len(points), np.inf), np.zeros(len(points))
    for start in (*near.T, *(near.T - 1)):
        a, b = start % m, (start + 1) % m
        along, offset = nodes[b] - nodes[a], points - nodes[a]
        share = np.clip((along * offset).sum(1) / np.maximum((along * along).sum(1), 1e-300), 0, 1)
        squared = ((offset - share[:, None] * along) ** 2).sum(1)
        closer = squared < best
        result = np.where(closer, angles[a] + share * ((angles[b] - angles[a]) % (2 * pi)), result)
        best = np.minimum(best, squared)
    return result % (2 * pi), best


def spread_of_order(points: np.ndarray, neighbors: np.ndarray, angle: np.ndarray) -> float:
    """Return how far the nearest points along the curve are, divided by the distance of nearest neighbors.

    On a curve these are the same points, and the ratio is 1. On a wide band, or on a cylinder, points of nearly the
    same angle are far from each other.
    """
    ordered = points[np.argsort(angle, kind="stable")]
    count = min(2 * N_FOLLOWING, len(points) // 2, neighbors.shape[1] - 1)
    total = _steps(ordered).sum()
    position = np.cumsum(_steps(ordered)) - _steps(ordered)
    along, direct = [], []
    for lag in range(1, count + 1):  # points after each one, then the same seen from these
        distance, length = _steps(ordered, lag), (np.roll(position, -lag) - position) % total
        along += [length, np.roll(length, lag)]
        direct += [distance, np.roll(distance, lag)]
    nearest = np.argsort(along, axis=0)[:count]
    near = np.linalg.norm(points[neighbors[:, 1 : count + 1]] - points[:, None], axis=2)
    return float(np.take_along_axis(np.array(direct), nearest, 0).mean() / max(near.mean(), 1e-300))


def follows_rows(angle: np.ndarray) -> bool:
    """Return whether rows with angles (n,) go around the circle in order, as a sequence of photographs does."""
    place = np.argsort(np.argsort(angle, kind="stable"), kind="stable")
    forward = np.diff(place) % len(angle)
    is_next = (forward <= MAX_SKIPPED_PLACES, forward >= len(angle) - MAX_SKIPPED_PLACES)
    return bool(max(np.mean(is_next[0]), np.mean(is_next[1])) >= MIN_ORDERED_SHARE)


def has_even_steps(nodes: np.ndarray, *, in_order: bool = False) -> bool:
    """Return whether the steps between nodes (m, D) are alike, apart from a slow and moderate change around the loop.

    Steps of random points vary a lot from one to the next. In a sequence, whose rows are `in_order`, they may vary more
    before they count as uneven: a picture may change faster from one view than from another.
    """
    roughness, step_range = (
        (MAX_SEQUENCE_ROUGHNESS, MAX_SEQUENCE_RANGE) if in_order else (MAX_ROUGHNESS, MAX_STEP_RANGE)
    )
    lag = max(1, round(len(nodes) / EVEN_WINDOW))
    steps = np.maximum(_steps(nodes, lag), 1e-300)
    rough = np.log(np.roll(steps, -lag) / steps).std()
    small, large = np.percentile(steps, [5, 95])
    return bool(rough < roughness and large < step_range * small)


def _steps(nodes: np.ndarray, lag: int = 1) -> np.ndarray:
    """Return the distances from each node of a closed polygon (m, D) to the one `lag` places further, (m,)."""
    return np.asarray(np.linalg.norm(np.roll(nodes, -lag, 0) - nodes, axis=1))


def _validation_error(points: np.ndarray, angle: np.ndarray, size: int) -> float:
    """Return the squared error of every second point, by angle, interpolated between the blocks of the others."""
    order = np.argsort(angle, kind="stable")
    error = 0.0
    for fitted, held_out in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        nodes = average_blocks(points[fitted], angle[fitted], size)
        centers = average_blocks(angle[fitted, None], angle[fitted], size)[:, 0]
        b = np.searchsorted(centers, angle[held_out])
        a, b = b - 1, b % len(nodes)
        start, end, before, after = centers[a], centers[b], nodes[a], nodes[b]
        share = ((angle[held_out] - start) % (2 * pi)) / np.maximum((end - start) % (2 * pi), 1e-12)
        error += ((points[held_out] - before - share[:, None] * (after - before)) ** 2).sum()
    return error
