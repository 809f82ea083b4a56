"""Validation of settings and labels."""

from typing import Literal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.helpers import generator
from unweave import InputError, as_data
from unweave.methods import PCA
from unweave.utils.validation import as_array, as_classes, check_finite, describe_hint, matches_hint, normalize_numbers


def test_numbers_are_normalized_without_evaluating_annotations():
    from dataclasses import make_dataclass

    # As on another machine, where the module of a user's class is not: its names mean nothing there.
    cls = make_dataclass("Sent", [("kind", "Elsewhere | None"), ("strength", "Lane"), ("count", "int | float")])
    found = normalize_numbers(cls, {"kind": 1, "strength": 2, "count": 3})
    assert [type(v) for v in found.values()] == [int, float, int]


def test_real_valued_labels_are_named():
    y = pd.DataFrame({"kind": ["a", "b"], "age": [0.5, 1.25]})
    with pytest.raises(InputError, match="column 'age' is real-valued"):
        as_classes(y)


def test_labels_come_in_many_forms():
    assert as_classes(np.array([1.0, 2.0])).dtype == np.int64
    assert as_classes(np.array([1, 2], object)).dtype == np.int64
    assert as_classes(pd.DataFrame({"a": [1.0, 2.0]}))["a"].dtype == np.int64
    with pytest.raises(InputError, match="Unknown label type"):
        as_classes(np.array([{}, {}], object))
    with pytest.raises(InputError, match="one label"):
        as_classes(5)


@given(
    x=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.floats(-10, 10)),
    where=st.integers(0, 10**6),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_the_first_invalid_value_is_reported_with_its_position(x, where, value):
    check_finite(x)
    place = np.unravel_index(where % x.size, x.shape)
    x[place] = value
    with pytest.raises(InputError, match=f"first in row {place[0]},") as caught:
        check_finite(x)
    assert ("NaN" if np.isnan(value) else "infinity") in str(caught.value)


def test_large_arrays_are_checked_in_parts(monkeypatch):
    monkeypatch.setattr("unweave.utils.validation.MAX_CHECKED_ELEMENTS", 7)
    x = np.zeros((10, 3))
    check_finite(x)
    x[5, 1], x[8], x[9, 0] = np.inf, np.nan, np.nan
    with pytest.raises(InputError, match=r"infinity: first in row 5, column 1; 5 values are NaN .* in 3 rows"):
        check_finite(x)


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
def test_values_are_checked_against_their_annotations(value, hint, fits):
    assert matches_hint(value, hint) is fits
    assert describe_hint(hint)


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
def test_every_kind_of_array_is_accepted(x):
    data = as_data(x)
    assert torch.equal(data.collect(1, generator()).x.double(), torch.ones(3, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.array([["a", "b"]]), "holds <U1, not real numbers"),
        (np.ones((3, 2), dtype=complex), "holds complex128"),
        (np.array([[object(), 1]]), "cannot be converted to an array of numbers"),
        (scipy.sparse.eye(3), "is a sparse matrix"),
        ([[1, 2], [3]], "cannot be converted to an array"),
    ],
)
def test_input_that_is_not_an_array_of_numbers_is_refused(x, text):
    with pytest.raises(InputError, match=text):
        as_array(x)


@pytest.mark.parametrize("convert", [as_data, PCA().fit, lambda x: PCA().fit(np.eye(4)).transform(x)])
@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"city": ["Ulm", "Bonn"], "b": [1, 2]}, "has text in the column 'city', first 'Ulm': expected numbers"),
        ({"b": [1, 2], "c": pd.Categorical(["u", "v"])}, r"'c', first 'u'.*X.drop\(columns=\['c'\]\)"),
        ({"a": [None, "x"], "d": pd.to_datetime(["2020-01-01"] * 2)}, "'a', first 'x' .other columns .*: 'd'"),
        ({"d": pd.to_datetime(["2020-01-01"] * 2)}, "has dates in the column 'd', first '2020-01-01 00:00:00'"),
    ],
)
def test_columns_of_text_in_a_table_are_named(convert, columns, text):
    with pytest.raises(InputError, match=text):
        convert(pd.DataFrame(columns))


def test_text_that_reads_as_numbers_is_accepted():
    assert as_array(pd.DataFrame({"a": ["1", "2.5"], "b": [True, False]})).tolist() == [[1.0, 1.0], [2.5, 0.0]]
