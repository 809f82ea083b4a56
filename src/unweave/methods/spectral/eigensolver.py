"""The smallest eigenvectors of a large, sparse, positive semidefinite and nearly singular matrix."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_matrix, diags_array, eye_array
from scipy.sparse.linalg import SuperLU, lobpcg, splu

SHIFT = 1e-14  # relative to the largest diagonal entry: makes the matrix invertible and moves no eigenvector
MAX_INVERSE_ITERATIONS = 30
MAX_LOBPCG_CALLS, LOBPCG_ITERATIONS = 12, 20
ANGLE_TOLERANCE = 1e-3  # stop when the converged space turns by less than this, in radians
EXTRA_VECTORS = 2  # iterated besides those asked for, which speeds up LOBPCG
MAX_DENSE_SIZE = 400  # up to this size the dense decomposition is faster, and exact


def smallest_eigenvectors(
    M: csc_matrix,
    count: int,
    *,
    trivial: np.ndarray | None = None,
    n_converged: int,
    direct: bool = True,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest eigenvalues (count,) and eigenvectors (n, count) of M (n, n) orthogonal to a known one.

    Args:
        M: Symmetric positive semidefinite matrix, (n, n).
        count: Number of eigenvectors.
        trivial: Known null vector to project out, (n,); a constant vector by default.
        n_converged: Number of leading vectors whose space must converge to a small angle.
        direct: Factorize the matrix and iterate its inverse, which works with a small eigengap. Otherwise LOBPCG, for
            matrices with many entries per row (four dimensions and more): their factors fill up, their gap is large.
        seed: Seed of the random starting vectors.
    """
    n = M.shape[0]
    trivial = np.full(n, n**-0.5) if trivial is None else trivial / np.linalg.norm(trivial)
    if n <= MAX_DENSE_SIZE:
        return _solve_dense(M, count, trivial)
    start = np.random.default_rng(seed).normal(size=(n, min(count + EXTRA_VECTORS, n - 1)))
    if not direct:
        solution = _run_lobpcg(M, start, trivial, n_converged)
        if solution is not None:
            return solution[0][:count], solution[1][:, :count]
    return _iterate_inverse(M, start[:, :count], trivial, n_converged)


def _solve_dense(M: csc_matrix, count: int, trivial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decompose the whole matrix, with the trivial vector moved to the other end of the spectrum."""
    lifted = M.toarray() + 10 * M.diagonal().max() * np.outer(trivial, trivial)
    values, vectors = eigh((lifted + lifted.T) / 2, subset_by_index=(0, min(count, len(lifted) - 1) - 1))
    return values, vectors


def _iterate_inverse(
    M: csc_matrix, V: np.ndarray, trivial: np.ndarray, n_converged: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run block inverse iteration with Rayleigh-Ritz from starting vectors V (n, count)."""
    factors = factorize(M)
    before = values = None
    V = _orthonormalize_against(V, trivial)
    for _ in range(MAX_INVERSE_ITERATIONS):
        values, V = _rayleigh_ritz(M, factors.solve(V), trivial)
        if before is not None and _largest_angle(before, V[:, :n_converged]) < ANGLE_TOLERANCE:
            break
        before = V[:, :n_converged]
    assert values is not None
    return values, V


def factorize(M: csc_matrix) -> SuperLU:
    """Return a sparse factorization of M plus the smallest shift that makes it nonsingular."""
    shift = SHIFT * M.diagonal().max()
    for _ in range(4):
        try:
            shifted = (M + shift * eye_array(M.shape[0])).tocsc()
            symmetric = {"SymmetricMode": True}
            return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=8, options=symmetric)
        except RuntimeError:  # exactly singular, by cancellation
            shift *= 100
    return splu(shifted)


def _run_lobpcg(
    M: csc_matrix, V: np.ndarray, trivial: np.ndarray, n_converged: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Run LOBPCG with the diagonal as preconditioner; None where it does not converge."""
    inverse = diags_array(1 / np.maximum(M.diagonal(), 1e-300))
    before: np.ndarray | None = None
    rows = M.tocsr()
    for _ in range(MAX_LOBPCG_CALLS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it was stopped early, which is what we do
            try:
                values, V = lobpcg(
                    rows, V, M=inverse, Y=trivial[:, None], largest=False, maxiter=LOBPCG_ITERATIONS, tol=1e-9
                )
            except (ValueError, np.linalg.LinAlgError):  # its own orthogonalization broke down
                return None
        order = np.argsort(values)
        values, V = values[order], V[:, order]
        if before is not None and _largest_angle(before, V[:, :n_converged]) < ANGLE_TOLERANCE:
            return values, V
        before = V[:, :n_converged]
    return None


def _orthonormalize_against(V: np.ndarray, trivial: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of V (n, m) without its part along `trivial` (n,).

    Two passes: the first one leaves rounding errors along `trivial`.
    """
    for _ in range(2):
        V = V - np.outer(trivial, trivial @ V)
        V = np.linalg.qr(V)[0]
    return V


def _rayleigh_ritz(M: csc_matrix, V: np.ndarray, trivial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (m,) and eigenvectors (n, m) of M restricted to the columns of V (n, m)."""
    V = _orthonormalize_against(V, trivial)
    small = V.T @ (M @ V)
    values, rotation = np.linalg.eigh((small + small.T) / 2)
    return values, V @ rotation


def _largest_angle(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sine of the largest angle between two spaces with orthonormal bases A and B, (n, m) each."""
    rest = B - A @ (A.T @ B)
    return float(np.linalg.norm(rest, 2))
