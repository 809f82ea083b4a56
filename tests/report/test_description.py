"""Codes in words: methods whose codes are known move what they should, and nothing else."""

import numpy as np
import pandas as pd
import pytest
import torch

from unweave import Method, attributes, describe
from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.datasets import SquaresXY
from unweave.methods import PCA, HessianICA
from unweave.report import description, effects
from unweave.report.effects import Effects, Quantity, measure_quantities, quantity_ends
from unweave.report.naming import attribute_strengths, changed_region, classes_of_local_codes, moved_attributes
from unweave.report.sample import sample_data
from unweave.utils.errors import InputError

SIDE = 40


def draw_bars(degrees, lengths):
    """Draw strokes (n, 1, 40, 40) of a width of three pixels that lean to the right, with soft edges of one pixel."""
    rows, columns = torch.meshgrid(*2 * [torch.arange(SIDE) - (SIDE - 1) / 2], indexing="ij")
    angle, length = torch.deg2rad(degrees)[:, None, None], lengths[:, None, None]
    along = columns * torch.sin(angle) - rows * torch.cos(angle)
    across = columns * torch.cos(angle) + rows * torch.sin(angle)
    return torch.minimum(length / 2 - along.abs(), 1.5 - across.abs()).add(0.5).clamp(0, 1)[:, None]


class Bars(Method):
    """Knows the codes of bars: a tenth of their slant, their height in pixels, and a corner that it does not decode."""

    sign: int = 1

    def learn(self, data):
        self.latent_dim_ = 3

    def encode(self, x):
        height = SIDE * attributes.height(x)
        return torch.stack([self.sign * attributes.slant(x) / 10, height, 1e4 * x[:, 0, 0, 0]], 1)

    def decode(self, z):
        degrees = 10 * self.sign * z[:, 0]
        return draw_bars(degrees, z[:, 1] / torch.cos(torch.deg2rad(degrees)))


class Heights(Bars):
    """Has one code, the height, and no decoder."""

    def learn(self, data):
        self.latent_dim_ = 1

    def encode(self, x):
        return super().encode(x)[:, 1:2]

    decode = Method.decode


@pytest.fixture(scope="module")
def bars():
    rng = np.random.default_rng(0)
    x = draw_bars(torch.tensor(rng.uniform(-30, 30, 300)), torch.tensor(rng.uniform(14, 28, 300))).numpy()
    x[:, 0, 0, 0] += rng.uniform(0, 1e-3, len(x))
    return x


def test_positions_of_a_square_are_named_without_a_decoder():
    data = SquaresXY(points=200, size=16, side=6)
    result = describe(HessianICA(latent_dim=2).fit(data), data)
    assert sorted(entry.words for entry in result.codes) == [
        "horizontal position (|r| = 1.00)", "vertical position (|r| = 1.00)",
    ]  # fmt: skip
    assert result.codes[0].strength is None and result.class_factor == "" and result.n_others == 0


def test_a_decoder_that_draws_strokes_is_named_by_slant_and_height_and_a_dead_code_by_nothing(bars):
    result = describe(Bars().fit(bars), bars)
    slant, height, dead = result.codes
    assert [entry.short_name for entry in result.codes] == ["slant", "height", ""]
    assert slant.attributes[0].ends == pytest.approx((-27, 27), abs=2) and slant.attributes[0].unit == "°"
    low, high = np.quantile(attributes.height(bars), [0.05, 0.95])
    assert height.attributes[0].ends == pytest.approx((low, high), abs=0.02)
    assert min(abs(slant.attributes[0].correlation), height.attributes[0].correlation) > 0.99
    assert slant.words.startswith("slant (|r| = 1.00, -2") and "°)" in slant.words
    assert dead.words == "nothing" and dead.strength < 1e-3 and max(slant.strength, height.strength) == 1
    assert result.lines()[2] == "code 3: nothing"


def test_codes_of_a_second_method_are_matched_with_their_signs(bars):
    method, other = Bars().fit(bars), Bars(sign=-1).fit(bars)
    result = describe(method, bars, other)
    assert [entry.counterpart.code for entry in result.codes] == [0, 1, 2]
    assert result.codes[0].counterpart.correlation == pytest.approx(-1)
    assert result.lines()[0].endswith("; code 1 of the other method (|r| = 1.00)")
    few = describe(method, bars, Heights().fit(bars))
    assert [entry.counterpart.code for entry in few.codes] == [-1, 0, -1]
    assert few.lines()[0].endswith("; no match in the other method")
    table = few.table()
    assert table["counterpart"].fillna(0).tolist() == [0, 1, 0] and table["attribute"].tolist() == [
        "slant",
        "height",
        "",
    ]


def test_columns_are_named_and_a_column_that_follows_another_is_not():
    rng = np.random.default_rng(0)
    income, noise = rng.normal(size=(2, 500))
    frame = pd.DataFrame({"age": rng.normal(40, 9, 500), "income": income, "rent": income + 0.2 * noise})
    result = describe(PCA(latent_dim=2).fit(frame), frame)
    assert result.codes[0].short_name in ("income", "rent")
    assert result.codes[1].short_name == "age"
    low, high = sorted(result.codes[1].attributes[0].ends)
    assert (low, high) == pytest.approx(np.quantile(frame["age"], [0.05, 0.95]), abs=1)
    assert result.table().columns.tolist() == [
        "code", "words", "strength", "region", "attribute", "r", "is_little", "from", "to"
    ]  # fmt: skip


class Identity(Method):
    """Takes columns as codes; the second one, of which nothing is left in classes 0 and 1 if `gated`, is decoded so."""

    gated: bool = False

    def learn(self, data):
        self.latent_dim_ = 3

    def encode(self, x):
        return x

    def decode(self, z):
        return torch.stack([z[:, 0], z[:, 1] * (z[:, 2] > 1.5) if self.gated else z[:, 1], z[:, 2]], 1)


@pytest.mark.parametrize("gated", [False, True])
def test_a_code_that_acts_on_one_class_is_local(gated):
    """It either varies in this class only, or is decoded in this class only."""
    rng = np.random.default_rng(0)
    labels = torch.tensor(rng.integers(0, 3, 300))
    local = rng.normal(size=300) * (1 if gated else (labels == 2).numpy())
    x = np.stack([rng.normal(size=300), local, labels.numpy()], 1).astype(np.float32)
    data = Table(torch.tensor(x), labels[:, None].float(), (Factor("kind", 3, "nominal", values=("a", "b", "c")),))
    result = describe(Identity(gated=gated).fit(data), data)
    assert [entry.classes for entry in result.codes] == [(), ("c",), ()]
    assert [result.scope(entry) for entry in result.codes] == ["global", "local (kind c)", "global"]
    assert result.table()["classes"].tolist() == ["all", "c", "all"]


def effects_of(correlations, within, **arrays):
    """One code with these correlations, of a method without a decoder."""
    correlations = np.array([correlations], float)
    quantities = [Quantity(name, name, name, "", None, 1.0) for name in "abcdefg"[: correlations.shape[1]]]
    return Effects(quantities, correlations, np.array(within, float), **arrays)


@pytest.mark.parametrize(
    ("correlations", "r", "names"),
    [
        ([0.9, 0.8], 0.9, [("a", False)]),  # b follows a
        ([0.9, -0.8], -0.9, [("a", False)]),
        ([0.9, 0.8], 0.0, [("a", False), ("b", False)]),  # b moves on its own
        ([0.9, 0.8], 0.5, [("a", False), ("b", True)]),  # of which 0.35 are its own
        ([0.9, 0.0], 0.9, [("a", False)]),  # b stays although a moves: that is no change of b
        ([0.4, 0.3], 0.0, [("a", True), ("b", True)]),
        ([0.2, 0.2], 0.0, []),
    ],
)
def test_attributes_count_beyond_their_regression_on_stronger_ones(correlations, r, names):
    moved = moved_attributes(effects_of(correlations, [[1, r], [r, 1]]), 0)
    assert [(attribute.words, attribute.is_little) for attribute in moved] == names


@pytest.mark.parametrize(
    ("r", "change", "strength"),
    [
        (1.0, 3.29, 1.0),  # the attribute itself
        (-1.0, -3.29, -1.0),
        (0.5, 1.645, 0.5),
        (0.02, 3.29, 0.1414),  # decoded, but not observed
        (1.0, 0.0, 0.0),  # observed, but not decoded
        (-0.5, 3.29, 0.0),  # against each other
        (1.0, 9.0, 1.0),
    ],
)
def test_a_strength_is_the_geometric_mean_of_correlation_and_decoded_change(r, change, strength):
    moving = effects_of([r], [[1]], changes=np.array([[change]]), ends=np.zeros((1, 1, 2)), strength=np.ones(1))
    assert attribute_strengths(moving, 0) == pytest.approx([strength], abs=1e-3)


def test_of_equally_strong_attributes_the_first_names_the_code():
    """A square that moves along a diagonal: rounding must not decide between horizontal and vertical."""
    for correlations in ([0.97, 0.9701], [0.9701, 0.97]):
        moved = moved_attributes(effects_of(correlations, np.ones((2, 2))), 0)
        assert [attribute.words for attribute in moved] == ["a"]


def test_at_most_three_attributes_name_a_code():
    assert len(moved_attributes(effects_of([0.9, 0.8, 0.7, 0.6], np.eye(4)), 0)) == 3


def test_a_half_is_named_where_it_changes_more_than_the_whole():
    halves = [Quantity(name, name, "height", "%", None, 1.0) for name in ("height", "upper height")]
    both = effects_of([0.8, 0.84], np.ones((2, 2)))._replace(quantities=halves)
    assert [attribute.words for attribute in moved_attributes(both, 0)] == ["height"]
    upper = effects_of([0.4, 0.8], [[1, 0.5], [0.5, 1]])._replace(quantities=halves)
    assert [attribute.words for attribute in moved_attributes(upper, 0)] == ["upper height"]


def test_a_code_that_acts_on_more_than_half_of_the_classes_is_global():
    classes = Factor("digit", 5, "nominal")
    rows = [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0.3, 0.1]]
    by_class = np.array(rows, float) * [1, 1, 1, 1, 9]
    by_class[:, 4] = np.nan  # no observations
    assert classes_of_local_codes(by_class, classes) == [(), ("0", "1"), (), ("3",)]


def test_a_region_has_much_of_the_change_and_more_than_for_other_codes():
    regions = np.full((2, 3, 3), 1 / 9)
    regions[0] = 0
    regions[0, 0, 2] = 1
    both = effects_of([1.0], np.eye(1), regions=regions, strength=np.ones(2))
    assert changed_region(both, 0) == "upper right" and changed_region(both, 1) == ""
    same = effects_of([1.0], np.eye(1), regions=regions[[0, 0]], strength=np.ones(2))
    assert changed_region(same, 0) == "", "all codes act there"


def test_angles_are_followed_around_the_circle():
    hue = Quantity("hue", "hue", "hue", "°", 360.0, 10.0)
    values = np.array([350, 355, 0, 5, 10.0])[:, None, None]
    assert quantity_ends(np.repeat(values, 3, 1), [hue])[0] == pytest.approx((350, 370))
    assert quantity_ends(values[::-1].repeat(3, 1), [hue])[0] == pytest.approx((10, -10))


def test_a_quantity_that_returns_to_its_start_changes_along_an_angle_only():
    width = Quantity("width", "width", "width", "%", None, 0.1)
    values = np.array([0.2, 0.5, 0.8, 0.5, 0.2])[:, None, None]
    assert quantity_ends(values, [width])[0] == pytest.approx((0.2, 0.2))
    assert quantity_ends(values, [width], is_angle=True)[0] == pytest.approx((0.2, 0.8))


def test_attributes_that_do_not_vary_are_not_measured(bars):
    method = Bars().fit(bars)
    names = {quantity.name for quantity in measure_quantities(bars, method.transform(bars))[0]}
    assert {"slant", "height", "width", "upper_height"} <= names
    assert not names & {"hue", "saturation", "holes", "horizontal_position", "vertical_position"}
    moving = SquaresXY(points=100, size=16, side=6).load()
    x = sample_data(PCA(latent_dim=2).fit(moving), moving).x
    names = {quantity.name for quantity in measure_quantities(x, np.zeros((len(x), 1)))[0]}
    assert "vertical_position" in names and "upper_width" not in names, "halves say where a shape is"
    colored = np.zeros((10, 3, 8, 8))
    colored[:3, 0], colored[3:4, 1] = 1, 1  # four images of ten have a hue
    assert "hue" not in {quantity.name for quantity in measure_quantities(colored, np.zeros((10, 1)))[0]}


def test_of_a_wide_table_the_columns_that_follow_the_codes_are_measured(monkeypatch):
    monkeypatch.setattr(effects, "MAX_COLUMNS", 2)
    x = np.random.default_rng(0).normal(size=(100, 6))
    quantities, values = measure_quantities(x, x[:, [4, 1]])
    assert [quantity.words for quantity in quantities] == ["column 2", "column 5"]
    np.testing.assert_array_equal(values, x[:, [1, 4]])


def test_codes_that_vary_less_are_counted(bars, monkeypatch):
    monkeypatch.setattr(description, "MAX_CODES", 2)
    result = describe(Bars().fit(bars), bars)
    assert len(result.codes) == 2 and result.lines()[-1] == "1 code that varies less: not described"
    assert "slant" in result._repr_html_() or "height" in result._repr_html_()


def test_what_cannot_be_described_is_an_error(bars):
    method = Bars().fit(bars)
    with pytest.raises(InputError, match="all codes of bars are constant"):
        describe(method, np.repeat(bars[:1], 5, 0))
    with pytest.raises(InputError, match="compare methods that were trained on the same data"):
        describe(method, bars, PCA(latent_dim=2).fit(bars[:, :, :20]))
    with pytest.raises(InputError, match="no method: load a run"):
        describe("runs/one", bars)
    with pytest.raises(InputError, match="trained on shape"):
        describe(method, bars[:, :, :20])
