"""InfoMEC."""

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

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


def test_information_and_explained_entropy_by_hand():
    """Of the authors' definitions: shares of normalized information, and of entropy by a balanced regression."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, [2, 3], (120, 2))
    z = np.column_stack([c[:, 0] + 0.4 * rng.normal(size=120), c[:, 1] + 0.1 * rng.normal(size=120), np.ones(120)])
    found = infomec(c, z, neighbors=7, seed=3)
    x = (z[:, :2] - z[:, :2].mean(0)) / z[:, :2].std(0)
    information = np.array([mutual_info_classif(x, y, n_neighbors=7, random_state=3) for y in c.T])
    information /= np.array([entropy(np.bincount(y)) for y in c.T])[:, None]
    share = (information.max(0) / information.sum(0)).mean(), (information.max(1) / information.sum(1)).mean()
    assert [found.modularity, found.compactness] == pytest.approx([2 * (v - 0.5) for v in share])
    explained = []
    for y in c.T:
        model = LogisticRegression(C=np.inf, class_weight="balanced").fit(x, y)
        explained.append(1 - log_loss(y, model.predict_proba(x)) / np.log(y.max() + 1))
    assert found.explicitness == pytest.approx(np.mean(explained), abs=1e-3)
    assert infomec(c, np.ones((120, 2))) == (0, 0, 0)


def test_one_code_is_compact_by_definition_if_it_is_informative():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, (200, 2))
    assert infomec(c, c[:, :1] + 0.1 * rng.normal(size=(200, 1))).compactness == 1
