"""The local isometry of codes, and the choice of columns by it."""

import numpy as np
import pytest

from unweave.methods.spectral.isometry import (
    Pairs,
    averaged_isometry,
    closest_pairs,
    fit_rescaling,
    isometry_score,
    rescaled_distances,
    select_columns,
)
from unweave.methods.spectral.neighbors import find_neighbors


def test_independent_columns_are_selected():
    """One factor, its square, and then the other: the first two keep no distances."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2)) * [5, 1]
    pairs = closest_pairs(z, 0.02)
    y = np.column_stack([z[:, 0], z[:, 0] ** 2, z[:, 1], z[:, 0] ** 3])
    assert select_columns(y, 2, pairs).columns == (0, 2)
    mixed = np.column_stack([z @ [1, 1], z @ [1, -2], z[:, 0] ** 2])
    choice = select_columns(mixed, 2, pairs)
    assert choice.columns == (0, 1), "up to a linear map the first two are the factors"
    assert choice.score > 0.999


def test_noise_does_not_lower_the_isometry_of_averages():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (800, 2))
    x = np.pad(z, ((0, 0), (0, 10))) + 0.05 * rng.normal(size=(800, 12))
    neighbors = find_neighbors(x, 12)
    near = closest_pairs(x, 0.01)
    assert isometry_score(rescaled_distances(z, near), near.dx) < 0.7
    assert averaged_isometry(x, z, neighbors, np.arange(800)) > 0.95
    folded = np.column_stack([z[:, 0], np.cos(3 * z[:, 0])])  # a factor twice
    assert averaged_isometry(x, folded, neighbors, np.arange(800)) < 0.8


def test_distances_of_codes_with_a_period_are_the_short_way_around():
    pairs = Pairs(np.array([0, 1]), np.array([1, 2]), np.array([0.2, 1.0]))
    codes = np.array([[6.2], [0.1], [1.1]])
    distances = rescaled_distances(codes, pairs, (2 * np.pi,))
    np.testing.assert_allclose(distances[0] / distances[1], (0.1 + 2 * np.pi - 6.2) / 1.0)


def test_a_circular_code_is_used_besides_every_choice():
    """Angle and height keep distances on a cylinder. The first column only repeats the angle."""
    rng = np.random.default_rng(0)
    turn, height = rng.uniform(0, 2 * np.pi, 500), rng.uniform(-1, 1, 500)
    pairs = closest_pairs(np.column_stack([np.cos(turn), np.sin(turn), height]), 0.02)
    steps = np.angle(np.exp(1j * (turn[pairs.i] - turn[pairs.j])))
    choice = select_columns(np.column_stack([np.cos(turn), height]), 1, pairs, steps=steps)
    assert choice.columns == (1,)
    assert choice.score > 0.999


def test_near_pairs_are_a_twentieth_of_all_pairs_by_default():
    """The share of Horan, Richardson and Weiss (2021)."""
    x = np.random.default_rng(0).uniform(size=(81, 2))
    pairs = closest_pairs(x)
    assert len(pairs.dx) == 81 * 80 // 2 // 20
    assert (pairs.i < pairs.j).all()
    np.testing.assert_allclose(np.linalg.norm(x[pairs.i] - x[pairs.j], axis=1), pairs.dx)
    every = np.sort(np.linalg.norm(x[:, None] - x, axis=2)[np.triu_indices(81, 1)])
    np.testing.assert_allclose(np.sort(pairs.dx), every[: len(pairs.dx)])
    assert len(closest_pairs(x[:3]).dx) == 1, "one pair at least"


def bent_and_straight(bend):
    """Three columns: a factor that is stretched by a bend, another factor, and the first one unstretched."""
    z = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    stretched = z[:, 0] + bend * z[:, 0] ** 3
    return np.column_stack([stretched, z[:, 1], z[:, 0]]), closest_pairs(z, 0.02)


def test_later_columns_win_only_if_they_score_higher_by_more_than_the_margin():
    y, pairs = bent_and_straight(0.4)
    first = select_columns(y[:, :2], 2, pairs).score
    best = select_columns(y, 2, pairs, margin=0.0)
    assert best.columns == (1, 2) and best.score > 0.999
    gain = best.score - first
    assert 0.01 < gain < 0.9
    assert select_columns(y, 2, pairs, margin=0.99 * gain).columns == (1, 2)
    kept = select_columns(y, 2, pairs, margin=1.01 * gain)
    assert kept.columns == (0, 1) and abs(kept.score - first) < 1e-9


def test_by_default_a_gain_of_a_hundredth_does_not_count_and_one_of_a_twentieth_does():
    for bend, columns in ((0.1, (0, 1)), (0.35, (1, 2))):
        y, pairs = bent_and_straight(bend)
        gain = 1 - select_columns(y[:, :2], 2, pairs).score
        assert gain < 0.01 if columns == (0, 1) else gain > 0.05
        assert select_columns(y, 2, pairs).columns == columns


def test_distances_are_fitted_up_to_any_linear_map():
    """A shear, which no scale per code undoes, costs nothing where columns are selected."""
    z = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    pairs = closest_pairs(z)
    sheared = z @ np.array([[1, 3], [0, 0.2]])
    assert select_columns(sheared, 2, pairs).score > 0.9999
    assert isometry_score(rescaled_distances(sheared, pairs), pairs.dx) < 0.8


def test_the_score_is_a_correlation_and_zero_for_constants():
    rng = np.random.default_rng(0)
    dx, dz = rng.uniform(size=(2, 200))
    by_hand = ((dx - dx.mean()) * (dz - dz.mean())).mean() / (dx.std() * dz.std())
    np.testing.assert_allclose(isometry_score(dz, dx), by_hand)
    np.testing.assert_allclose(isometry_score(3 * dx + 1, dx), 1)
    assert isometry_score(np.zeros(200), dx) == 0
    assert isometry_score(np.full(200, 5.0), dx) == 0
    assert isometry_score(dz, np.full(200, 2.0)) == 0
    np.testing.assert_allclose(isometry_score(1e-9 * dz, dx), by_hand)


@pytest.mark.parametrize("scales", [(0.5, 3.0), (2.0, 0.1), (4.0, 0.0)])
def test_the_scales_that_distances_were_made_with_are_found(scales):
    gaps = np.random.default_rng(0).uniform(size=(500, 2)) ** 2
    found = fit_rescaling(gaps, np.sqrt(gaps @ np.square(scales)))
    np.testing.assert_allclose(found, np.square(scales), rtol=1e-3, atol=2e-5)
