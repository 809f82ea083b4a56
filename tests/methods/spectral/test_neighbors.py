"""Nearest neighbors against exact answers, and the components of their graph."""

import numpy as np
import torch
from scipy.spatial.distance import cdist

from unweave.methods.spectral.neighbors import (
    _find_by_all_distances,
    _move_self_first,
    find_neighbors,
    label_components,
)


def test_neighbors_are_the_nearest_with_the_point_itself_first():
    x = np.random.default_rng(0).normal(size=(400, 3))
    near = find_neighbors(x, 7)
    assert near.shape == (400, 8)
    assert (near[:, 0] == np.arange(400)).all()
    exact = np.argsort(cdist(x, x), 1)[:, 1:8]
    shared = [len(set(a) & set(b)) for a, b in zip(near[:, 1:], exact, strict=True)]
    assert min(shared) == 7


def test_a_point_that_coincides_with_others_is_still_its_own_first_neighbor():
    x = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 5, 0)
    near = find_neighbors(x, 6)
    assert (near[:, 0] == np.arange(100)).all()
    assert all(len(set(row)) == 7 for row in near)


def test_the_search_for_many_points_gives_the_same_neighbors(monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 3))
    before = find_neighbors(x, 5)
    monkeypatch.setattr("unweave.methods.spectral.neighbors.MIN_POINTS_FOR_APPROXIMATE", 100)
    shared = [len(set(a) & set(b)) for a, b in zip(find_neighbors(x, 5), before, strict=True)]
    assert np.mean(shared) > 5.9, "a little slack is allowed in the search among many"
    monkeypatch.setattr("unweave.methods.spectral.neighbors.SLACK", 0.0)
    assert np.array_equal(find_neighbors(x, 5), before)


def test_neighbors_by_all_distances_are_those_of_the_tree():
    points = np.random.default_rng(0).normal(size=(500, 3))
    points[7] = points[3]  # a repeat
    found = _move_self_first(_find_by_all_distances(torch.from_numpy(points), 9).numpy())
    expected = find_neighbors(points, 8)
    far = [np.linalg.norm(points[near] - points[:, None], axis=2) for near in (found, expected)]
    np.testing.assert_allclose(*far, atol=1e-7)
    assert (found[:, 0] == np.arange(500)).all()


def test_components_are_numbered_by_size():
    x = np.concatenate(
        [np.random.default_rng(0).uniform(size=(30, 2)), 50 + np.random.default_rng(1).uniform(size=(70, 2))]
    )
    member = label_components(find_neighbors(x, 5))
    assert (member[:30] == 1).all()
    assert (member[30:] == 0).all()
