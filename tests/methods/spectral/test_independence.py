"""Distance correlation of codes and its permutation test."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from unweave.methods.spectral.independence import measure_dependence


def distance_correlation_of_ranks(a, b):
    """The definition of Szekely and Rizzo (2014), with the correction for bias, on matrices of distances."""
    n = len(a)

    def center(values):
        d = cdist(rankdata(values)[:, None], rankdata(values)[:, None])
        d = d - d.sum(0) / (n - 2) - d.sum(1)[:, None] / (n - 2) + d.sum() / ((n - 1) * (n - 2))
        np.fill_diagonal(d, 0)
        return d

    A, B = center(a), center(b)
    return np.sqrt(max((A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum()), 0))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_distance_correlation_of_ranks(seed):
    rng = np.random.default_rng(seed)
    a = rng.uniform(size=400)
    for b in ((a - 0.5) ** 2 + 0.02 * rng.normal(size=400), a + rng.normal(size=400), rng.normal(size=400) * a):
        exact = distance_correlation_of_ranks(a, b)
        assert abs(measure_dependence(np.column_stack([a, b])).correlation - exact) < 0.01


def test_the_most_dependent_pair_is_named():
    rng = np.random.default_rng(0)
    codes = rng.uniform(size=(500, 4))
    codes[:, 3] = (codes[:, 1] - 0.5) ** 2  # uncorrelated with code 2
    dependence = measure_dependence(codes)
    assert dependence.pair == (1, 3)
    assert dependence.correlation > 0.3 and dependence.p_value < 0.05


def test_independent_codes_are_rarely_called_dependent():
    p_values = [measure_dependence(np.random.default_rng(i).uniform(size=(200, 3))).p_value for i in range(60)]
    assert np.mean(np.array(p_values) < 0.1) < 0.2


def test_an_angle_has_no_beginning():
    """Where the turn starts does not change how far a code depends on the angle."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 500)
    other = np.cos(angle) + 0.3 * rng.normal(size=500)
    values = [
        measure_dependence(np.column_stack([(angle + start) % (2 * np.pi), other]), (2 * np.pi, None)).correlation
        for start in (0, 1, 2.5)
    ]
    assert np.ptp(values) < 0.005 and values[0] > 0.4


def test_a_single_code_depends_on_nothing():
    assert measure_dependence(np.arange(50.0)[:, None]) == ((0, 0), 0.0, 1.0)
