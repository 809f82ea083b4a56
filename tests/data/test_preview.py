"""Data and datasets in notebooks: what is shown, that names are escaped, and that little is rendered."""

import re
import warnings
from itertools import count

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers import generator
from unweave import Dataset, Factor, Grid, InputError, LazyTable, Mixing, Table, as_data, as_pairs
from unweave.data import preview
from unweave.data.items import ItemRows
from unweave.data.own_data import OwnData
from unweave.data.scaling import scale_data
from unweave.data.splits import Correlated
from unweave.datasets import Flowers102

HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
GRID = Grid(torch.rand(6, 1, 8, 8), [Factor("shape", 2, "nominal"), Factor("size", 3, "ordinal")])
MAX_RENDERED = 24 + 12 * 6  # a contact sheet, and some images for each factor


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is shown must not depend on how busy the machine is."""
    monkeypatch.setattr(preview, "MAX_SECONDS", 1e9)


class Counted(Mixing):
    """Images, of which it is counted how many are rendered."""

    def __init__(self, *, factors: int = 2, size: int = 8, points: int | None = None) -> None:
        names = [Factor(f"z{i}") for i in range(factors)]
        self.rendered = 0
        super().__init__(
            names,
            (1, size, size),
            lambda n, rng: torch.rand(n, factors, generator=rng),
            lambda z: z[..., :1, None, None].expand(*z.shape[:-1], 1, size, size),
            points=points,
        )

    def render(self, points):
        self.rendered += len(points)
        return super().render(points)


class Recipe(Dataset):
    """A recipe <b>of</b> a test."""

    paper = HOSTILE
    points: int = 5
    label: str = ""

    def load(self):
        if not self.points:
            raise InputError("no points")
        return as_data(np.arange(4.0 * self.points).reshape(self.points, 4))


class FastRecipe(Recipe):
    """A recipe that loads fast."""

    loads_fast = True


# What is shown --------------------------------------------------------------------------------------------------------


def kinds_of_data():
    rows = torch.rand(20, 4)
    labels = torch.arange(20.0)[:, None] % 2
    table = Table(rows, labels, [Factor("label", 2, "nominal")])
    lazy = LazyTable(ItemRows([torch.rand(3, 8, 8) for _ in range(10)]), torch.zeros(10, 0), [])
    frame = pd.DataFrame(rows.numpy(), columns=list("abcd"))
    return {
        "grid": GRID,
        "table": table,
        "pairs": as_pairs(rows.numpy().reshape(5, 4, 4), 1 - rows.numpy().reshape(5, 4, 4)),
        "mixing": Counted(points=30),
        "generator": Counted(),
        "lazy": lazy,
        "subset": GRID.freeze(40, generator()),
        "correlated": Correlated(GRID, ("shape", "size"), torch.ones(2, 3)),
        "scaled": scale_data(as_data(frame)),
        "long": as_data(torch.rand(9, 3, 2, 8, 8).numpy()),
    }


@pytest.mark.parametrize("kind", kinds_of_data())
def test_every_kind_of_data_is_shown(kind):
    data = kinds_of_data()[kind]
    page = data._repr_html_()
    assert data.count_text() in page
    assert str(data.shape) in page
    assert "No preview" not in page
    assert all(factor.name in page for factor in data.factors)
    shows_image, shows_rows = "data:image/png" in page, "<th" in page
    assert (shows_image, shows_rows or not data.factors) == (len(data.shape) in (2, 3), True)


def test_factors_have_kinds_and_values():
    factors = [
        Factor("color", 3, "nominal", values=("red", "green", "blue")), Factor("dose", 2, "ordinal", values=(0.5, 2.0)),
        Factor("angle", 4, "circular", period=360), Factor("age"), Factor("wind", noise=True),
    ]  # fmt: skip
    c = torch.tensor([[0, 0, 0, -1.25, 0], [1, 1, 3, 40.0, 1], [2, 1, 2, 7.0, 0.5]])
    page = Table(torch.rand(3, 2), c, factors)._repr_html_()
    rows = [re.sub("<[^>]+>", "|", row).strip("|\n") for row in page.split("<tr>")]
    assert "color||nominal||3 values: red, green, blue" in rows
    assert "dose||ordinal||2 values, 0.5 to 2" in rows
    assert "angle||circular||4 values, 0 to 3, period 360" in rows
    assert "age||continuous||about -1.25 to 40" in rows
    assert "wind||continuous, noise||about 0 to 1" in [row.split("|\n")[0] for row in rows]


def test_a_table_shows_its_first_rows_with_names_and_levels(tmp_path):
    frame = pd.DataFrame({"a": np.arange(30) ** 3 + 0.5, "b": np.arange(30) ** 2})
    frame["tissue"] = ["liver", "kidney", "lung"] * 10
    frame.to_csv(tmp_path / "cells.csv", index=False)
    data = OwnData(path=tmp_path / "cells.csv", factors=("tissue",), columns=("a", "b")).load()
    page = data._repr_html_()
    assert ">a</th>" in page
    assert ">tissue (factor)</th>" in page
    assert all(f">{row**3 + 0.5}<" in page for row in range(5))
    assert ">125.5<" not in page
    assert ">liver</td>" in page


def test_of_many_columns_the_first_are_shown():
    page = as_data(np.arange(400.0).reshape(4, 100))._repr_html_()
    assert "92 more" in page
    assert ">x7</th>" in page
    assert ">x8</th>" not in page
    assert ">7</td>" in page
    assert ">8</td>" not in page


def test_rows_have_their_identifiers():
    data = as_data(np.arange(12.0).reshape(6, 2))
    data.row_names, data.row_key = tuple("uvwxyz"), "patient"
    page = data._repr_html_()
    assert ">patient</th>" in page
    assert ">v</td>" in page
    assert ">z</td>" not in page


def test_notes_are_shown():
    data = as_data(np.arange(12.0).reshape(6, 2))
    assert "<details>" not in data._repr_html_()
    data.notes = ("two rows were dropped",)
    assert "two rows were dropped" in data._repr_html_()


def test_names_are_escaped():
    factors = [Factor(HOSTILE, 2, "nominal", values=(f"a{HOSTILE}", "b"))]
    table = Table(torch.rand(4, 1), torch.arange(4.0)[:, None] % 2, factors)
    table.feature_names, table.row_names = (f"x{HOSTILE}",), (f"r{HOSTILE}", "", "", "")
    table.row_key, table.notes = f"key{HOSTILE}", (f"n{HOSTILE}",)
    page = table._repr_html_()
    assert "<script" not in page
    assert {"", "a", "x", "r", "key", "n"} == set(re.findall(r"(?<=>)(\w*)" + re.escape(ESCAPED), page))
    images = Counted()
    images.factors = (Factor(HOSTILE), Factor("b"))
    assert "<script" not in images._repr_html_()


# Pixels ---------------------------------------------------------------------------------------------------------------


def test_tiles_keep_small_images_and_scale_other_ranges():
    x = torch.tensor([[[0.0, 1.0], [0.5, 0.25]]])
    tiles = preview.make_tiles(x, 4)
    assert tiles.shape == (1, 4, 4, 4)
    assert tiles[0, ::2, ::2, 0].tolist() == [[0, 255], [128, 64]]
    assert (tiles[0, :2, :2, :3] == 0).all(), "every pixel is enlarged"
    assert (tiles[..., 3] == 255).all(), "opaque"
    assert np.array_equal(preview.make_tiles(20 * x - 10, 4), preview.make_tiles((20 * x - 10 + 10) / 20, 4))


def test_tiles_reduce_large_images_and_keep_their_proportions():
    x = torch.zeros(2, 3, 100, 50)
    x[:, 1, :, 25:] = 1
    tiles = preview.make_tiles(x, 20)
    assert tiles.shape == (2, 20, 10, 4)
    assert tiles[0, 0, 0].tolist() == [0, 0, 0, 255]
    assert tiles[0, 0, -1].tolist() == [0, 255, 0, 255]


def test_of_channels_without_colors_the_first_is_shown():
    x = torch.zeros(1, 5, 2, 2)
    x[:, 0] = 1
    assert (preview.make_tiles(x, 2) == 255).all()
    data = Table(x.repeat(3, 1, 1, 1), torch.zeros(3, 0), [])
    assert "first of 5 channels" in data._repr_html_()
    assert "channels" not in GRID._repr_html_()


def test_a_sheet_has_transparent_gaps():
    tiles = np.full((3, 4, 4, 4), 255, np.uint8)
    sheet = preview.join_tiles(tiles, 2)
    step = 4 + preview.GAP
    assert sheet.shape == (4 + step, 4 + step, 4)
    assert (sheet[:4, :4] == 255).all()
    assert (sheet[step:, :4] == 255).all()
    assert (sheet[step:, step:] == 0).all(), "there is no fourth tile"
    assert (sheet[:, 4:step] == 0).all()


def test_the_partner_of_a_pair_is_below_it(monkeypatch):
    sheets = []
    monkeypatch.setattr(preview, "join_tiles", lambda tiles, columns: sheets.append((tiles, columns)) or tiles[0])
    x = np.linspace(0, 0.4, 5)[:, None, None] * np.ones((5, 2, 2))
    page = as_pairs(x, x + 0.5)._repr_html_()
    ((tiles, columns),) = sheets
    brightness = tiles[:, 0, 0, 0].astype(int)
    assert columns == 5
    assert np.abs(brightness[5:] - brightness[:5] - 127).max() <= 1
    assert "pairs, one above the other" in page


def test_only_one_factor_changes_in_its_row(monkeypatch):
    points = []
    monkeypatch.setattr(preview, "_render_until", lambda data, p, deadline: points.append(p) or data.render(p))
    page = Counted(factors=2, points=100)._repr_html_()
    _, first, second = points
    assert len(first) == preview.VARIATIONS
    assert (first[:, 1] == first[0, 1]).all()
    assert (first[:, 0].diff() > 0.1).all()
    assert (second[:, 0] == second[0, 0]).all()
    assert (second[:, 1].diff() > 0.1).all()
    assert "only this factor changes" in page
    assert page.count("<img") == 3


def test_a_factor_with_few_values_has_as_many_images(monkeypatch):
    sizes = []
    monkeypatch.setattr(preview, "_render_until", lambda data, p, deadline: sizes.append(len(p)) or data.render(p))
    GRID._repr_html_()
    assert sizes == [6, 2, 3]


def test_rows_of_a_table_are_not_searched(monkeypatch):
    """An index over all rows would take long for a large table."""
    monkeypatch.setattr(Table, "locate", lambda *args: pytest.fail("searched"), raising=False)
    table = Table(torch.rand(50, 1, 8, 8), torch.arange(50.0)[:, None] % 2, [Factor("label", 2, "nominal")])
    for data in (table, Correlated(table, ("label", "label"), torch.eye(2))):
        assert "only this factor changes" not in data._repr_html_()


# Cost -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [None, 10, 100_000])
@pytest.mark.parametrize("factors", [1, 3, 40])
def test_few_images_are_rendered(factors, points):
    data = Counted(factors=factors, points=points)
    page = data._repr_html_()
    assert 10 <= data.rendered <= MAX_RENDERED
    assert len(page) < 200_000
    assert ("28 more factors" in page) == (factors == 40)


def test_of_large_images_fewer_are_rendered():
    data = Counted(size=2048)
    data._repr_html_()
    assert data.rendered == preview.MAX_ELEMENTS // 2048**2 == 4


def test_a_slow_renderer_is_stopped(monkeypatch):
    seconds = count()
    monkeypatch.setattr(preview, "MAX_SECONDS", 0.3)
    monkeypatch.setattr(preview.time, "perf_counter", lambda: 0.1 * next(seconds))
    data = Counted()
    page = data._repr_html_()
    assert data.rendered == 4
    assert "only this factor changes" not in page


def test_only_shown_rows_are_read():
    class Items:
        read: list[int] = []  # noqa: RUF012

        def __len__(self):
            return 5_000_000

        def __getitem__(self, i):
            if i >= 5_000_000:
                raise IndexError(i)
            self.read.append(i)
            return np.full((8, 8), 0.5)

    data = as_data(Items())
    Items.read.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = data._repr_html_()
    assert "5,000,000 observations" in page
    assert 0 < len(Items.read) <= 24


# Errors ---------------------------------------------------------------------------------------------------------------


def test_a_representation_raises_no_error():
    def fail(z):
        raise OSError(f"cannot read {HOSTILE}\nsecond line")

    data = Mixing([Factor("z")], (2, 2), lambda n, rng: torch.rand(n, 1, generator=rng), fail)
    page = data._repr_html_()
    assert f"No preview: OSError: cannot read {ESCAPED}</p>" in page
    assert "observations drawn on demand" in page


def test_missing_values_are_shown():
    x = np.full((4, 8, 8), 0.5)
    x[0, 0, 0] = np.nan
    tiles = preview.make_tiles(torch.from_numpy(x), 8)
    assert tiles[0, 0, 0].tolist() == [0, 0, 0, 255]
    assert (tiles[1:, ..., :3] == 128).all()


# Datasets -------------------------------------------------------------------------------------------------------------


def test_a_recipe_shows_its_settings_and_sources():
    page = Recipe(points=7, label=HOSTILE)._repr_html_()
    assert "A recipe &lt;b&gt;of&lt;/b&gt; a test." in page
    assert '<td class="uw-strong">points</td><td class="uw-strong">7</td>' in page
    assert "<td>label</td>" in Recipe()._repr_html_()
    assert f"Paper: {ESCAPED}" in page
    assert "Needs no published files" in page
    assert "<script" not in page


def test_a_recipe_is_loaded_only_if_that_is_fast(monkeypatch):
    assert "28 observations" not in Recipe(points=28)._repr_html_()
    assert "28 observations" in FastRecipe(points=28)._repr_html_()
    monkeypatch.setattr(Recipe, "load", lambda self: pytest.fail("loaded"))
    assert "dataset.load()" in Recipe()._repr_html_()


def test_a_recipe_that_cannot_be_loaded_says_why():
    page = FastRecipe(points=0)._repr_html_()
    assert "No preview: InputError" in page


def test_missing_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path))
    monkeypatch.delenv("UNWEAVE_DATA", raising=False)
    dataset = Flowers102()
    assert dataset._repr_html_().count("(not in the data folders)") == len(dataset.required_files()) > 0
    for file in dataset.required_files():
        (tmp_path / file.file).parent.mkdir(exist_ok=True)
        (tmp_path / file.file).touch()
    assert dataset._repr_html_().count("(available)") == len(dataset.required_files())
