"""Explicitness."""

import numpy as np
import pytest

from unweave.metrics import explicitness


def test_linear_codes_score_higher_than_wrapped_ones(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert (
        explicitness(grid, np.eye(4)[grid.astype(int)].reshape(len(grid), -1) + 0.01 * rng.normal(size=(4000, 8)))
        > 0.999
    )
    assert explicitness(grid, np.sin(10 * z)) < 0.9
    assert explicitness(grid, rng.normal(size=grid.shape)) == pytest.approx(0.5, abs=0.05)


def area_by_pairs(positive, code):
    """The probability that a row of the class has the larger code, ties counted half: what the area under ROC is."""
    above, below = code[positive][:, None], code[~positive]
    return np.mean((above > below) + 0.5 * (above == below))


def test_the_area_of_one_code_is_the_probability_of_a_right_order():
    """A logistic regression on one code is monotone in it, so the areas on the test rows follow by hand."""
    rng = np.random.default_rng(0)
    factor = rng.integers(0, 2, 300)
    code = factor + rng.normal(size=300)
    test = np.arange(200, 300)  # with two thirds to train on, in order
    by_hand = area_by_pairs(factor[test] == 1, code[test])
    assert 0.6 < by_hand < 0.9
    assert explicitness(factor, code, seed=None) == pytest.approx(by_hand)
    assert explicitness(factor, -3 * code + 7, seed=None) == pytest.approx(by_hand), "scale and sign do not matter"
    assert explicitness(factor, code, train=0.5, seed=None) == pytest.approx(
        area_by_pairs(factor[150:] == 1, code[150:])
    )


def test_areas_are_averaged_over_values_and_then_over_factors():
    """Of three equal classes, a code that only tells the third from the others has the areas 3/4, 3/4 and 1."""
    factor = np.tile([0, 1, 2], 90)
    code = (factor == 2).astype(float)
    assert explicitness(factor, code, seed=None) == pytest.approx((0.75 + 0.75 + 1) / 3)
    other = np.tile([0, 0, 0, 1, 1, 1], 45)  # independent of the code
    both = np.column_stack([factor, other])
    assert explicitness(both, code, seed=None) == pytest.approx(((0.75 + 0.75 + 1) / 3 + 0.5) / 2)


def test_a_value_that_all_test_rows_have_or_none_is_left_out():
    training = np.tile([0, 1, 2], 40)
    code = np.column_stack([training == v for v in range(3)]).astype(float)
    noise = np.random.default_rng(0).normal(size=60)
    without_two = np.concatenate([training, np.tile([0, 1], 30)])
    codes = np.concatenate([code[:, :1], noise[:, None]])  # tells 0 while training, and is noise in the test
    by_hand = area_by_pairs(without_two[120:] == 0, noise)
    score = explicitness(without_two, codes, seed=None)
    of_one = area_by_pairs(without_two[120:] == 1, -noise)
    assert score == pytest.approx((by_hand + of_one) / 2, abs=0.02)
    only_two = np.concatenate([training, np.full(60, 2)])
    assert explicitness(only_two, codes, seed=None) == 0.5, "nothing to tell apart: chance"


def test_the_area_is_measured_on_test_rows_and_never_on_those_trained_on():
    """Codes that identify every training row, and are noise elsewhere, score chance."""
    rng = np.random.default_rng(0)
    factor = rng.integers(0, 2, 600)
    code = np.where(np.arange(600) < 400, factor, rng.normal(size=600))
    assert explicitness(factor, code, seed=None) == pytest.approx(0.5, abs=0.08)
    assert explicitness(factor, code, seed=0) > 0.6, "a random split mixes both kinds of rows"
    assert explicitness(factor, code, seed=1) != explicitness(factor, code, seed=0)
