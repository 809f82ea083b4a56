"""The results of every method, metric and dataset are those that were recorded; see `tests/golden.py`."""

import json

import numpy as np
import pytest

from tests import golden
from unweave import catalog

pytestmark = pytest.mark.usefixtures("generated_datasets")
SAME_ARITHMETIC = golden.arithmetic() == golden.ARITHMETIC
# Relative to the largest value of an array. Another processor rounds differently, and training amplifies that.
TOLERANCE = 1e-6 if SAME_ARITHMETIC else 1e-2


@pytest.fixture(scope="module")
def arrays():
    with np.load(golden.HERE / "golden.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def numbers():
    return json.loads((golden.HERE / "golden.json").read_text())


def assert_numbers(found, expected):
    assert sorted(found) == sorted(expected)
    wrong = {name: (found[name], value) for name, value in expected.items() if not close(found[name], value)}
    assert not wrong, wrong


def close(a, b):
    return (np.isnan(a) and np.isnan(b)) or abs(a - b) <= TOLERANCE * max(1, abs(b))


CASES = golden.everything()


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_that_were_recorded(name, arrays, numbers):
    if name in golden.CHAOTIC and not SAME_ARITHMETIC:
        pytest.skip("this processor rounds differently from the one that recorded the values, and flows amplify that")
    found, scores = golden.computed(CASES[name])
    kept = {key.removeprefix(f"{name}/"): value for key, value in arrays.items() if key.startswith(f"{name}/")}
    assert sorted(found) == sorted(kept)
    for part, expected in kept.items():
        assert found[part].shape == expected.shape, part
        assert found[part].dtype == expected.dtype, part
        if expected.dtype.kind in "fiu" and expected.size:
            scale = max(1e-30, float(np.abs(expected).max()))
            np.testing.assert_allclose(found[part], expected, rtol=0, atol=TOLERANCE * scale, err_msg=part)
        else:
            assert np.array_equal(found[part], expected), part
    assert_numbers(scores, numbers[name])


def test_every_metric_gives_what_was_recorded(numbers):
    _, found = golden.computed(lambda: ({}, golden.scores()))
    assert_numbers(found, numbers["metrics"])


def test_nothing_was_recorded_that_is_not_computed(arrays, numbers):
    assert {key.rpartition("/")[0] for key in arrays} == set(CASES)
    assert set(numbers) == {*CASES, "metrics"}


def test_every_method_of_the_catalog_has_a_case():
    assert {cls.__name__ for cls in catalog.methods().values()} == {name.partition("/")[0] for name in golden.cases()}


def test_every_metric_of_the_catalog_has_a_case():
    recorded = {*golden.BY_FACTORS, *golden.OTHER_METRICS}
    assert {each.__name__ for each in catalog.metrics().values()} == recorded | {"angle_error"}  # newer than the record


def test_every_dataset_of_the_catalog_has_a_case_or_needs_files():
    known = {cls for cls, _ in golden.RECIPES.values()}
    assert {cls.__name__ for cls in catalog.datasets().values()} == known | set(golden.ELSEWHERE)
