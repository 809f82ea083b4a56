"""Tangent coordinates and orthonormal bases against exact decompositions."""

import pytest
import torch

from tests.helpers import flat_sheet
from unweave.datasets import SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral.neighbors import (
    find_neighbors,
)
from unweave.methods.spectral.tangent_space import (
    gram_matrices,
    gram_schmidt,
    leading_singular_vectors,
    tangent_coordinates,
)
from unweave.metrics import mcc


@pytest.mark.parametrize(("k", "d"), [(8, 2), (20, 3), (40, 5)])
def test_tangent_directions_are_the_leading_singular_vectors(k, d):
    x, _ = flat_sheet(500, d)
    cloud = torch.from_numpy(x)[torch.from_numpy(find_neighbors(x, k))[:, 1:]]
    ours = leading_singular_vectors((cloud - cloud[:, :1]) @ (cloud - cloud[:, :1]).mT, d)
    exact = torch.linalg.svd(cloud - cloud.mean(1, keepdim=True), full_matrices=False)[0][:, :, :d]
    cosines = torch.linalg.svdvals(ours.mT @ exact)[:, -1]
    assert cosines.quantile(0.02) > 0.999
    assert torch.allclose(ours.mT @ ours, torch.eye(d, dtype=ours.dtype).expand(500, d, d), atol=1e-5)


def test_gram_matrices_of_fewer_neighbors_are_leading_blocks():
    x, _ = flat_sheet(300, 2)
    points, near = torch.from_numpy(x), find_neighbors(x, 20)[:, 1:]
    few = tangent_coordinates(gram_matrices(points, near[:, :9]), 9, 2)
    corners = tangent_coordinates(gram_matrices(points, near), 9, 2)
    assert torch.allclose((few @ few.mT), (corners @ corners.mT), atol=1e-4)


def test_gram_schmidt_equals_householder_up_to_signs():
    rng = torch.Generator().manual_seed(0)
    A = torch.randn(50, 12, 6, generator=rng, dtype=torch.float64)
    A[3, :, 4] = A[3, :, 0] + 1e-9 * A[3, :, 4]  # nearly dependent
    kept = A.clone()
    Q, expected = gram_schmidt(A), torch.linalg.qr(A)[0]
    assert torch.equal(A, kept)
    eye = torch.eye(6, dtype=torch.float64).expand(50, 6, 6)
    torch.testing.assert_close(Q.mT @ Q, eye, atol=1e-12, rtol=0)
    torch.testing.assert_close((Q * expected).sum(1).abs(), torch.ones(50, 6, dtype=torch.float64), atol=1e-9, rtol=0)


def test_gram_schmidt_completes_a_basis_where_columns_repeat_or_vanish():
    A = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))
    A[0, :, 2], A[0, :, 3], A[1] = A[0, :, 1], 0.0, 0.0
    Q = gram_schmidt(A)
    torch.testing.assert_close(Q.mT @ Q, torch.eye(4).expand(2, 4, 4), atol=1e-6, rtol=0)
    torch.testing.assert_close(Q[0, :, :2] @ Q[0, :, :2].mT @ A[0, :, :2], A[0, :, :2])


def test_codes_do_not_depend_on_how_bases_are_orthonormalized(monkeypatch):
    data = SquaresXY(points=300, size=16, side=6).load()
    usual = HessianICA(latent_dim=2, n_neighbors=12).fit(data)
    monkeypatch.setattr("unweave.methods.spectral.tangent_space.orthonormalize", gram_schmidt)
    other = HessianICA(latent_dim=2, n_neighbors=12).fit(data)
    assert mcc(usual.codes_, other.codes_) > 1 - 1e-6
