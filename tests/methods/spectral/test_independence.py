"""Distance correlation of codes and its permutation test."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from unweave.methods.spectral.independence import largest_dependence, measure_dependence, rank_cosines


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


def test_three_rows_show_no_dependence_and_without_permutations_there_is_no_test():
    assert measure_dependence(np.eye(3)[:, :2]) == ((0, 0), 0.0, 1.0)
    codes = np.random.default_rng(0).normal(size=(50, 2))
    assert measure_dependence(codes, n_permutations=0).p_value == 1 and largest_dependence(codes) == (
        measure_dependence(codes).correlation
    )
    assert measure_dependence(codes[:4]).pair == (0, 1)
    with pytest.raises(ValueError, match="zip"):
        measure_dependence(codes, (None,))


def test_p_values_are_shares_of_permutations_for_all_pairs():
    rng = np.random.default_rng(0)
    same = np.repeat(rng.normal(size=(80, 1)), 3, 1)
    assert measure_dependence(same, n_permutations=29).p_value == pytest.approx(3 / 30), "three pairs"
    assert measure_dependence(same[:, :2], n_permutations=29).p_value == pytest.approx(1 / 30)
    assert measure_dependence(same, n_permutations=1).p_value == 1.0
    assert measure_dependence(same[:, :2]).p_value == pytest.approx(1 / 200)


def test_cosines_of_ranks_are_standardized_and_weighted():
    code = np.random.default_rng(0).permutation(40.0 * np.arange(8)) ** 3
    ranks = (rankdata(code) - 0.5) / 8
    waves = rank_cosines(code)[:, :7]
    expected = np.sqrt(2) * np.cos(np.pi * ranks[:, None] * np.arange(1, 8)) / np.arange(1, 8)
    np.testing.assert_allclose(waves, expected, atol=1e-12)
    assert np.abs(rank_cosines(code)[:, 15]).max() < 1e-9, "a wave that eight rows see as a constant"
    around = rank_cosines(code, circular=True)[:, :6]
    turns = 2 * np.pi * ranks
    pairs = [f(m * turns) / m for m in (1, 2, 3) for f in (np.cos, np.sin)]
    np.testing.assert_allclose(around, np.sqrt(2) * np.stack(pairs, 1), atol=1e-12)
