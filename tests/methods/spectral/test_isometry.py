"""The choice of columns by their local isometry."""

import numpy as np

from unweave.methods.spectral.isometry import closest_pairs, select_columns


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
