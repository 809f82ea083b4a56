"""Scatter plots of all codes, and how closely codes follow factors."""

import math

import numpy as np
import pytest

from unweave.data.core import Factor
from unweave.experiments.ordered import order_observations
from unweave.report.figures.embedding import draw_codes
from unweave.report.figures.heatmap import associate, correlate
from unweave.report.figures.ordered import draw_ordered
from unweave.report.figures.style import save_figure

RNG = np.random.default_rng(0)
FACTORS = (Factor("size"), Factor("kind", 2, "nominal", values=("a", "b")), Factor("noise", noise=True))


def labels(figure, which):
    """Return the labels of all panels, without color bars."""
    return [getattr(axis, f"get_{which}label")() for axis in figure.axes if axis.get_label() != "<colorbar>"]


def draw(d, factors=FACTORS, constant=()):
    z = RNG.normal(size=(80, d))
    z[:, list(constant)] = 1.0
    truth = np.stack([z[:, 0], RNG.integers(0, 2, 80), z[:, 0]], 1)[:, : len(factors)]
    return draw_codes(z, truth, factors, (None,) * d)


def test_two_codes_have_a_panel_for_each_factor():
    figures = draw(2)
    assert list(figures) == ["codes"]
    assert [axis.get_title() for axis in figures["codes"].axes if axis.get_title()] == [
        "colored by size",
        "colored by kind",
    ]


def test_of_three_to_five_codes_all_pairs_are_drawn_for_each_factor():
    figures = draw(5)
    assert list(figures) == ["codes-by-size", "codes-by-kind"]
    for figure in figures.values():
        assert sum(len(axis.collections) > 0 for axis in figure.axes if axis.get_label() != "<colorbar>") == 10
        assert {*labels(figure, "x")} - {""} == {f"code {j}" for j in (1, 2, 3, 4)}
        assert {*labels(figure, "y")} - {""} == {f"code {j}" for j in (2, 3, 4, 5)}


def test_dollar_signs_are_no_formulas_and_names_of_files_are_unique(tmp_path):
    factors = [Factor("cost $ / $^", 2, "nominal", values=("$_", "$x$")), Factor("cost / ^")]
    truth = np.stack([np.arange(80) % 2, np.arange(80.0)], 1)
    figures = draw_codes(RNG.normal(size=(80, 3)), truth, factors, (None,) * 3)
    assert list(figures) == ["codes-by-cost-1", "codes-by-cost-2"]
    save_figure(figures["codes-by-cost-1"], tmp_path / "a.png")  # a formula would be an error
    z = RNG.normal(size=(80, 1))
    for figure in draw_codes(z, truth, factors, (None,)).values():
        save_figure(figure, tmp_path / "a.png")
    ordered = order_observations(z, np.repeat(truth, 2, 1), (None,), feature_names=("$^$", "b", "c", "$"))
    save_figure(draw_ordered(ordered, (None,))["along-codes"], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1_000


def test_of_very_many_codes_those_that_depend_most_on_factors_are_drawn():
    z = RNG.normal(size=(200, 40))
    figures = draw_codes(z, z[:, [37]], [Factor("size")], (None,) * 40)
    shown = [y for name in list(figures)[1:] for y in labels(figures[name], "y") if y]
    assert len(shown) == 24 and "code 38" in shown
    assert "24 of 40 codes" in list(figures.values())[-1].get_supxlabel()


def test_of_more_codes_each_is_drawn_over_each_factor():
    figures = draw(10)
    assert list(figures) == ["codes", "codes-over-factors-1", "codes-over-factors-2"]
    shown = [y for name in list(figures)[1:] for y in labels(figures[name], "y") if y]
    assert shown == [f"code {j + 1}" for j in range(10)]
    assert {x for x in labels(figures["codes-over-factors-2"], "x") if x} == {"size", "kind"}
    first = figures["codes"].axes[0]
    assert "code 1" in (first.get_xlabel(), first.get_ylabel()), "the code that is the factor"


def test_constant_codes_are_left_out_and_a_single_code_is_drawn_over_factors():
    assert labels(draw(3, constant=[1])["codes"], "y")[0] == "code 3"
    assert list(draw(2, constant=[1])) == ["codes-over-factors"]
    assert draw(2, constant=[0, 1]) == {}


@pytest.mark.parametrize(("d", "panels"), [(1, 1), (2, 1), (4, 6), (7, 4)])
def test_codes_without_factors_are_drawn(d, panels):
    figure = draw(d, factors=())["codes"]
    assert len(figure.axes) == panels
    if d > 1:
        names = {*labels(figure, "x"), *labels(figure, "y")} - {""}
        assert names == {f"code {j + 1}" for j in range(d)}


def test_a_circular_code_has_an_axis_of_one_turn():
    z = np.stack([RNG.uniform(-9, 9, 100), RNG.normal(size=100)], 1)
    figure = draw_codes(z, z[:, 1:], [Factor("size")], (2 * math.pi, None))["codes"]
    axis = figure.axes[0]
    assert axis.get_xlabel() == "code 1 (angle)"
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "π", "2π"]
    x = np.asarray(axis.collections[0].get_offsets())[:, 0]
    assert x.min() >= 0 and x.max() <= 2 * math.pi


def test_association_is_correlation_and_the_same_wherever_a_turn_begins():
    z = RNG.normal(size=(500, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    angle = RNG.uniform(0, 360, 500)
    factors = (Factor("size"), Factor("angle", kind="circular", period=360), Factor("kind", 2, "nominal"))
    truth = np.stack([z[:, 0], angle, z[:, 1] > 0], 1)
    codes = np.stack([z[:, 1], np.deg2rad(angle + 77) % (2 * math.pi), np.cos(np.deg2rad(angle))], 1)
    r = associate(codes, truth, factors, (None, 2 * math.pi, None))
    assert r[0, 0] == pytest.approx(abs(np.corrcoef(z.T)[0, 1]))
    assert r[1, 1] == pytest.approx(1) and r[1, 2] == pytest.approx(1) and r[1, 0] < 0.2
    assert r[2, 0] == pytest.approx(abs(np.corrcoef(truth[:, 2], z[:, 1])[0, 1]))
    assert associate(np.ones((500, 1)), truth, factors, (None,)).tolist() == [[0], [0], [0]]
    names, values = correlate(codes, truth, factors, (None, 2 * math.pi, None))
    assert names == ["size", "angle (circular)"] and values.tolist() == r[:2].tolist()
    assert correlate(codes, truth[:, 2:], factors[2:], (None, 2 * math.pi, None)) is None
