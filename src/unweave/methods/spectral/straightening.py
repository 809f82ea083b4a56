"""Straightening: independent codes where the data are only nearly isometric to their factors.

A long strip whose sides differ a little in length is isometric to a bent one. Hessian eigenmaps flatten it perfectly,
and the codes are coordinates of the bent strip: they depend on each other. Here the longest factor comes first, as a
coordinate t of unit speed. The others are what eigenvectors do not share with functions of t, so neither the bend nor
the harmonics of t, which come before a small factor in the spectrum, hide them.

Where several factors are long, one code may bend along all others: large sprites move more pixels than small ones, so
that the code of their size depends on their place. What the others explain of it is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
import torch
from numpy.linalg import norm
from scipy.interpolate import BSpline
from scipy.sparse import csc_matrix, csr_matrix, eye_array
from scipy.stats import rankdata
from sklearn.preprocessing import PolynomialFeatures

from unweave.data.core import split_rows
from unweave.methods.linear import unmix
from unweave.methods.spectral.eigensolver import factorize, smallest_eigenvectors
from unweave.methods.spectral.graph_laplacian import normalized_laplacian
from unweave.methods.spectral.independence import largest_dependence
from unweave.methods.spectral.isometry import averaged_isometry, isometry_score, rescaled_distances
from unweave.methods.spectral.point_cloud import PointCloud
from unweave.methods.spectral.tangent_space import BATCH_SIZE

MIN_STRAIGHTENED_POINTS = 200  # fewer do not show whether a smooth map makes codes independent
MIN_DEPENDENCE = 0.1  # distance correlation from which codes are straightened
# Gain in isometry minus dependence that justifies straightened codes. Chosen on strips and sprites, and such that
# factors that depend on each other stay as they are.
MIN_GAIN = 0.08
MIN_NEIGHBORS = 20  # for gradients, which few neighbors make noisy
POINTS_PER_SLICE, MAX_SLICES = 100, 30
N_SPLINES = 14  # of a conditional mean
N_SCALE_SPLINES = 6  # of a conditional scale
UNIT_SPEED_STEPS = 2
RIDGE = 1e-9
MIN_EXPLAINED = 0.05  # share of a code's variance that is subtracted
MAX_DEGREE, POINTS_PER_TERM = 4, 50  # of polynomials
SMALLEST_EIGENVALUE = 1e-9  # of the largest


Isometry = Callable[[PointCloud, np.ndarray], float]


class Steps(NamedTuple):
    """Steps from each point to its neighbors, along the tangent space there."""

    members: np.ndarray  # (n, k)
    tangent: np.ndarray  # (n, k, d)


def straighten_dependent(
    cloud: PointCloud, k: int, codes: np.ndarray, eigenvectors: Callable[[], tuple[np.ndarray, np.ndarray]], seed: int
) -> np.ndarray | None:
    """Return straightened codes if these are dependent, and others are more independent and as isometric; else None.

    Args:
        cloud: The points.
        k: Size of the neighborhoods.
        codes: Codes by linear ICA, (n, d).
        eigenvectors: Returns eigenvalues, ascending, and more than d eigenvectors of unit variance.
        seed: Seed of ICA and of the eigensolver.
    """
    too_few = len(codes) < MIN_STRAIGHTENED_POINTS or codes.shape[1] < 2
    if too_few or largest_dependence(codes) < MIN_DEPENDENCE:
        return None
    values, y = eigenvectors()
    candidates: list[tuple[np.ndarray, Isometry]] = [(straighten(cloud, k, y, values, codes.shape[1], seed), of_points)]
    if codes.shape[1] > 2:  # of two codes, the longer one is known
        candidates.append((subtract_explained(codes), of_averages))
    gains = [
        isometry(cloud, straight) - largest_dependence(straight) - isometry(cloud, codes) + largest_dependence(codes)
        for straight, isometry in candidates
    ]
    best = int(np.argmax(gains))
    return candidates[best][0] if gains[best] > MIN_GAIN else None


def of_points(cloud: PointCloud, codes: np.ndarray) -> float:
    """Return how far codes (n, d), each of them rescaled, keep near distances."""
    return isometry_score(rescaled_distances(codes[cloud.scored], cloud.pairs), cloud.pairs.dx)


def of_averages(cloud: PointCloud, codes: np.ndarray) -> float:
    """Return how far codes (n, d), up to a linear map, keep the distances of local averages."""
    return averaged_isometry(cloud.points.numpy(), codes, cloud.neighbors, cloud.scored)


def straighten(cloud: PointCloud, k: int, y: np.ndarray, values: np.ndarray, d: int, seed: int) -> np.ndarray:
    """Return d codes of which the first is the longest, and the others have equal mean and scale given it, (n, d).

    Args:
        cloud: The points.
        k: Size of the neighborhoods.
        y: Eigenvectors of unit variance, more than d, (n, q).
        values: Their eigenvalues, ascending, (q,).
        d: Number of codes.
        seed: Seed of ICA and of the eigensolver.
    """
    k = min(max(k, MIN_NEIGHBORS), cloud.neighbors.shape[1] - 1)
    steps = tangent_steps(cloud, k, d)
    t = longest_coordinate(cloud, k, steps, seed)
    positive = np.maximum(values, SMALLEST_EIGENVALUE * values.max())  # null vectors have any sign by rounding
    rest = conditional_components(y / np.sqrt(positive + positive[d]), t, d - 1)
    if d > 2:
        rest = rest @ unmix(torch.from_numpy(rest), seed).numpy().T
        rest = standardize_given(rest, t)
    codes = np.column_stack([t, rest])
    return np.asarray((codes - codes.mean(0)) / codes.std(0))


# The longest coordinate ---------------------------------------------------------------------------------------------


def longest_coordinate(cloud: PointCloud, k: int, steps: Steps, seed: int) -> np.ndarray:
    """Return the coordinate of unit speed along the longest side, (n,).

    The slowest function on the graph rises along it however much the data bend, but hardly near both ends. A function
    of unit speed with the same direction everywhere corrects that.
    """
    laplacian, root = normalized_laplacian(cloud, k)
    t = smallest_eigenvectors(laplacian, 1, trivial=root, n_converged=1, seed=seed)[1][:, 0] / root
    for _ in range(UNIT_SPEED_STEPS):
        t = to_unit_speed(t, steps)
    return t


def tangent_steps(cloud: PointCloud, k: int, d: int) -> Steps:
    """Return the steps to the k neighbors of each point along its d tangent directions."""
    members, points = cloud.members(k), cloud.points
    U = cloud.tangent_coordinates(k, d).cpu().double()  # (n, k, d)
    parts = []
    for rows in split_rows(torch.arange(len(points)), BATCH_SIZE):
        difference = points[torch.from_numpy(members[rows.numpy()])] - points[rows, None]
        directions = difference.mT @ U[rows]  # of the centered cloud, since U is centered: V S
        directions = directions / directions.norm(dim=1, keepdim=True).clamp(min=1e-300)
        parts.append(difference @ directions)
    return Steps(members, torch.cat(parts).numpy())


def gradients(f: np.ndarray, steps: Steps) -> np.ndarray:
    """Return the gradient of a function (n,) in each tangent space, by local linear regression, (n, d)."""
    rise = f[steps.members] - f[:, None]
    A = np.concatenate([np.ones_like(steps.tangent[:, :, :1]), steps.tangent], 2)
    gram = A.swapaxes(1, 2) @ A
    gram += RIDGE * gram.trace(axis1=1, axis2=2)[:, None, None] * np.eye(A.shape[2])
    return np.asarray(np.linalg.solve(gram, A.swapaxes(1, 2) @ rise[:, :, None])[:, 1:, 0])


def to_unit_speed(f: np.ndarray, steps: Steps) -> np.ndarray:
    """Return the function whose gradient is nearest to that of f (n,), divided by its norm: a Poisson problem, (n,)."""
    n, k, _ = steps.tangent.shape
    slope = gradients(f, steps)
    slope /= np.maximum(norm(slope, axis=1, keepdims=True), 1e-300)
    rise = np.einsum("nkd,nd->nk", steps.tangent, slope)
    edges = np.arange(n * k)
    ends = np.concatenate([steps.members.ravel(), np.repeat(np.arange(n), k)])
    weights = np.concatenate([np.ones(n * k), -np.ones(n * k)])
    D = csr_matrix((weights, (np.concatenate([edges, edges]), ends)), shape=(n * k, n))  # f to its rises
    g = factorize(csc_matrix(D.T @ D + RIDGE * eye_array(n))).solve(D.T @ rise.ravel())
    return np.asarray(g - g.mean())


# The other factors given t ------------------------------------------------------------------------------------------


def conditional_components(y: np.ndarray, t: np.ndarray, count: int) -> np.ndarray:
    """Return the principal components of columns y (n, q) given t (n,), standardized given it, (n, count).

    Around each of some values of t, the directions in which y varies apart from t are found by PCA. Those of the next
    value are turned as near to them as possible, so that components continue along t.
    """
    n = len(t)
    n_slices = max(2, min(MAX_SLICES, n // POINTS_PER_SLICE))
    rest = y - conditional_mean(y, t, min(N_SPLINES, n_slices + 4))
    position = n_slices * place(t)  # slice c is around c + 1/2
    frames: list[np.ndarray] = []
    for center in np.arange(n_slices) + 0.5:
        weight = np.exp(-0.5 * (position - center) ** 2)[:, None]
        frame = np.linalg.eigh(rest.T @ (weight * rest))[1][:, : -count - 1 : -1]
        if frames:
            left, _, right = np.linalg.svd(frame.T @ frames[-1])
            frame = frame @ left @ right
        frames.append(frame)
    before = np.clip(position - 0.5, 0, n_slices - 2).astype(int)
    share = np.clip(position - 0.5 - before, 0, 1)[:, None, None]
    frame = (1 - share) * np.stack(frames)[before] + share * np.stack(frames)[before + 1]  # (n, q, count)
    return standardize_given(np.einsum("nq,nqc->nc", rest, frame), t)


def place(t: np.ndarray) -> np.ndarray:
    """Return the place of t (n,) on [0, 1]: the mean of its rank and its value, so that no part of either is empty."""
    return np.asarray(0.5 * (rankdata(t) - 0.5) / len(t) + 0.5 * (t - t.min()) / np.ptp(t))


def conditional_mean(f: np.ndarray, t: np.ndarray, n_splines: int) -> np.ndarray:
    """Return the regression of columns f (n, m) on cubic splines of t (n,)."""
    knots = np.concatenate([[0] * 3, np.linspace(0, 1, n_splines - 2), [1] * 3])
    B = BSpline.design_matrix(place(t), knots, 3).toarray()
    return np.asarray(B @ np.linalg.lstsq(B, f, rcond=None)[0])


def standardize_given(f: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return columns f (n, m) with mean zero and equal mean absolute value given t (n,), and unit variance."""
    f = f - conditional_mean(f, t, N_SPLINES)
    scale = conditional_mean(np.abs(f), t, N_SCALE_SPLINES)
    f = f / np.maximum(scale, 0.1 * scale.mean(0))
    return np.asarray(f / f.std(0))


# One factor given the others ----------------------------------------------------------------------------------------


def subtract_explained(codes: np.ndarray) -> np.ndarray:
    """Return codes (n, d) with equal mean and scale given the others, starting with the one that they explain best."""
    z = (codes - codes.mean(0)) / codes.std(0)
    for _ in range(z.shape[1]):
        shares = explained_shares(z)
        if shares.max() < MIN_EXPLAINED:
            break
        z = standardize_code_given_others(z, int(shares.argmax()))
    return np.asarray(z)


def explained_shares(z: np.ndarray) -> np.ndarray:
    """Return the share of the variance of each code that the others explain, (n, d) -> (d,)."""
    return np.array([polynomial_regression(z[:, j], np.delete(z, j, 1)).var() for j in range(z.shape[1])])


def standardize_code_given_others(z: np.ndarray, j: int) -> np.ndarray:
    """Return codes (n, d) of which code j has mean zero and equal mean absolute value given the others."""
    others = np.delete(z, j, 1)
    rest = z[:, j] - polynomial_regression(z[:, j], others)
    scale = polynomial_regression(np.abs(rest), others)
    rest = rest / np.maximum(scale, 0.1 * np.abs(rest).mean())
    z = z.copy()
    z[:, j] = (rest - rest.mean()) / rest.std()
    return z


def polynomial_regression(f: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the regression of f (n,) on polynomials of columns z (n, m), of the highest degree that points allow."""
    n, m = z.shape
    degree = max(d for d in range(1, MAX_DEGREE + 1) if d == 1 or POINTS_PER_TERM * comb(m + d, d) <= n)
    B = PolynomialFeatures(degree).fit_transform(z / np.abs(z).max(0))
    return np.asarray(B @ np.linalg.lstsq(B, f, rcond=None)[0])
