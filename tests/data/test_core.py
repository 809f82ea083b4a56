"""Grids, tables and mixings."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers import generator
from unweave import Dataset, Factor, Grid, InputError, Mixing, Table, as_data, as_pairs
from unweave.datasets import GaussianMixture, SquaresXY

FACTORS = (Factor("shape", 2, "nominal"), Factor("size", 3, "ordinal"))


def test_a_grid_renders_the_row_of_its_factors():
    grid = Grid(torch.arange(6, dtype=torch.uint8)[:, None], FACTORS)
    points = torch.tensor([[0, 0], [0, 2], [1, 1]])
    assert torch.equal(grid.render(points)[:, 0] * 255, torch.tensor([0.0, 2.0, 4.0]))
    assert torch.equal(grid.render(grid.all_points(6))[:, 0] * 255, torch.arange(6.0))
    assert grid.all_points(5) is None


def test_a_grid_samples_every_combination_about_equally():
    counts = Grid(torch.zeros(6, 1), FACTORS).sample(6000, generator()) @ torch.tensor([3, 1])
    assert counts.bincount(minlength=6).min() > 900


def test_a_grid_that_is_not_full_is_refused():
    with pytest.raises(InputError, match=r"5 rows cannot fill a grid of 2 x 3 = 6"):
        Grid(torch.zeros(5, 1), FACTORS)
    with pytest.raises(InputError, match="'z' has no size"):
        Grid(torch.zeros(5, 1), [Factor("z")])


def test_a_table_finds_rows_by_their_factors():
    c = torch.tensor([[0, 0], [0, 1], [1, 0], [0, 1]], dtype=torch.float64)
    table = Table(torch.arange(4.0)[:, None], c, (Factor("a", 2, "nominal"), Factor("b", 2, "nominal")))
    expected = torch.tensor([[0, 1]] * 200 + [[1, 0]])
    rows = table.locate(expected, generator())[:, 0]
    assert set(rows[:200].tolist()) == {1, 3}
    assert rows[200] == 2
    assert torch.equal(table.labels(rows[:, None]), expected.double())
    with pytest.raises(InputError, match=r"a=1, b=1 \(1 of 2"):
        table.locate(torch.tensor([[0, 0], [1, 1]]), generator())


def test_a_table_is_collected_whole_and_in_order():
    data = as_data(np.arange(40.0).reshape(20, 2))
    assert torch.equal(data.collect(5, generator()).x, torch.arange(40.0, dtype=torch.float64).reshape(20, 2))


def test_a_mixing_with_points_is_a_finite_sample_that_renders_anything():
    data = Mixing([Factor("z")], (1,), lambda n, g: torch.rand(n, 1, generator=g), lambda c: 2 * c, points=10, seed=1)
    assert torch.equal(data.all_points(3), data.sources)
    assert set(data.sample(100, generator())[:, 0].tolist()) <= set(data.sources[:, 0].tolist())
    assert data.render(torch.tensor([[5.0]])) == 10
    endless = Mixing([Factor("z")], (1,), lambda n, g: torch.rand(n, 1, generator=g), lambda c: 2 * c)
    assert len(endless.collect(7, generator()).x) == 7


def test_labels_become_factors_by_their_type():
    y = pd.DataFrame({"kind": ["b", "a", "b"], "level": [10, 30, 20], "value": [0.5, 1.5, 2.5]})
    data = as_data(np.zeros((3, 2)), y, kinds={"level": "ordinal"})
    assert data.factors == (
        Factor("kind", 2, "nominal", values=("a", "b")),
        Factor("level", 3, "ordinal", values=(10, 20, 30)),
        Factor("value"),
    )
    assert data.labels(data.all_points(3)).tolist() == [[1, 0, 0.5], [0, 2, 1.5], [1, 1, 2.5]]
    assert as_data(np.zeros((3, 2)), [1, 1, 0]).factors == (Factor("y", 2, "ordinal"),)


def test_factors_say_what_is_wrong_with_them():
    with pytest.raises(InputError, match="needs a size"):
        Factor("a", None, "nominal")
    with pytest.raises(InputError, match="discrete kind"):
        Factor("a", 3, "real")
    with pytest.raises(InputError, match="no factor named 'w'"):
        as_data(np.zeros((3, 2)), [1, 2, 3]).column("w")
    with pytest.raises(InputError, match="one row per observation"):
        as_data(np.zeros(3))


def test_datasets_refuse_settings_of_the_wrong_type():
    with pytest.raises(InputError, match="mixing='foo', expected 'soft' or 'steep'"):
        GaussianMixture(mixing="foo")
    with pytest.raises(InputError, match=r"points=2\.5, expected an integer"):
        SquaresXY(points=2.5)


def test_the_index_of_a_table_is_rebuilt_on_another_device():
    data = as_data(np.zeros((4, 1)), [0, 1, 0, 1])
    data.locate(torch.tensor([[1.0]]), generator())
    assert "_index" not in vars(data.to("cpu"))


def test_methods_under_their_former_names_are_refused():
    with pytest.raises(InputError, match=r"Old\.observed is no longer called: rename it to `all_points`"):
        type("Old", (Table,), {"observed": lambda self, limit: None})
    with pytest.raises(InputError, match=r"Old\.needed is no longer called: rename it to `required_files`"):
        type("Old", (Dataset,), {"needed": lambda self: ()})


def test_data_say_what_they_hold():
    grid = Grid(torch.zeros(6, 1, 4, 4), FACTORS)
    factors = "factors: shape (nominal, 2 values), size (ordinal, 3 values)"
    assert repr(grid) == f"<Grid: 6 observations of shape (1, 4, 4); {factors}>"
    assert repr(grid.freeze(4, generator())) == f"<Subset of Grid: 4 observations of shape (1, 4, 4); {factors}>"
    pairs = as_pairs(np.zeros((4, 3)), np.ones((4, 3)))
    assert repr(pairs) == "<Paired: 8 observations in 4 pairs of shape (3,); no factors>"
    table = as_data(np.zeros((4, 2)), ["red", "blue", "red", "red"])
    table.feature_names = ("weight", "age")
    expected = "<Table: 4 observations of shape (2,) (weight, age); factors: y (nominal: blue, red)>"
    assert repr(table) == expected


@pytest.mark.parametrize(("points", "text"), [(7, "7 observations"), (None, "observations drawn on demand")])
def test_a_mixing_says_whether_it_ends(points, text):
    factors = [Factor("a", kind="circular"), Factor("n", noise=True), *(Factor(f"f{i}") for i in range(8))]
    mixing = Mixing(factors, (2,), lambda n, rng: torch.rand(n, 10, generator=rng), lambda z: z[:, :2], points=points)
    assert repr(mixing).startswith(
        f"<Mixing: {text} of shape (2,); factors: a (circular, period 6.28319), n (continuous, noise)"
    )
    assert repr(mixing).endswith("f5 (continuous) and 2 more>")
