"""The smallest eigenvectors of a large sparse matrix that is positive and nearly singular."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_matrix, diags_array, eye_array
from scipy.sparse.linalg import SuperLU, lobpcg, splu

SHIFT = 1e-14  # of the largest diagonal entry: makes the matrix invertible and moves no eigenvector
ROUNDS = 30
ANGLE = 1e-3  # stop when the expected space turns by less than this, in radians
SPARE = 2  # more vectors than asked for, which speeds up the descent
DENSE = 400  # up to so many points the whole decomposition is quicker and exact


def smallest_eigenvectors(
    M: csc_matrix, count: int, *, trivial: np.ndarray | None = None, expected: int, direct: bool = True, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` smallest eigenvalues and vectors of M (n, n) among those orthogonal to the trivial one (n,).

    The first `expected` of them are converged to a small angle. `direct`: by factorizing the matrix and inverse
    iteration, for which a gap need not be large; else by LOBPCG, for matrices with many entries per row (four
    dimensions and more), whose factors would fill up and whose gap is large.
    """
    n = M.shape[0]
    trivial = np.full(n, n**-0.5) if trivial is None else trivial / np.linalg.norm(trivial)
    if n <= DENSE:
        return _dense(M, count, trivial)
    start = np.random.default_rng(seed).normal(size=(n, min(count + SPARE, n - 1)))
    if not direct:
        found = _by_descent(M, start, trivial, expected)
        if found is not None:
            return found[0][:count], found[1][:, :count]
    return _by_inversion(M, start[:, :count], trivial, expected)


def _dense(M: csc_matrix, count: int, trivial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lifted = M.toarray() + 10 * M.diagonal().max() * np.outer(trivial, trivial)
    values, vectors = eigh((lifted + lifted.T) / 2, subset_by_index=(0, min(count, len(lifted) - 1) - 1))
    return values, vectors


def _by_inversion(M: csc_matrix, V: np.ndarray, trivial: np.ndarray, expected: int) -> tuple[np.ndarray, np.ndarray]:
    """Block inverse iteration with Rayleigh-Ritz."""
    factors = _factorized(M)
    before = values = None
    V = _orthonormal(V, trivial)
    for _ in range(ROUNDS):
        values, V = _ritz(M, factors.solve(V), trivial)
        if before is not None and _angle(before, V[:, :expected]) < ANGLE:
            break
        before = V[:, :expected]
    assert values is not None
    return values, V


def _factorized(M: csc_matrix) -> SuperLU:
    shift = SHIFT * M.diagonal().max()
    for _ in range(4):
        try:
            shifted = (M + shift * eye_array(M.shape[0])).tocsc()
            symmetric = {"SymmetricMode": True}
            return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=8, options=symmetric)
        except RuntimeError:  # exactly singular, by cancellation
            shift *= 100
    return splu(shifted)


def _by_descent(
    M: csc_matrix, V: np.ndarray, trivial: np.ndarray, expected: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """LOBPCG with the diagonal as preconditioner; None where it does not converge."""
    inverse = diags_array(1 / np.maximum(M.diagonal(), 1e-300))
    before: np.ndarray | None = None
    rows = M.tocsr()
    for _ in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it was stopped early, which is what we do
            try:
                values, V = lobpcg(rows, V, M=inverse, Y=trivial[:, None], largest=False, maxiter=20, tol=1e-9)
            except (ValueError, np.linalg.LinAlgError):  # its own orthogonalisation broke down
                return None
        order = np.argsort(values)
        values, V = values[order], V[:, order]
        if before is not None and _angle(before, V[:, :expected]) < ANGLE:
            return values, V
        before = V[:, :expected]
    return None


def _orthonormal(V: np.ndarray, trivial: np.ndarray) -> np.ndarray:
    """Twice, because one pass leaves what rounding put back."""
    for _ in range(2):
        V = V - np.outer(trivial, trivial @ V)
        V = np.linalg.qr(V)[0]
    return V


def _ritz(M: csc_matrix, V: np.ndarray, trivial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    V = _orthonormal(V, trivial)
    small = V.T @ (M @ V)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    return values, V @ turn


def _angle(A: np.ndarray, B: np.ndarray) -> float:
    """The largest angle between two spaces given by orthonormal columns."""
    rest = B - A @ (A.T @ B)
    return float(np.linalg.norm(rest, 2))
