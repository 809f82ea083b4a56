"""The smallest eigenvectors against dense decompositions."""

import numpy as np
import pytest
import torch
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csc_matrix

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
