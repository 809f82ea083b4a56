"""Neighborhoods of a point cloud."""

import numpy as np
import torch

from tests.helpers import flat_sheet
from unweave.methods import HessianICA
from unweave.methods.spectral.hessian import hessian_operator
from unweave.methods.spectral.point_cloud import build_cloud
from unweave.methods.spectral.tangent_space import (
    tangent_coordinates,
)


def test_a_point_in_no_neighborhood_joins_its_own():
    """Else nothing holds its code, it is a null vector by itself, and looks like a factor."""
    x, _ = flat_sheet(700, 2)
    far = torch.from_numpy(np.vstack([x, x.mean(0) + 0.6 * np.eye(20)[:3]]))
    method = HessianICA(latent_dim=2, n_neighbors=10)
    cloud = build_cloud(far, np.random.default_rng(0), n_neighbors=(10, 10))
    held = [np.bincount(near.ravel(), minlength=703) for near in (cloud.neighbors[:, 1:11], cloud.members(10))]
    assert (held[0] == 0).sum() == 3
    assert held[1].min() > 0
    assert method.operator(cloud, 10, 2)[0].diagonal().min() > 1e-6
    assert hessian_operator(tangent_coordinates(cloud.grams, 10, 2), cloud.neighbors[:, 1:11]).diagonal().min() == 0
