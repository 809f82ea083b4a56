"""What every metric must do; a new metric is tested by being in the catalog."""

import numpy as np
import pytest
import torch

import unweave
from unweave import InputError, catalog

METRICS = catalog.metrics()


def number(value):
    """A score, or the first field of one that has several."""
    return value[0] if isinstance(value, tuple) else value


@pytest.fixture(scope="module")
def factors():
    return np.random.default_rng(0).uniform(-1, 1, (500, 3))


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


def rotation(angle):
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return turn


def test_a_perfect_code_is_best_and_a_constant_one_worst(metric, factors):
    assert number(metric(factors, factors)) == pytest.approx(metric.facts.best, abs=0.01)
    assert abs(number(metric(factors, np.ones((500, 3))))) < 0.05


def test_noise_scores_far_from_best(metric, factors):
    noise = np.random.default_rng(1).normal(size=(500, 3))
    assert abs(number(metric(factors, noise))) < 0.3


def test_order_sign_and_scale_of_codes_do_not_matter(metric, factors):
    codes = factors + 0.3 * np.random.default_rng(2).normal(size=factors.shape)
    other = codes[:, [2, 0, 1]] * [-1, 10, 0.1] + [5, 0, -3]
    assert number(metric(factors, other)) == pytest.approx(number(metric(factors, codes)), abs=1e-4)


def test_arrays_tensors_and_lists_are_the_same_to_it(metric, factors):
    expected = metric(factors, factors**3)
    assert metric(torch.from_numpy(factors), torch.from_numpy(factors**3)) == expected
    assert metric(factors.tolist(), (factors**3).tolist()) == expected


def test_a_dead_code_dimension_is_no_error_and_changes_nothing(metric, factors):
    codes = np.column_stack([factors, np.full(500, 7.0)])
    assert number(metric(factors, codes)) == pytest.approx(number(metric(factors, factors)), abs=0.01)


def test_bad_input_is_refused_in_words(metric, factors):
    with pytest.raises(InputError, match=r"500 rows of .* and 499 rows of codes"):
        metric(factors, factors[:-1])
    with pytest.raises(InputError, match="axes swapped"):
        metric(factors, factors.T)
    with pytest.raises(InputError, match=r"codes contains NaN: first in row 4"):
        metric(factors, np.where(np.arange(500)[:, None] == 4, np.nan, factors))
    with pytest.raises(InputError, match="not numbers"):
        metric(factors, np.full((500, 2), "a"))
    with pytest.raises(InputError, match="at least three"):
        metric(factors[:2], factors[:2])


def test_it_carries_its_facts_and_lives_in_the_package(metric):
    assert metric.facts.paper
    assert getattr(unweave.metrics, metric.__name__) is metric
    assert (metric.__doc__ or "").strip()
