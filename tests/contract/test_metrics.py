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


N = 3000


@pytest.fixture(scope="module")
def factors():
    return np.random.default_rng(0).uniform(-1, 1, (N, 3))


@pytest.fixture(scope="module")
def levels():
    """Discrete factors: three, four and five values."""
    return np.random.default_rng(0).integers(0, [3, 4, 5], (N, 3)).astype(float)


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


@pytest.mark.parametrize("truth", ["factors", "levels"])
def test_a_perfect_code_is_best_and_a_constant_one_worst(metric, truth, request):
    c = request.getfixturevalue(truth)
    if metric.facts.truth == "inputs" and truth == "levels":
        pytest.skip("distances on a coarse grid take a handful of values")
    jitter = 1e-3 * np.random.default_rng(1).normal(size=c.shape)
    perfect = number(metric(c, c + jitter))
    # With accuracies, as SAP on classes has them, even the second-best code guesses right at times: 1 is out of reach.
    least = 0.65 if (metric.__name__, truth) == ("sap", "levels") else 0.94
    assert least < perfect <= metric.facts.best + 1e-6
    constant = number(metric(c, np.ones((N, 3))))
    if metric.facts.worst is None:  # a score that guesses: one of three factors
        assert constant == pytest.approx(1 / 3, abs=0.08)
    else:
        assert constant == pytest.approx(metric.facts.worst, abs=0.05)


def test_noise_scores_less_than_a_perfect_code(metric, factors):
    noise = np.random.default_rng(1).normal(size=(N, 3))
    assert number(metric(factors, noise)) < number(metric(factors, factors)) - 0.1


def test_order_sign_and_scale_of_codes_do_not_matter(metric, factors):
    codes = factors + 0.3 * np.random.default_rng(2).normal(size=factors.shape)
    # IRS weighs each code by how far it moves, so by definition only a common scale leaves it alone.
    scale = [-10, 10, 10] if metric.__name__ == "irs" else [-1, 10, 0.1]
    other = codes[:, [2, 0, 1]] * scale + [5, 0, -3]
    # Trees break ties by the order of columns; everything else is equal to rounding.
    tolerance = 2e-3 if metric.__name__ == "dci" else 1e-6
    assert number(metric(factors, other)) == pytest.approx(number(metric(factors, codes)), abs=tolerance)


def test_arrays_tensors_and_lists_are_the_same_to_it(metric, factors):
    small = factors[:300]
    expected = metric(small, small**3)
    assert metric(torch.from_numpy(small), torch.from_numpy(small**3)) == expected
    assert metric(small.tolist(), (small**3).tolist()) == expected


def test_a_dead_code_dimension_is_never_an_error_and_changes_nothing(metric, factors):
    value = number(metric(factors, np.column_stack([factors, np.full(N, 7.0)])))
    # Modularity is a mean over codes, and a code that knows nothing counts as zero: three of four are left.
    expected = number(metric(factors, factors)) * (0.75 if metric.__name__ == "modularity" else 1)
    assert value == pytest.approx(expected, abs=1e-3)


def test_more_codes_than_factors_and_fewer(metric, factors):
    noise = np.random.default_rng(3).normal(size=(N, 2))
    for codes in (np.column_stack([factors, noise]), factors[:, :1]):
        assert np.isfinite(number(metric(factors, codes)))


def test_bad_input_is_refused_in_words(metric, factors):
    with pytest.raises(InputError, match=r"3,000 rows of .* and 2,999 rows of codes"):
        metric(factors, factors[:-1])
    with pytest.raises(InputError, match="axes swapped"):
        metric(factors, factors.T)
    with pytest.raises(InputError, match=r"codes contains NaN: first in row 4"):
        metric(factors, np.where(np.arange(N)[:, None] == 4, np.nan, factors))
    with pytest.raises(InputError, match="not numbers"):
        metric(factors, np.full((N, 2), "a"))
    with pytest.raises(InputError, match="at least three"):
        metric(factors[:2], factors[:2])


def test_it_carries_its_facts_and_lives_in_the_package(metric):
    assert metric.facts.paper
    assert getattr(unweave.metrics, metric.__name__) is metric
    assert (metric.__doc__ or "").strip()
