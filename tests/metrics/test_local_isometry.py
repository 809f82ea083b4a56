"""Local isometry."""

import numpy as np
import pytest

from unweave import InputError
from unweave.methods.spectral.isometry import fit_rescaling
from unweave.metrics import (
    local_isometry,
    mcc,
)
from unweave.metrics.local_isometry import near_pairs


def test_a_scale_per_axis_is_allowed_and_a_shear_is_not(z):
    assert local_isometry(z, z * [3, 0.01]) == pytest.approx(1, abs=1e-6)
    assert local_isometry(z, z @ np.array([[1, 0.9], [0.9, 1]])) < 0.75


def test_only_near_pairs_count():
    """Unrolled, a Swiss roll keeps its near distances and none of its far ones."""
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=2000)), 20 * rng.uniform(size=2000)
    roll = np.stack([t * np.cos(t), height, t * np.sin(t)], 1)
    length = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    flat = np.stack([length, height], 1)
    assert local_isometry(roll, flat, closest=0.01) > 0.99
    assert local_isometry(roll, flat, closest=1.0) < 0.7


def test_near_pairs_are_the_closest_pairs(z):
    pairs = near_pairs(z[:200], z[:200], closest=0.05)
    every = np.sort(np.linalg.norm(z[:200, None] - z[None, :200], axis=2)[np.triu_indices(200, 1)])
    assert len(pairs.dx) == int(0.05 * 200 * 199 / 2)
    np.testing.assert_allclose(np.sort(pairs.dx), every[: len(pairs.dx)], atol=1e-7)
    with pytest.raises(InputError, match="between 0 and 1"):
        near_pairs(z, z, closest=0)


def test_the_rescaling_minimizes_the_mean_squared_difference_of_distances():
    """Against a search by brute force over both scales."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(150, 2))
    codes = np.column_stack([x[:, 0] + 0.2 * x[:, 1] ** 2, 3 * x[:, 1] + rng.normal(size=150)])
    i, j = np.triu_indices(150, 1)
    dx, gaps = np.linalg.norm(x[i] - x[j], axis=1), (codes[i] - codes[j]) ** 2

    def loss(w):
        return np.mean((np.sqrt(gaps @ w) - dx) ** 2)

    grid = np.linspace(0, 1.5, 151)
    best = min(loss(np.array([a, b])) for a in grid**2 for b in grid**2)
    assert loss(fit_rescaling(gaps, dx)) <= best + 1e-9


def test_columns_of_very_different_scale_are_all_active(z):
    assert mcc(z, z * [1e14, 1e-14]) == pytest.approx(1)
    assert mcc(z, z + np.array([1e6, 0])) == pytest.approx(1)
