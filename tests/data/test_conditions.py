"""Conditions on columns."""

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.data.conditions import rows_where

TABLE = pd.DataFrame({"age": [20, 40, 60], "lab": ["A", "B", "B"], "my size": [0.5, 1.5, 2.5]})


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("age > 30", [1, 2]), ("age>=40 and lab == 'A'", []), ("lab != B or age == 60", [0, 2]), ("lab = B", [1, 2]),
        ("my size < 2 and age >= 20", [0, 1]), ("age > 50 or age < 30 and lab == A", [0, 2]),
    ],
)  # fmt: skip
def test_rows_are_chosen_by_comparisons(condition, rows):
    assert np.flatnonzero(rows_where(TABLE, condition)).tolist() == rows


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        ("agee > 3", "did you mean 'age'"), ("age", "expected comparisons"), ("lab > B", "holds text"),
        ("age > B", "holds numbers"), ("__import__('os') == 1", "no column named"),
    ],
)  # fmt: skip
def test_wrong_conditions_are_refused(condition, match):
    with pytest.raises(InputError, match=match):
        rows_where(TABLE, condition)
