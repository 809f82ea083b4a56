"""Figure 5 of the intervention paper: neighbors by feature, and what features hold."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from unweave.papers.intervention import flowers


def painted(n=400, seed=0):
    """Return flowers (n, 3, 16, 16): squares of random colors and sizes before random backgrounds; and what decides."""
    rng = np.random.default_rng(seed)
    colors, backgrounds, sides = rng.uniform(size=(n, 3)), rng.uniform(size=(n, 3)), rng.integers(4, 7, n)
    x = np.repeat(np.repeat(backgrounds[:, :, None, None], 16, 2), 16, 3)
    for image, color, side in zip(x, colors, sides, strict=True):
        image[:, 8 - side : 8 + side, 8 - side : 8 + side] = color[:, None, None]
    return x.astype(np.float32), colors, backgrounds, sides


def test_properties_are_those_of_center_and_border():
    x, colors, backgrounds, sides = painted()
    properties = flowers.measure_properties(x)
    np.testing.assert_allclose(properties["color of flower"], colors, atol=1e-5)
    np.testing.assert_allclose(properties["color of background"], backgrounds, atol=1e-5)
    assert all(values.shape[0] == len(x) and np.isfinite(values).all() for values in properties.values())
    assert np.corrcoef(properties["width"][:, 0], sides)[0, 1] > 0.9


def test_features_that_hold_different_things_have_a_gap_and_equal_ones_have_none():
    x, colors, backgrounds, sides = painted()
    apart = np.c_[colors, backgrounds, sides, sides, sides]
    mixed = np.c_[colors[:, :1], backgrounds[:, :1], sides, colors[:, 1:2], backgrounds[:, 1:2], sides]
    apart_rows = flowers.compare_properties("ours", apart, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], x, seed=0)
    mixed_rows = flowers.compare_properties("ours", mixed, [[0, 1, 2], [3, 4, 5]], x, seed=0)
    assert [float(row["color of flower"]) for row in apart_rows[:3]] == pytest.approx([1, 0, 0], abs=0.05)
    assert [float(row["color of background"]) for row in apart_rows[:3]] == pytest.approx([0, 1, 0], abs=0.05)
    gaps = [float(rows[-1]["feature"].split()[-1]) for rows in (apart_rows, mixed_rows)]
    assert gaps[0] > 0.6 and gaps[1] < 0.2


def test_chance_explains_nothing_on_photographs_that_were_left_out(monkeypatch):
    x = painted()[0]
    noise = np.random.default_rng(1).normal(size=(len(x), 16))
    explained = flowers.explained_properties(noise, flowers.measure_properties(x), seed=0)
    assert max(explained) < 0.05
    assert flowers.mean_gap(np.array([explained, explained])) == 0.0
    monkeypatch.setattr(flowers, "RidgeCV", lambda strengths: KNeighborsRegressor(1))  # knows what it was fitted to
    assert max(flowers.explained_properties(noise, flowers.measure_properties(x), seed=0)) < 0.05


def test_a_translator_has_a_folder_of_its_own(tmp_path):
    options = flowers.Options(translator="ridge", steps=20_000, lr=1e-4, out=tmp_path)
    assert flowers.folders(options).name == "flowers-lr-0.0001-ridge-20000-steps"
    ours = flowers.methods(options)["intervention"]
    assert (ours.diff_mode, ours.steps, ours.lr, ours.weight_lr) == ("ridge", 20_000, 1e-4, 1e-5)
