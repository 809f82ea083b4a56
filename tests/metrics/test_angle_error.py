"""Errors of angles that are read from codes."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from unweave.metrics import angle_error, prepared

ANGLE = np.random.default_rng(0).uniform(0, 360, 203)
TURNS = np.deg2rad(ANGLE)
NOISY = np.stack([np.cos(TURNS), np.sin(TURNS)], 1) + 0.1 * np.random.default_rng(1).normal(size=(203, 2))


def by_hand(codes, seed):
    """The median distance along the circle between angles and those of predicted points, in degrees."""
    target, predicted = np.stack([np.cos(TURNS), np.sin(TURNS)], 1), np.zeros((203, 2))
    for fit, test in KFold(5, shuffle=True, random_state=seed).split(codes):
        predicted[test] = LinearRegression().fit(codes[fit], target[fit]).predict(codes[test])
    difference = np.rad2deg(np.arctan2(predicted[:, 1], predicted[:, 0])) - ANGLE
    return np.median(np.abs((difference + 180) % 360 - 180))


@pytest.mark.parametrize("seed", [0, 3])
def test_the_error_is_that_of_five_fold_predictions_along_the_circle(seed):
    truth = prepared(ANGLE, kinds=("circular", 360))
    assert angle_error(truth, NOISY, seed=seed) == pytest.approx(by_hand(NOISY, seed))
    assert 1 < angle_error(truth, NOISY) < 10
    assert angle_error(truth, np.random.default_rng(0).normal(size=(203, 2))) == pytest.approx(90, abs=20)


def test_units_are_those_of_the_factor_and_other_factors_are_ignored():
    hours = prepared(np.column_stack([ANGLE / 15, ANGLE**2]), kinds=[("circular", 24), "continuous"])
    assert angle_error(hours, NOISY) == pytest.approx(by_hand(NOISY, 0) / 15)
    both = prepared(np.column_stack([ANGLE, (3 * ANGLE) % 360]), kinds=[("circular", 360), ("circular", 360)])
    alone = prepared((3 * ANGLE) % 360, kinds=("circular", 360))
    assert angle_error(both, NOISY) == pytest.approx((by_hand(NOISY, 0) + angle_error(alone, NOISY)) / 2)


def test_a_code_that_is_an_angle_may_begin_anywhere_and_run_backwards():
    truth = prepared(ANGLE, kinds=("circular", 360), code_periods=(1.0,))
    assert angle_error(truth, (0.3 - ANGLE / 360) % 1) < 1e-6
    linear = prepared(ANGLE, kinds=("circular", 360))
    assert angle_error(linear, (0.3 - ANGLE / 360) % 1) > 10
