"""Grids, tables and mixings."""

from typing import Literal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unweave import Factor, Grid, InputError, Mixing, Table, as_data
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.utils.validation import as_array, check_finite, describe_hint, matches_hint


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


FACTORS = (Factor("shape", 2, "nominal"), Factor("size", 3, "ordinal"))


def test_a_grid_renders_the_row_of_its_factors():
    grid = Grid(torch.arange(6, dtype=torch.uint8)[:, None], FACTORS)
    points = torch.tensor([[0, 0], [0, 2], [1, 1]])
    assert torch.equal(grid.render(points)[:, 0] * 255, torch.tensor([0.0, 2.0, 4.0]))
    assert torch.equal(grid.render(grid.all_points(6))[:, 0] * 255, torch.arange(6.0))
    assert grid.all_points(5) is None


def test_a_grid_samples_every_combination_about_equally():
    counts = Grid(torch.zeros(6, 1), FACTORS).sample(6000, rng()) @ torch.tensor([3, 1])
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
    rows = table.locate(expected, rng())[:, 0]
    assert set(rows[:200].tolist()) == {1, 3}
    assert rows[200] == 2
    assert torch.equal(table.labels(rows[:, None]), expected.double())
    with pytest.raises(InputError, match=r"a=1, b=1 \(1 of 2"):
        table.locate(torch.tensor([[0, 0], [1, 1]]), rng())


def test_a_table_is_collected_whole_and_in_order():
    data = as_data(np.arange(40.0).reshape(20, 2))
    assert torch.equal(data.collect(5, rng()).x, torch.arange(40.0, dtype=torch.float64).reshape(20, 2))


def test_a_mixing_with_points_is_a_finite_sample_that_renders_anything():
    data = Mixing([Factor("z")], (1,), lambda n, g: torch.rand(n, 1, generator=g), lambda c: 2 * c, points=10, seed=1)
    assert torch.equal(data.all_points(3), data.sources)
    assert set(data.sample(100, rng())[:, 0].tolist()) <= set(data.sources[:, 0].tolist())
    assert data.render(torch.tensor([[5.0]])) == 10
    endless = Mixing([Factor("z")], (1,), lambda n, g: torch.rand(n, 1, generator=g), lambda c: 2 * c)
    assert len(endless.collect(7, rng()).x) == 7


def test_labels_become_factors_by_their_type():
    y = pd.DataFrame({"kind": ["b", "a", "b"], "level": [10, 30, 20], "value": [0.5, 1.5, 2.5]})
    data = as_data(np.zeros((3, 2)), y)
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


@given(
    x=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.floats(-10, 10)),
    where=st.integers(0, 10**6),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_the_first_bad_value_is_found_wherever_it_is(x, where, value):
    check_finite(x)
    place = np.unravel_index(where % x.size, x.shape)
    x[place] = value
    with pytest.raises(InputError, match=f"first in row {place[0]},") as caught:
        check_finite(x)
    assert ("NaN" if np.isnan(value) else "infinity") in str(caught.value)


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (3, int, True),
        (np.int64(3), int, True),
        (True, int, False),
        (3.0, int, False),
        (3, float, True),
        (float("nan"), float, False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        (("x",), tuple[str, ...], True),
        ((1,), tuple[str, ...], False),
        ((1, 2), tuple[int, int], True),
        ((1, 2, 3), tuple[int, int], False),
        (None, int | None, True),
        ("auto", int | Literal["auto"], True),
    ],
)
def test_values_are_held_against_their_annotations(value, hint, fits):
    assert matches_hint(value, hint) is fits
    assert describe_hint(hint)


def test_datasets_refuse_settings_of_the_wrong_type():
    with pytest.raises(InputError, match="mixing='foo', expected 'soft' or 'steep'"):
        GaussianMixture(mixing="foo")
    with pytest.raises(InputError, match=r"points=2\.5, expected a whole number"):
        SquaresXY(points=2.5)


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(3, 2, dtype=torch.bfloat16),
        torch.ones(3, 2, requires_grad=True),
        np.ones((3, 4), dtype=">f8")[:, ::-2],
        np.ones((3, 2), dtype=np.float16),
        np.ones((3, 2), dtype=bool),
        np.ones((3, 2), dtype=object),
        [[1, 1], [1, 1], [1, 1]],
    ],
)
def test_every_kind_of_array_is_taken(x):
    data = as_data(x)
    assert torch.equal(data.collect(1, rng()).x.double(), torch.ones(3, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.array([["a", "b"]]), "holds <U1, not real numbers"),
        (np.ones((3, 2), dtype=complex), "holds complex128"),
        (np.array([[object(), 1]]), "cannot be made an array of numbers"),
        (scipy.sparse.eye(3), "is a sparse matrix"),
        ([[1, 2], [3]], "cannot be made an array"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(x, text):
    with pytest.raises(InputError, match=text):
        as_array(x)


def test_the_index_of_a_table_is_rebuilt_on_another_device():
    data = as_data(np.zeros((4, 1)), [0, 1, 0, 1])
    data.locate(torch.tensor([[1.0]]), rng())
    assert "_index" not in vars(data.to("cpu"))
