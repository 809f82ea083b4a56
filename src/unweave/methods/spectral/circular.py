"""Products of a loop with intervals, such as a cylinder: an angle that is locally linear, and linear codes besides.

Hessian eigenmaps look for functions without second derivatives. On a cylinder its height is one; its angle is another,
but has values on a circle. Locally it is an ordinary function, so its Hessian is defined, and least squares find the
angle that bends least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from scipy.sparse import csc_matrix

from unweave.methods.spectral.eigensolver import factorize
from unweave.methods.spectral.isometry import Pairs, isometry_score, select_columns
from unweave.methods.spectral.loops import wrap_angle
from unweave.methods.spectral.point_cloud import Embedding, PointCloud
from unweave.methods.spectral.tangent_space import assemble_rows, second_derivatives

MIN_ANGLE_ISOMETRY = 0.85  # of an embedding with an angle
MIN_ANGLE_GAIN = 0.05  # in isometry, over embeddings without an angle in as many dimensions
FEWER_TOLERANCE = 0.02  # loss in isometry, compared with an embedding in more dimensions
MIN_PERSISTENCE = 2.4  # of the loop


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

    Args:
        cloud: The points.
        angle: A first circular coordinate, (n,).
        y: Eigenvectors to choose the other codes from, with unit variance, (n, q).
        values: Their eigenvalues, (q,).
        k: Size of the neighborhoods.
        d: Dimension of the manifold, with the angle.
    """
    angle = straighten_angle(cloud, angle, y[:, : d - 1], k)
    steps = circular_steps(angle[cloud.scored], cloud.pairs)
    choice = select_columns(y[cloud.scored], d - 1, cloud.pairs, steps=steps)
    y = y[:, list(choice.columns)]
    return Embedding(k, d, y, values, choice, {}, remove_shear(angle, y, cloud))


def choose_with_angle(
    chosen: Embedding,
    dimensions: Iterable[int],
    best_flat: Callable[[int], Embedding],
    best_circular: Callable[[int], Embedding],
) -> Embedding | None:
    """Return an embedding with an angle if it is better than those without; None otherwise.

    It must keep near distances clearly better than linear codes of as many or fewer dimensions, and about as well as
    the embedding that was chosen before. A sheet with a hole has a loop, too, but lies flat.

    Args:
        chosen: The best embedding without an angle, in any dimension.
        dimensions: Dimensions to try, with the angle.
        best_flat: Returns the best embedding without an angle in d dimensions.
        best_circular: Returns the best embedding with an angle in d dimensions.
    """
    highest = 0.0
    for d in sorted(set(dimensions)):
        highest = max(highest, best_flat(d).choice.score)
        least = max(highest + MIN_ANGLE_GAIN, MIN_ANGLE_ISOMETRY, chosen.choice.score - FEWER_TOLERANCE)
        if d > 1 and (trial := best_circular(d)).choice.score > least:
            return trial
    return None


def min_hessian_neighbors(d: int) -> int:
    """Return the coefficients of a quadratic function of d coordinates: a constant, slopes and second derivatives."""
    return 1 + d + d * (d + 1) // 2


def orient_angles(angles: np.ndarray) -> tuple[float, int]:
    """Return the zero and the direction (1 or -1) for angles of rows in their order, (n,).

    The first row has the angle 0, and angles increase from row to row more often than they decrease.
    """
    rising = np.sign(wrap_angle(np.diff(angles))).sum()
    return float(angles[0]), 1 if rising >= 0 else -1


def circular_isometry(angle: np.ndarray, pairs: Pairs) -> float:
    """Return the local isometry score of an angle alone, (n,)."""
    return isometry_score(np.abs(circular_steps(angle, pairs)), pairs.dx)
