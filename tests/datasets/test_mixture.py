"""The artificial data of GIN: clusters with gaps between them."""

import pytest
import torch
from torch import Generator

from unweave import InputError
from unweave.datasets import GaussianMixture
from unweave.datasets.mixture import cluster_distance


def test_the_distance_is_that_of_the_closest_clusters_in_their_deviations():
    means = torch.tensor([[0.0, 0.0], [6.0, 0.0], [0.0, 4.0]])
    deviations = torch.tensor([[1.0, 1.0], [7.0**0.5, 1.0], [1.0, 2.0]])
    assert cluster_distance(means, deviations) == pytest.approx(4 / 2.5**0.5)


def test_clusters_are_as_far_apart_as_asked():
    data = GaussianMixture(points=3_000, clusters=3, spread="variance", min_distance=4.0, seed=2).load()
    _, c = data.collect(3_000, Generator().manual_seed(0))
    clusters = [c[c[:, 0] == k, 1:3] for k in range(3)]
    means, deviations = (torch.stack([f(z) for z in clusters]) for f in (lambda z: z.mean(0), lambda z: z.std(0)))
    assert cluster_distance(means, deviations) > 3.8
    with pytest.raises(InputError, match="take a smaller distance"):
        GaussianMixture(clusters=2, min_distance=50.0).load()


def test_the_recipe_of_clusters_that_may_overlap_is_the_one_of_earlier_versions():
    assert "min_distance" not in GaussianMixture().recipe()
    assert GaussianMixture(min_distance=2.0).recipe()["min_distance"] == 2.0
