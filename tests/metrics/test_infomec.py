"""InfoMEC."""

import numpy as np
import pytest

from unweave.metrics import (
    infomec,
)

RNG = np.random.default_rng(0)


GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)


CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def turned(z, degrees=45.0):
    a = np.deg2rad(degrees)
    return z[:, :2] @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def test_perfect_duplicate_and_mixed_codes():
    perfect = infomec(GRID, CODES)
    assert perfect.modularity > 0.97
    assert perfect.compactness > 0.97
    assert perfect.explicitness > 0.99, "softmax of linear functions separates levels on a line"
    assert infomec(GRID, np.sin(7 * CODES)).explicitness < 0.7
    twice = infomec(GRID, np.column_stack([CODES, CODES + 1e-3 * RNG.normal(size=CODES.shape)]))
    assert twice.modularity > 0.97
    # Two of six codes share a factor evenly: (1/2 - 1/6) / (1 - 1/6) = 0.4.
    assert twice.compactness == pytest.approx(0.4, abs=0.02)
    assert infomec(GRID[:, :2], turned(CODES)).modularity < 0.1


def test_codes_of_small_range_are_pruned_except_in_explicitness():
    faint = np.column_stack([CODES, 0.01 * CODES[:, :1]])
    assert infomec(GRID, faint)[::2] == infomec(GRID, CODES)[::2]
    assert infomec(GRID, faint, prune=0).compactness < infomec(GRID, CODES).compactness - 0.1
    assert infomec(GRID, CODES * [1, 1, 0.01]).explicitness > 0.99


def test_information_is_normalized_by_the_entropy_of_the_measured_classes():
    """A monotone map of a continuous factor changes no class, so no information."""
    c = np.random.default_rng(1).normal(size=(1500, 2))
    z = np.column_stack([c[:, 0] + c[:, 1], c[:, 0] - c[:, 1]])
    bent = np.column_stack([c[:, 0], np.exp(2 * c[:, 1])])
    assert infomec(bent, z).modularity == pytest.approx(infomec(c, z).modularity, abs=1e-9)
    # A factor of two equally likely values that a code tells entirely: information over entropy is one.
    coin = np.repeat([[0.0, 0], [0, 1], [1, 0], [1, 1]], 200, 0)
    assert infomec(coin, coin + 0.01 * RNG.normal(size=coin.shape)).compactness > 0.97
    assert infomec(GRID, np.ones((len(GRID), 2))) == (0, 0, 0)


def test_continuous_factors_are_scored_by_explained_variance():
    c = np.random.default_rng(1).normal(size=(2000, 2))
    z = c + np.random.default_rng(2).normal(size=c.shape)
    assert infomec(c, z).explicitness == pytest.approx(0.5, abs=0.04)
