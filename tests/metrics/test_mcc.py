"""Mean correlation coefficient."""

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import (
    mcc,
)


@pytest.mark.parametrize("degrees", [0, 10, 30, 45])
def test_a_rotated_code_scores_the_cosine(z, degrees):
    a = np.deg2rad(degrees)
    codes = z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert mcc(z, codes) == pytest.approx(np.cos(a), abs=0.02)


def test_spearman_ignores_monotonic_maps_and_pearson_does_not(z):
    codes = np.exp(5 * z)
    assert mcc(z, codes, correlation="spearman") == pytest.approx(1)
    assert mcc(z, codes) < 0.9
    with pytest.raises(InputError, match="'pearson' or 'spearman'"):
        mcc(z, codes, correlation="kendall")


def test_spearman_ranks_are_ranks_and_not_an_argsort():
    """The argsort of (3, 1, 2) is (1, 2, 0); its ranks are (2, 0, 1)."""
    factor, code = np.array([3.0, 1, 2, 5, 4]), np.array([1.0, 2, 3, 4, 5])
    assert mcc(factor, code, correlation="spearman") == pytest.approx(0.6)
    assert mcc(factor, factor**3, correlation="spearman") == pytest.approx(1)


def test_codes_are_matched_by_the_best_assignment_and_not_greedily():
    """|r| = [[.9, .8], [.85, 0]]: greedy takes .9 + 0, the best assignment .8 + .85."""
    rng = np.random.default_rng(0)
    a, b, noise = (rng.normal(size=(20_000, 1)) for _ in range(3))
    codes = np.hstack([0.9 * a + 0.436 * b, 0.8 * a + 0.6 * noise])
    factors = np.hstack([a, 0.85 * codes[:, :1] + 0.527 * rng.normal(size=(20_000, 1))])
    r = np.abs(np.corrcoef(factors.T, codes.T)[:2, 2:])
    assert r[0, 0] > r[1, 0] > r[0, 1] > r[1, 1]
    assert mcc(factors, codes) == pytest.approx((r[0, 1] + r[1, 0]) / 2)


def test_a_factor_without_a_code_counts_as_zero(z):
    assert mcc(z, z[:, :1]) == pytest.approx(0.5, abs=0.02)
    assert mcc(z[:, 0], z) == pytest.approx(1)
