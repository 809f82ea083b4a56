"""How many variables are informative: known spectra."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import invgamma

from unweave.methods.flows.knee import (
    Knee,
    describe_interval,
    describe_knee,
    find_knee,
    is_clear,
    resample_deviations,
    simulate_resamples,
)
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
    knee = find_knee(np.geomspace(1, 0.01, 50))
    low, high = knee.interval
    assert knee.confidence < 0.5 and high - low > 15 and not is_clear(knee.informative, knee.interval)


FLOORS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1.7, 1.7, n),
    "long lower tail": lambda rng, n: 1 - rng.exponential(1, n),
    "long upper tail": lambda rng, n: rng.gumbel(0, 0.78, n),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize(("n", "d"), [(5, 10), (5, 50), (16, 784)])
@pytest.mark.parametrize("top", ["one level", "falls to e times the floor"])
def test_intervals_contain_the_true_number(floor, n, d, top):
    rng = np.random.default_rng(0)
    hits = widths = 0
    for _ in range(20):
        jitter = 0.2 * rng.standard_normal(n)
        high = np.linspace(3, 1.2, n) if top.startswith("falls") else 3 + jitter
        low, up = find_knee(np.exp(np.r_[high, 0.1 * FLOORS[floor](rng, d - n)])).interval
        hits, widths = hits + (low <= n <= up), widths + (up - low)
    assert hits >= 18 and widths / 20 < (3 if top == "one level" else 9)


def test_levels_that_meet_have_a_wide_interval():
    rng = np.random.default_rng(0)
    high = np.linspace(3, 0.4, 22)  # the last of them are within the floor
    knees = [find_knee(np.exp(np.r_[high, 0.2 * rng.standard_normal(762)])) for _ in range(20)]
    assert np.mean([knee.interval[1] - knee.interval[0] >= 4 for knee in knees]) > 0.9
    assert max(knee.interval[1] for knee in knees) < 30


def test_few_images_widen_the_interval():
    s = np.r_[np.linspace(3, 1.2, 6), np.full(14, 1.0)]
    exact, few = find_knee(s), find_knee(s, simulate_resamples(s, 30))
    width = [knee.interval[1] - knee.interval[0] for knee in (exact, few)]
    assert width[1] > width[0] and few.confidence < exact.confidence


def test_resampled_deviations_vary_as_those_of_new_images():
    rng = np.random.default_rng(1)
    scale = np.array([1.0, 0.1, 3.0])
    found = resample_deviations(5 + scale * rng.standard_normal((2_000, 3)), 300)
    np.testing.assert_allclose(found.mean(0), scale, rtol=0.05)
    np.testing.assert_allclose(found.std(0) / scale, 1 / np.sqrt(4_000), rtol=0.2)
    simulated = simulate_resamples(scale, 2_000, 300)
    np.testing.assert_allclose(simulated.std(0) / scale, 1 / np.sqrt(4_000), rtol=0.2)


def test_a_knee_is_told_in_words_with_its_interval():
    s = np.r_[np.full(4, 2.0), np.full(6, 0.01)]
    text = describe_knee(4, (4, 5), s)
    assert text.startswith("4 of 10 variables are informative (95% interval 4 to 5)") and text.endswith("is clear.")
    assert describe_knee(4, (4, 6), s).endswith("is not clear.") and describe_interval((3, 3)) == "3"
    assert "no knee" in describe_knee(10, (10, 10), s)


@pytest.mark.parametrize("d", [1, 2, 4, 10, 100, 784])
def test_one_level_has_no_knee(d):
    assert find_knee(np.full(d, 0.3)).informative == d
    rng = np.random.default_rng(0)
    found = [find_knee(np.exp(0.1 * rng.standard_normal(d))) for _ in range(40)]
    assert np.mean([k.informative == d for k in found]) > 0.5
    assert np.mean([k.informative < d and k.confidence > 0.9 for k in found]) < 0.1  # it does not claim one


def posterior_by_integration(x):
    """The posterior of find_knee's model, its variances integrated numerically."""
    x, d = np.sort(x)[::-1], len(x)
    log_variances = np.linspace(np.log(1e-7), np.log(1e6), 60_001)
    variance = np.exp(log_variances)
    prior = invgamma(0.5, scale=0.1**2 / 2).pdf(variance) * variance  # of log-variances

    def density(level):
        """Of the values of a level, by variance: the mean is uniform on a range of a factor of a thousand."""
        n, squares = len(level), ((level - level.mean()) ** 2).sum()
        return (2 * np.pi * variance) ** (-(n - 1) / 2) * np.exp(-squares / (2 * variance)) / np.sqrt(n) / np.log(1e3)

    def integral(density):
        return np.trapezoid(density * prior, log_variances)

    one, parts = integral(density(x)), [(x[:q], x[q:], comb(d, q)) for q in range(1, d)]
    own = np.array([*(integral(density(a)) * integral(density(b)) / sets for a, b, sets in parts), one])
    shared = np.array([*(integral(density(a) * density(b)) / sets for a, b, sets in parts), one])
    return (own / own.sum() + shared / shared.sum()) / 2


@pytest.mark.parametrize(
    "x", [[2.0, 1.7, 0.1], [1.0, 0.9, 0.4, 0.2, 0.15], [3.0, 0.4, 0.2, 0.1], [0.3, 0.25, 0.2, -0.9, -1.2, -1.3]]
)
def test_the_posterior_is_that_of_two_normal_levels_with_unknown_means_and_variances(x):
    knee = find_knee(np.exp(x))
    expected = posterior_by_integration(np.array(x))
    np.testing.assert_allclose(knee.posterior, expected, atol=1e-4)
    assert knee.informative == expected.argmax() + 1 and knee.confidence == pytest.approx(expected.max(), abs=1e-4)


def test_intervals_are_central_and_contain_the_most_probable_number():
    posterior = np.array([0.02, 0.02, 0.5, 0.3, 0.1, 0.03, 0.03])
    assert Knee(3, 0.5, posterior).interval == (2, 7)
    assert Knee(3, 0.5, np.array([0.0, 0.03, 0.9, 0.05, 0.02])).interval == (2, 4)
    assert Knee(1, 0.5, np.array([0.01, 0.01, 0.98])).interval == (1, 3)
    assert Knee(3, 0.5, np.array([0.0, 1.0, 0.0])).interval == (2, 3)
    assert is_clear(8, (7, 9)) and not is_clear(8, (7, 10)) and describe_interval((1, 2)) == "1 to 2"


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


def test_deviations_of_lists_are_resampled_as_those_of_arrays():
    y = [[1, 2.0], [3, 4], [5, 7]]
    np.testing.assert_allclose(resample_deviations(y, 4), resample_deviations(np.array(y), 4))
    assert resample_deviations(y, 4).dtype == np.float32
