"""Colors and axes of factors with their real values."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from unweave import Factor
from unweave.report.figures.scales import CYCLIC, FactorScale, angle_text, factor_values


def key_texts(scale):
    """Return the texts of the key of a factor."""
    figure = Figure(layout="constrained")
    axis = figure.subplots()
    scale.add_key(figure, axis)
    if axis.get_legend() is not None:
        return [text.get_text() for text in axis.get_legend().get_texts()]
    return [label.get_text() for label in figure.axes[-1].get_yticklabels()]


def test_the_cyclic_map_ends_where_it_starts_in_even_visible_steps():
    colors = CYCLIC(np.arange(256))[:, :3]
    steps = np.linalg.norm(np.roll(colors, -1, 0) - colors, axis=1)
    assert steps.max() < 4 * steps.mean(), "also from the last to the first"
    luminance = colors @ [0.2126, 0.7152, 0.0722]
    assert luminance.max() < 0.8, "visible on white"
    assert np.linalg.norm(colors - np.roll(colors, 128, 0), axis=1).min() > 0.3, "opposite angles differ"
    # Readers who confuse red and green see lightness and blue against yellow: opposite angles differ for them too.
    seen = np.stack([luminance, colors[:, 2] - colors[:, :2].mean(1)], 1)
    assert np.linalg.norm(seen - np.roll(seen, 128, 0), axis=1).min() > 0.1


def test_angles_near_both_ends_of_the_turn_have_nearly_the_same_color():
    factor = Factor("azimuth", kind="circular", period=360)
    scale = FactorScale(factor, np.array([1.0, 359.0, 180.0, 721.0]))
    near, far = (np.abs(scale.colors[0] - scale.colors[i]).max() for i in (1, 2))
    assert near < 0.05 < 0.3 < far
    np.testing.assert_allclose(scale.colors[3], scale.colors[0])
    assert key_texts(scale) == ["0", "90", "180", "270", "360"]


def test_angles_on_both_sides_of_zero_keep_their_values():
    factor = Factor("azimuth", kind="circular", period=360)
    column = np.array([-110.0, 0.0, 120.0])
    assert factor_values(factor, column).tolist() == column.tolist()
    assert key_texts(FactorScale(factor, column)) == ["-180", "-90", "0", "90", "180"]
    assert key_texts(FactorScale(Factor("a", kind="circular"), np.array([0.0, 6.0]))) == ["0", "π/2", "π", "3π/2", "2π"]
    assert angle_text(math.pi / 3, 2 * math.pi) == "0.33π"


def test_numbers_behind_indices_are_shown():
    factor = Factor("elevation", 3, "ordinal", values=(-40.0, 0.0, 65.0))
    scale = FactorScale(factor, np.array([0.0, 2.0, 1.0]))
    assert scale.values.tolist() == [-40, 65, 0]
    assert scale.map.norm.vmin == -40 and scale.map.norm.vmax == 65
    turn = Factor("angle", 4, "circular", values=(0.0, 90.0, 180.0, 270.0), period=360)
    assert factor_values(turn, np.array([3.0, 1.0])).tolist() == [270, 90]


def test_names_are_shown_in_order():
    ordered = Factor("size", 3, "ordinal", values=("small", "medium", "large"))
    assert key_texts(FactorScale(ordered, np.array([0.0, 1.0, 2.0]))) == ["small", "medium", "large"]
    kinds = Factor("kind", 2, "nominal", values=("cat", "a dog whose name is much too long"))
    scale = FactorScale(kinds, np.array([0.0, 1.0, 1.0]))
    assert key_texts(scale) == ["cat", "a dog whose name is…"]
    assert (scale.colors[1] == scale.colors[2]).all() and (scale.colors[0] != scale.colors[1]).any()
    axis = Figure().subplots()
    scale.set_axis(axis.xaxis)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["cat", "a dog whose name is…"]
    assert np.abs(scale.positions() - [0, 1, 1]).max() <= 0.25


def test_rare_classes_are_one():
    column = np.concatenate([np.repeat(np.arange(17.0), 3), np.arange(17.0, 30.0)])
    scale = FactorScale(Factor("kind", 30, "nominal"), column)
    assert key_texts(scale) == [*(str(k) for k in range(17)), "13 others"]
    assert len(np.unique(scale.colors, axis=0)) == 18
    assert (scale.colors[-13:] == scale.colors[-1]).all()


@pytest.mark.parametrize("kind", ["real", "circular"])
def test_a_constant_factor_has_a_color(kind):
    assert np.isfinite(FactorScale(Factor("f", kind=kind), np.ones(5)).colors).all()
