"""The local isometry of codes, and the choice of columns by it."""

import numpy as np

from unweave.methods.spectral.isometry import (
    Pairs,
    averaged_isometry,
    closest_pairs,
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
