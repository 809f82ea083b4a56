"""Estimators of the dimension on manifolds of known dimension."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet, swiss_roll
from unweave.methods.spectral.dimension import gap_dimension, likelihood_dimension, likelihood_interval
from unweave.methods.spectral.neighbors import (
    find_neighbors,
)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_likelihood_estimate_is_close_to_the_dimension(d):
    x, _ = flat_sheet(2500, d)
    near = find_neighbors(x, 20)
    assert likelihood_dimension(x, near) == pytest.approx(d, abs=0.45)


def test_the_gap_estimate_is_robust_to_noise():
    x = swiss_roll(2000)[0] @ np.linalg.qr(np.random.default_rng(0).normal(size=(10, 3)))[0].T
    x = x + 0.05 * np.random.default_rng(1).normal(size=x.shape)
    near = find_neighbors(x, 30)
    assert gap_dimension(torch.from_numpy(x), near, 6) == 2


def test_the_likelihood_estimate_is_that_of_the_papers():
    """Levina and Bickel (2004), Eq. 9 with k - 2 for an estimate without bias; inverses averaged over points."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    k = 6
    near = find_neighbors(x, k)
    inverses = []
    for i in range(60):
        T = [np.sqrt(((x[i] - x[j]) ** 2).sum()) for j in near[i, 1:]]
        inverses.append(sum(np.log(T[k - 1] / T[j]) for j in range(k - 1)) / (k - 2))
    assert likelihood_dimension(x, near) == pytest.approx(1 / np.mean(inverses))


def test_the_likelihood_estimate_does_not_depend_on_scale_and_survives_repeats():
    x = np.random.default_rng(0).normal(size=(60, 3))
    near = find_neighbors(x, 6)
    estimate = likelihood_dimension(x, near)
    for scale in (1e-9, 1e9):
        assert likelihood_dimension(scale * x, near) == pytest.approx(estimate)
    repeated = x.copy()
    repeated[near[:5, 1]] = repeated[:5]  # neighbors that coincide with their points
    assert 0 < likelihood_dimension(repeated, near) < estimate
    corners = np.eye(7)  # all neighbors at the same distance, as in infinitely many dimensions
    assert likelihood_dimension(corners, find_neighbors(corners, 6)) > 1e6


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_gap_estimate_is_the_steepest_fall_of_the_variances(d):
    """Variances 1 along d directions and 0.01 along others, of clouds far from each other."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(6) < d, 1, 0.1)
    clouds = rng.normal(size=(40, 25, 6)) * scale + 1000 * rng.normal(size=(40, 1, 6))
    near = np.arange(1000).reshape(40, 25)
    points = torch.from_numpy(clouds.reshape(-1, 6))
    assert gap_dimension(points, near, 5) == d
    assert gap_dimension(points, near, 6) == d
    assert gap_dimension(points, near, max(1, d - 1)) <= max(1, d - 1)


def test_the_gap_estimate_of_what_has_no_gap_is_one_dimension():
    points = torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    assert gap_dimension(points, np.arange(60).reshape(3, 20), 5) == 1
    line = torch.cat([points, torch.zeros(60, 3)], 1)
    assert gap_dimension(line, np.arange(60).reshape(3, 20), 3) == 1, "no division by a variance of zero"


def test_the_interval_covers_the_mean_estimate_of_other_samples_and_narrows():
    rng = np.random.default_rng(0)
    samples = [rng.uniform(size=(400, 3)) for _ in range(25)]
    near = [find_neighbors(x, 20) for x in samples]
    mean = np.mean([likelihood_dimension(x, rows) for x, rows in zip(samples, near, strict=True)])
    intervals = [likelihood_interval(x, rows) for x, rows in zip(samples, near, strict=True)]
    assert np.mean([low < mean < high for low, high in intervals]) > 0.8
    low, high = likelihood_interval(x := rng.uniform(size=(3_000, 3)), find_neighbors(x, 20))
    assert high - low < 0.5 * np.mean([b - a for a, b in intervals])
