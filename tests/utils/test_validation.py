"""Validation of settings and labels."""

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.utils.validation import as_classes, normalize_numbers


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
