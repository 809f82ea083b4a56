"""Neighborhoods of a point cloud."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet
from unweave import InputError
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


def test_scored_points_and_their_pairs():
    """All of up to a thousand points; a hundredth of their pairs, at least five for each point."""
    x = torch.from_numpy(np.random.default_rng(0).uniform(size=(1_001, 2)))
    few, many = (build_cloud(x[:n], np.random.default_rng(0), n_neighbors=(6, 9)) for n in (101, 1_001))
    assert few.scored.tolist() == list(range(101)) and len(few.pairs.dx) == 505
    assert len(set(many.scored)) == 1_000 and (np.diff(many.scored) > 0).all()
    assert len(many.pairs.dx) == 5_000
    assert few.neighbors.shape == (101, 10) and few.grams is not None and few.notes == ()
    small = build_cloud(x[:7], np.random.default_rng(0), n_neighbors=(6, 9))
    assert small.neighbors.shape == (7, 7) and len(small.pairs.dx) == 21
    with pytest.raises(InputError, match="landmarks=6 is too few for n_neighbors=6"):
        build_cloud(x[:6], np.random.default_rng(0), n_neighbors=(6, 9), size_name="landmarks")


def test_the_largest_component_is_that_of_twice_the_smallest_neighborhood():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.concatenate([rng.uniform(size=(60, 2)), 50 + rng.uniform(size=(20, 2))]))
    cloud = build_cloud(x, rng, n_neighbors=(6, 40), on_disconnected="largest", notes=("first",))
    assert len(cloud.points) == 60 and torch.equal(cloud.points, x[:60])
    assert cloud.notes == ("first", "20 of 80 points are in other parts of the graph and were left out.")
    assert len(build_cloud(x, rng, n_neighbors=(6, 40)).points) == 80
    assert len(build_cloud(x, rng, n_neighbors=(20, 40), on_disconnected="largest").points) == 80, "it bridges the gap"
