"""Products of a loop with intervals, such as a cylinder: an angle that is locally linear, and linear codes besides.

Hessian eigenmaps look for functions without second derivatives. On a cylinder its height is one; its angle is another,
but has values on a circle. Locally it is an ordinary function, so its Hessian is defined, and least squares find the
angle that bends least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csc_matrix

from unweave.methods.spectral.automatic import EmbeddingSearch
from unweave.methods.spectral.closed_curve import rescale_angle
from unweave.methods.spectral.eigensolver import factorize
from unweave.methods.spectral.isometry import Pairs, isometry_score, select_columns
from unweave.methods.spectral.loops import Loop, wrap_angle
from unweave.methods.spectral.point_cloud import Embedding, PointCloud
from unweave.methods.spectral.tangent_space import assemble_rows, min_hessian_neighbors, second_derivatives

MIN_ANGLE_ISOMETRY = 0.85  # of an embedding with an angle
MIN_ANGLE_GAIN = 0.05  # in isometry, over embeddings without an angle in as many dimensions
FEWER_TOLERANCE = 0.02  # loss in isometry, compared with an embedding in more dimensions
SURE_PERSISTENCE = 4.0  # of a loop that counts even where no codes keep near distances
MAX_SPARSE_ISOMETRY = 0.9  # of codes that do not
SPARSE_TOLERANCE = 0.1  # loss in isometry, there


def straighten_angle(cloud: PointCloud, angle: np.ndarray, flat: np.ndarray, k: int) -> np.ndarray:
    """Return the circular coordinate with the smallest Hessian that goes around as `angle` does, in radians, (n,).

    It is unique up to functions without second derivatives; `remove_shear` chooses among them.

    Args:
        cloud: The points.
        angle: A circular coordinate that changes little between neighbors, (n,).
        flat: Functions without second derivatives, (n, d - 1).
        k: Size of the neighborhoods.
    """
    members, d = cloud.members(k), flat.shape[1] + 1
    rows = second_derivatives(cloud.tangent_coordinates(k, d)).cpu()  # (n, r, k)
    steps = torch.from_numpy(wrap_angle(angle[members] - angle[:, None]))  # local values; rows ignore constants
    bending = torch.einsum("nrk,nk->nr", rows, steps.to(rows)).reshape(-1).numpy()
    B = assemble_rows(rows, members)
    change = factorize(csc_matrix(B.T @ B)).solve(-(B.T @ bending))
    flat = np.column_stack([np.ones(len(flat)), flat])
    return np.asarray(angle + change - flat @ np.linalg.lstsq(flat, change, rcond=None)[0])


def remove_shear(angle: np.ndarray, y: np.ndarray, cloud: PointCloud) -> np.ndarray:
    """Return the angle (n,) plus the multiples of codes y (n, q) that make it orthogonal to them, 0 to 2 pi.

    On a cylinder, angle + c * height has no second derivatives either, and winds up like a screw. Squared distances of
    near points are fitted by a quadratic form of the differences; mixed terms with the angle are made zero.
    """
    steps = circular_steps(angle[cloud.scored], cloud.pairs)[:, None]
    gaps = y[cloud.scored][cloud.pairs.i] - y[cloud.scored][cloud.pairs.j]
    design = np.concatenate([steps**2, 2 * steps * gaps, *(gaps[:, [a]] * gaps[:, a:] for a in range(y.shape[1]))], 1)
    form = np.linalg.lstsq(design, cloud.pairs.dx**2, rcond=1e-10)[0]
    sheared = angle + y @ (form[1 : 1 + y.shape[1]] / form[0]) if form[0] > 0 else angle
    return np.asarray(sheared % (2 * np.pi))


def circular_steps(angle: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Return the differences of angles (n,) over pairs, the short way around, (m,)."""
    return wrap_angle(angle[pairs.i] - angle[pairs.j])


def embed_with_angle(
    cloud: PointCloud, angle: np.ndarray, y: np.ndarray, values: np.ndarray, k: int, d: int
) -> Embedding:
    """Return an embedding by an angle and d - 1 linear codes.

    Where no angle keeps near distances, since the points are too sparse for that, only its speed is corrected.

    Args:
        cloud: The points.
        angle: A first circular coordinate, (n,).
        y: Eigenvectors to choose the other codes from, with unit variance, (n, q).
        values: Their eigenvalues, (q,).
        k: Size of the neighborhoods.
        d: Dimension of the manifold, with the angle.
    """
    rows, pairs = y[cloud.scored], cloud.pairs
    straight = straighten_angle(cloud, angle, y[:, : d - 1], k)
    choice = select_columns(rows, d - 1, pairs, steps=circular_steps(straight[cloud.scored], pairs))
    if choice.score > MIN_ANGLE_ISOMETRY:
        y = y[:, list(choice.columns)]
        return Embedding(k, d, y, values, choice, {}, remove_shear(straight, y, cloud))
    angle = rescale_angle(cloud.points.numpy(), angle)
    choice = select_columns(rows, d - 1, pairs, steps=circular_steps(angle[cloud.scored], pairs))
    return Embedding(k, d, y[:, list(choice.columns)], values, choice, {}, angle)


@dataclass(frozen=True)
class AngleSearch:
    """The search for an embedding by an angle and linear codes, of data with a loop."""

    search: EmbeddingSearch
    loop: Loop
    eigenvectors: Callable[[PointCloud, int, int], tuple[np.ndarray, np.ndarray]]
    """Returns eigenvalues and eigenvectors of a cloud in d dimensions with k neighbors: (cloud, d, k)."""

    def choose(self, chosen: Embedding, dimensions: Iterable[int]) -> Embedding | None:
        """Return an embedding with an angle if it is better than those without; None otherwise.

        It must keep near distances clearly better than linear codes of as many or fewer dimensions, and about as well
        as the embedding without an angle that was chosen before. A sheet with a hole has a loop, too, but lies flat.
        Where no codes keep near distances, a persistent loop decides.
        """
        highest, fallback = 0.0, None
        for d in sorted(filter(self._is_possible, set(dimensions))):
            flat = chosen if d == chosen.d else self._best_flat(d)
            highest = max(highest, flat.choice.score)
            if d == 1:
                continue
            trial = self._best_circular(d)
            least = max(highest + MIN_ANGLE_GAIN, MIN_ANGLE_ISOMETRY, chosen.choice.score - FEWER_TOLERANCE)
            if trial.choice.score > least:
                return trial
            if fallback is None and trial.choice.score > highest - SPARSE_TOLERANCE:
                fallback = trial
        persistent = self.loop.persistence > SURE_PERSISTENCE
        return fallback if persistent and highest < MAX_SPARSE_ISOMETRY else None

    def _is_possible(self, d: int) -> bool:
        """Return whether there are enough neighbors and features for d dimensions."""
        cloud = self.search.cloud
        return min_hessian_neighbors(d) < cloud.neighbors.shape[1] and d <= cloud.points.shape[1]

    def _best_flat(self, d: int) -> Embedding:
        """Return the best embedding without an angle in d dimensions."""
        first = self.search.embedding(d, self.search.first_size(d))
        return self.search.choose_neighbors(first)[0]

    def _best_circular(self, d: int) -> Embedding:
        """Return the best embedding with an angle in d dimensions."""
        least, k = min_hessian_neighbors(d), self.search.n_neighbors
        sizes = self.search.connected_sizes(d) if k == "auto" else [k]
        trials = [self._embed(d, max(k, least)) for k in sizes if k >= least or k == sizes[-1]]
        return max(trials, key=lambda trial: trial.choice.score)

    def _embed(self, d: int, k: int) -> Embedding:
        values, y = self.eigenvectors(self.search.cloud, d, k)
        return embed_with_angle(self.search.cloud, self.loop.angle, y, values, k, d)


def orient_angles(angles: np.ndarray) -> tuple[float, int]:
    """Return the zero and the direction (1 or -1) for angles of rows in their order, (n,).

    The first row has the angle 0, and angles increase from row to row more often than they decrease.
    """
    rising = np.sign(wrap_angle(np.diff(angles))).sum()
    return float(angles[0]), 1 if rising >= 0 else -1


def circular_isometry(angle: np.ndarray, pairs: Pairs) -> float:
    """Return the local isometry score of an angle alone, (n,)."""
    return isometry_score(np.abs(circular_steps(angle, pairs)), pairs.dx)
