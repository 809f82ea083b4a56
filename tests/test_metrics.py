"""Known answers."""

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import local_isometry, mcc
from unweave.metrics.local_isometry import _rescaling, near_pairs


@pytest.fixture(scope="module")
def z():
    return np.random.default_rng(0).uniform(-1, 1, (4000, 2))


@pytest.mark.parametrize("degrees", [0, 10, 30, 45])
def test_mcc_of_a_rotated_code_is_the_cosine(z, degrees):
    a = np.deg2rad(degrees)
    codes = z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert mcc(z, codes) == pytest.approx(np.cos(a), abs=0.02)


def test_spearman_sees_through_a_monotone_map_and_pearson_does_not(z):
    codes = np.exp(5 * z)
    assert mcc(z, codes, correlation="spearman") == pytest.approx(1)
    assert mcc(z, codes) < 0.9
    with pytest.raises(InputError, match="'pearson' or 'spearman'"):
        mcc(z, codes, correlation="kendall")


def test_spearman_ranks_are_ranks_and_not_an_argsort():
    """The argsort of (3, 1, 2) is (1, 2, 0); its ranks are (2, 0, 1)."""
    factor, code = np.array([3.0, 1, 2, 5, 4]), np.array([1.0, 2, 3, 4, 5])
    assert mcc(factor, code, correlation="spearman") == pytest.approx(0.6)
    assert mcc(factor, factor**3, correlation="spearman") == pytest.approx(1)


def test_mcc_matches_by_the_best_assignment_and_not_greedily():
    """|r| = [[.9, .8], [.85, 0]]: greedy takes .9 + 0, the best assignment .8 + .85."""
    rng = np.random.default_rng(0)
    a, b, noise = (rng.normal(size=(20_000, 1)) for _ in range(3))
    codes = np.hstack([0.9 * a + 0.436 * b, 0.8 * a + 0.6 * noise])
    factors = np.hstack([a, 0.85 * codes[:, :1] + 0.527 * rng.normal(size=(20_000, 1))])
    r = np.abs(np.corrcoef(factors.T, codes.T)[:2, 2:])
    assert r[0, 0] > r[1, 0] > r[0, 1] > r[1, 1]
    assert mcc(factors, codes) == pytest.approx((r[0, 1] + r[1, 0]) / 2)


def test_a_factor_without_a_code_counts_as_zero(z):
    assert mcc(z, z[:, :1]) == pytest.approx(0.5, abs=0.02)
    assert mcc(z[:, 0], z) == pytest.approx(1)


def test_a_constant_factor_is_refused(z):
    with pytest.raises(InputError, match="factor 1 is constant"):
        mcc(np.column_stack([z[:, 0], np.ones(4000)]), z)


def test_isometry_forgives_a_scale_per_axis_but_not_a_shear(z):
    assert local_isometry(z, z * [3, 0.01]) == pytest.approx(1, abs=1e-6)
    assert local_isometry(z, z @ np.array([[1, 0.9], [0.9, 1]])) < 0.75


def test_isometry_is_local():
    """Unrolled, a Swiss roll keeps its near distances and none of its far ones."""
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=2000)), 20 * rng.uniform(size=2000)
    roll = np.stack([t * np.cos(t), height, t * np.sin(t)], 1)
    length = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    flat = np.stack([length, height], 1)
    assert local_isometry(roll, flat, closest=0.01) > 0.99
    assert local_isometry(roll, flat, closest=1.0) < 0.7


def test_the_closest_pairs_are_the_closest(z):
    pairs = near_pairs(z[:200], z[:200], closest=0.05)
    every = np.sort(np.linalg.norm(z[:200, None] - z[None, :200], axis=2)[np.triu_indices(200, 1)])
    assert len(pairs.dx) == int(0.05 * 200 * 199 / 2)
    np.testing.assert_allclose(np.sort(pairs.dx), every[: len(pairs.dx)], atol=1e-7)
    with pytest.raises(InputError, match="between 0 and 1"):
        near_pairs(z, z, closest=0)


def test_the_rescaling_minimises_the_mean_squared_difference_of_distances():
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
    assert loss(_rescaling(gaps, dx)) <= best + 1e-9


def test_columns_of_very_different_size_are_all_alive(z):
    assert mcc(z, z * [1e14, 1e-14]) == pytest.approx(1)
    assert mcc(z, z + np.array([1e6, 0])) == pytest.approx(1)
