"""How many variables are informative: known spectra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.methods.flows.knee import find_knee
from unweave.utils.errors import InputError


def spectrum(n, d, low=0.01, high=2.0, jitter=0.2, seed=0):
    rng = np.random.default_rng(seed)
    levels = np.where(np.arange(d) < n, high, low)
    return levels * np.exp(jitter * rng.standard_normal(d))


@pytest.mark.parametrize(("n", "d"), [(1, 10), (2, 10), (5, 10), (8, 10), (22, 784), (2, 6)])
def test_two_levels_are_told_apart_and_surely(n, d):
    found = find_knee(spectrum(n, d))
    assert found.informative == n and found.confidence > 0.95


def test_a_spectrum_without_a_knee_says_that_it_is_unsure():
    assert find_knee(np.geomspace(1, 0.01, 50)).confidence < 0.5


@pytest.mark.parametrize("d", [1, 2, 4, 10, 100, 784])
def test_one_level_has_no_knee(d):
    assert find_knee(np.full(d, 0.3)).informative == d
    rng = np.random.default_rng(0)
    found = [find_knee(np.exp(0.1 * rng.standard_normal(d))) for _ in range(40)]
    assert np.mean([k.informative == d for k in found]) > 0.5
    assert np.mean([k.informative < d and k.confidence > 0.9 for k in found]) < 0.1  # it does not claim one


def test_two_variables_are_too_few_for_a_knee():
    assert find_knee([2.0, 0.01]).informative == 2


@pytest.mark.parametrize("bad", [[], [1.0, 0.0], [1.0, np.nan], [1.0, -1.0]])
def test_what_is_no_spectrum_is_refused(bad):
    with pytest.raises(InputError, match="positive, finite"):
        find_knee(bad)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.floats(1e-2, 1e2))
def test_order_and_scale_do_not_matter(deviations, scale):
    one, other = find_knee(deviations), find_knee(np.array(deviations[::-1]) * scale)
    assert one.posterior.sum() == pytest.approx(1) and 1 <= one.informative <= len(deviations)
    np.testing.assert_allclose(one.posterior, other.posterior, atol=1e-3)
