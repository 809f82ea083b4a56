"""The Hessian and the tangent operator: their null space, and scikit-learn's."""

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles
from sklearn.manifold import LocallyLinearEmbedding

from tests.helpers import flat_sheet
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.hessian import hessian_operator
from unweave.methods.spectral.neighbors import (
    find_neighbors,
)
from unweave.methods.spectral.tangent import tangent_operator
from unweave.methods.spectral.tangent_space import (
    gram_matrices,
    tangent_coordinates,
)


@pytest.mark.parametrize("operator", [hessian_operator, tangent_operator])
def test_linear_functions_are_in_the_null_space_and_nonlinear_ones_are_not(operator):
    z = np.random.default_rng(0).uniform(size=(400, 2))
    near = find_neighbors(z, 12)[:, 1:]
    M = operator(tangent_coordinates(gram_matrices(torch.from_numpy(z), near), 12, 2), near)

    def energy(f):
        return f @ (M @ f) / (f @ f)

    assert energy(np.ones(400)) < 1e-14
    for f in (z[:, 0], z[:, 1], 3 * z[:, 0] - z[:, 1] + 2):
        assert energy(f) < 1e-8
    for f in (z[:, 0] ** 2, z[:, 0] * z[:, 1], np.sin(6 * z[:, 1])):
        assert energy(f - f.mean()) > 1e-6


def test_the_hessian_embedding_equals_scikit_learns():
    """Same points, same neighbors: the same space."""
    x, _ = flat_sheet(900, 2)
    near = find_neighbors(x, 12)[:, 1:]
    M = hessian_operator(tangent_coordinates(gram_matrices(torch.from_numpy(x), near), 12, 2), near)
    ours = smallest_eigenvectors(M, 2, n_converged=2)[1]
    lle = LocallyLinearEmbedding(n_components=2, n_neighbors=12, method="hessian", eigen_solver="dense", random_state=0)
    assert np.rad2deg(subspace_angles(ours, lle.fit_transform(x))).max() < 1
