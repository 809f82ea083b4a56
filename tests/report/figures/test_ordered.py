"""Figures of observations along each code."""

import math

import numpy as np

from unweave.experiments.ordered import order_observations
from unweave.report.figures.ordered import describe_missing, draw_ordered

RNG = np.random.default_rng(0)


def test_every_code_has_a_row_with_its_values_and_file_names_below():
    z, x = RNG.normal(size=(100, 3)), RNG.uniform(size=(100, 3, 6, 8))
    ordered = order_observations(z, x, (None,) * 3, row_names=[f"folder/photo{i}.jpg" for i in range(100)])
    figure = draw_ordered(ordered, (None,) * 3)["along-codes"]
    assert [axis.get_yticklabels()[0].get_text() for axis in figure.axes] == ["code 1", "code 2", "code 3"]
    for axis, values, names, index in zip(figure.axes, ordered.values, ordered.names, ordered.places, strict=True):
        texts = [label.get_text().split("\n") for label in axis.get_xticklabels()]
        assert [text for text, _ in texts] == [f"{value:.2f}".replace("-0.00", "0.00") for value in values]
        assert all(
            name.removesuffix(".jpg").endswith(text.strip("…")) for (_, text), name in zip(texts, names, strict=True)
        )
        for image, k in zip(axis.images, index, strict=True):
            np.testing.assert_array_equal(image.get_array(), ordered.images[k])


def test_many_codes_are_drawn_on_several_pages_and_constant_ones_are_named():
    z = RNG.normal(size=(60, 15))
    z[:, 4] = 0.1
    ordered = order_observations(z, RNG.uniform(size=(60, 1, 4, 4)), (None,) * 15)
    note = describe_missing(z, ordered)
    pages = draw_ordered(ordered, (None,) * 15, note)
    assert list(pages) == ["along-codes-1", "along-codes-2"]
    labels = [axis.get_yticklabels()[0].get_text() for figure in pages.values() for axis in figure.axes]
    assert labels == [f"code {j + 1}" for j in range(15) if j != 4]
    assert pages["along-codes-2"].get_supxlabel() == note == "Code 5: constant."
    some = order_observations(z, RNG.uniform(size=(60, 1, 4, 4)), (None,) * 15, max_codes=3)
    assert describe_missing(z, some) == "Code 5: constant. Shown: the 3 of 14 codes that vary most."


def test_an_angle_is_in_multiples_of_pi_and_ends_where_it_begins():
    z = RNG.uniform(0, 2 * math.pi, (500, 1))
    ordered = order_observations(z, RNG.uniform(size=(500, 4, 4)), (2 * math.pi,))
    (axis,) = draw_ordered(ordered, (2 * math.pi,))["along-codes"].axes
    texts = [label.get_text() for label in axis.get_xticklabels()]
    assert all(text.endswith("π") for text in texts[:-1])
    assert texts[-1] == f"{texts[0]} (again)"
    assert axis.get_yticklabels()[0].get_text() == "code 1\n(angle)"


def test_a_table_shows_names_of_columns_and_their_values_at_both_ends():
    z = np.linspace(0, 1, 900)[:, None]
    x = np.concatenate([z * 100, RNG.normal(size=(900, 1))], 1)
    ordered = order_observations(z, x, (None,), feature_names=("mass [kg]", "noise"))
    axis, bar = draw_ordered(ordered, (None,))["along-codes"].axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["mass [kg]", "noise"]
    right = axis.child_axes[0].get_yticklabels()[0].get_text()
    ends = [float(text) for text in right.split("→")]
    np.testing.assert_allclose(ends, [5, 95], atol=2)
    assert "standard deviations" in bar.get_xlabel()
