"""The smallest eigenvectors against dense decompositions."""

import numpy as np
import pytest
import torch
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csc_matrix, diags_array

from tests.helpers import flat_sheet
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.hessian import hessian_operator
from unweave.methods.spectral.neighbors import (
    find_neighbors,
)
from unweave.methods.spectral.tangent_space import (
    gram_matrices,
    tangent_coordinates,
)


@pytest.mark.parametrize(
    ("n", "d", "k", "direct"), [(300, 2, 10, True), (1500, 2, 10, True), (1500, 3, 18, True), (1200, 4, 25, False)]
)
def test_eigenvectors_equal_those_of_a_dense_decomposition(n, d, k, direct):
    x, _ = flat_sheet(n, d)
    near = find_neighbors(x, k)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(x), near), k, d), near)
    values, vectors = smallest_eigenvectors(M, d + 2, n_converged=d, direct=direct)
    exact_values, exact = eigh(M.toarray(), subset_by_index=(0, d))
    assert np.rad2deg(subspace_angles(vectors[:, :d], exact)).max() < 1
    np.testing.assert_allclose(values[:d], exact_values[1:], rtol=1e-3, atol=1e-12)
    assert np.abs(vectors[:, :d].sum(0)).max() < 1e-8, "the constant is projected out, not dropped by its place"


def test_an_exactly_singular_matrix_is_solved():
    z = np.random.default_rng(0).uniform(size=(900, 2))
    near = find_neighbors(z, 10)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(z), near), 10, 2), near)
    vectors = smallest_eigenvectors(M, 2, n_converged=2)[1]
    assert (
        np.rad2deg(subspace_angles(np.column_stack([vectors, np.ones(900)]), np.column_stack([z, np.ones(900)]))).max()
        < 0.1
    )


def test_a_trivial_vector_is_projected_out():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(600, 600)))[0]
    values = np.concatenate([[0, 1e-6, 2e-6], np.linspace(0.1, 1, 597)])
    M = csc_matrix((Q * values) @ Q.T)
    found, vectors = smallest_eigenvectors(M, 2, trivial=Q[:, 0], n_converged=2)
    np.testing.assert_allclose(found, [1e-6, 2e-6], rtol=1e-4)
    assert np.rad2deg(subspace_angles(vectors, Q[:, 1:3])).max() < 0.1


def matrix_of(values, seed=0):
    """A matrix with known eigenvalues, the first of them of the constant vector; and its eigenvectors."""
    n = len(values)
    Q = np.random.default_rng(seed).normal(size=(n, n))
    Q[:, 0] = 1
    Q = np.linalg.qr(Q)[0]
    return csc_matrix((Q * values) @ Q.T), Q


@pytest.mark.parametrize("smallest", [1e-1, 1e-9])
@pytest.mark.parametrize("direct", [True, False])
def test_the_iteration_goes_on_until_vectors_stand_still(smallest, direct):
    """Eigenvalues close to each other: every iteration only halves the angle to the eigenvectors that are sought."""
    if smallest < 1e-3 and not direct:
        pytest.skip("this is what the factorization is for")
    small = smallest * np.array([1.0, 1.1, 2, 2.2, 2.4])
    M, Q = matrix_of(np.concatenate([[0.0], small, np.linspace(0.5, 1, 494)]))
    values, vectors = smallest_eigenvectors(M, 3, n_converged=2, direct=direct)
    assert subspace_angles(vectors[:, :2], Q[:, 1:3]).max() < 5e-3
    np.testing.assert_allclose(values[:2], small[:2], rtol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-8)


@pytest.mark.parametrize("size", [30, 401])
@pytest.mark.parametrize("direct", [True, False])
def test_vectors_are_sorted_orthonormal_and_orthogonal_to_the_trivial_one(size, direct):
    rng = np.random.default_rng(1)
    trivial = rng.normal(size=size)
    Q = np.linalg.qr(np.column_stack([trivial, rng.normal(size=(size, size - 1))]))[0]
    M = csc_matrix((Q * np.concatenate([[0.0, 0.01, 0.02, 0.04], np.linspace(0.4, 1, size - 4)])) @ Q.T)
    values, vectors = smallest_eigenvectors(M, 3, trivial=7 * trivial, n_converged=3, direct=direct)
    assert vectors.shape == (size, 3)
    np.testing.assert_allclose(values, [0.01, 0.02, 0.04], rtol=1e-3)
    assert np.abs(trivial @ vectors).max() < 1e-6 * np.linalg.norm(trivial)
    np.testing.assert_allclose(np.abs(np.sum(vectors * Q[:, 1:4], 0)), 1, atol=1e-3)


def test_more_vectors_than_there_are_is_all_of_them():
    M, _ = matrix_of(np.linspace(0, 1, 5))
    values, vectors = smallest_eigenvectors(M, 9, n_converged=2)
    assert vectors.shape[0] == 5 and len(values) == vectors.shape[1] == 4


@pytest.mark.parametrize("smallest", [1e-9, 1e-12])
def test_a_slow_iteration_is_not_stopped_early_nor_slowed_down_by_the_shift(smallest):
    """Every iteration takes a quarter off the angle; a larger shift makes the eigenvalues alike, and takes less."""
    small = smallest * np.array([1.0, 1.1, 1.2, 1.45, 1.5])
    M, Q = matrix_of(np.concatenate([[0.0], small, np.linspace(0.5, 1, 494)]))
    vectors = smallest_eigenvectors(M, 3, n_converged=2)[1]
    assert subspace_angles(vectors[:, :2], Q[:, 1:3]).max() < 5e-3


def test_a_matrix_of_whole_numbers_is_singular_without_a_shift():
    """The Laplacian of a path: elimination ends with an exact zero."""
    n = 450
    M = diags_array([np.r_[1, np.full(n - 2, 2.0), 1], -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]).tocsc()
    values, vectors = smallest_eigenvectors(csc_matrix(M), 2, n_converged=2)
    np.testing.assert_allclose(values, 2 - 2 * np.cos(np.pi * np.array([1, 2]) / n), rtol=1e-4)
    waves = np.cos(np.pi * (np.arange(n)[:, None] + 0.5) * [1, 2] / n)
    assert subspace_angles(vectors, waves).max() < 1e-3
