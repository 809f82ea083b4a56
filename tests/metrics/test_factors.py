"""Preparation and validation of factors."""

import warnings

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import (
    dci,
    explicitness,
    factor_vae_score,
    irs,
    mcc,
    mig,
    modularity,
    prepared,
    sap,
    score_all,
)
from unweave.metrics.factors import active_codes


def test_a_constant_factor_is_refused(z):
    with pytest.raises(InputError, match="factor 1 is constant"):
        mcc(np.column_stack([z[:, 0], np.ones(4000)]), z)


def test_too_few_classes_and_rows_are_refused(grid):
    c = np.zeros(30)
    c[29] = 1
    with pytest.raises(InputError, match="one class only among the training rows"):
        dci(c, np.arange(30.0), seed=None)
    with pytest.raises(InputError, match="too few to train"):
        sap(np.arange(3) % 2, np.arange(3.0), train=0.1)
    with pytest.raises(InputError, match="between 0 and 1"):
        explicitness(grid, grid, train=1.5)


def test_fewer_samples_than_twice_the_classes_are_warned_of():
    with pytest.warns(UserWarning, match="factor 0 has 15 classes in 20 samples"):
        mig(np.arange(20) % 15, np.arange(20.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mig(np.arange(20) % 10, np.arange(20.0))


def test_levels_with_fractions_and_values_that_repeat_are_classes_like_others():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 5, (600, 2)) / 4
    assert irs(c, c) == pytest.approx(1)
    tied = np.maximum(rng.normal(size=(600, 2)), 0)  # half of the values are zero: most equal-count bins are empty
    assert irs(tied, tied) > 0.7
    assert factor_vae_score(tied, tied).accuracy == 1


def test_rounding_errors_of_a_constant_code_change_no_score():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 3, (600, 2)).astype(float)
    for dead in (0.1 + 1.4e-17 * rng.integers(-1, 2, 600), np.full(600, 1e17)):
        z = np.column_stack([c, dead])
        assert mig(c, z) == mig(c, c)
        assert modularity(c, z) == pytest.approx(modularity(c, c) * 2 / 3)


def test_swapped_axes_are_noticed():
    x = np.random.default_rng(0).normal(size=(500, 4))
    with pytest.raises(InputError, match=r"more columns than samples in both; are the axes swapped"):
        mcc(x.T, x.T)


def test_declared_kinds_override_guessed_ones():
    """120 classes by number are classes; levels of 22.5 degrees are a range where that is stated."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 120, 3000).astype(float)
    assert len(np.unique(prepared(label).classes[0])) == 20, "an array may hold anything: many values are a range"
    assert len(np.unique(prepared(label, [True]).classes[0])) == 120
    angle = 22.5 * rng.integers(0, 4, 600)
    assert sap(angle, angle) > 0.4, "four values, each in many rows, are classes whether or not they are whole"
    with pytest.raises(InputError, match="use sap"):
        sap(prepared(angle, kinds="continuous"), angle)


@pytest.mark.parametrize("rows", [72, 144, 1440])
def test_a_constant_shift_of_whole_numbers_changes_no_score(rows):
    """Angles in steps of 5 degrees are no classes because they are whole numbers."""
    rng = np.random.default_rng(0)
    angle, other = 5.0 * (np.arange(rows) % 72), rng.uniform(size=rows)
    z = np.stack([angle + rng.normal(size=rows), other], 1)
    whole, shifted = (score_all(np.stack([a, other], 1), z)["value"] for a in (angle, angle + 0.001))
    assert whole.to_dict() == pytest.approx(shifted.to_dict())


def test_features_of_several_codes_are_scored_as_one():
    generator = np.random.default_rng(0)
    c = generator.integers(0, 4, (2000, 2))
    angle = 2 * np.pi * c / 4
    z = np.c_[np.cos(angle[:, 0]), np.sin(angle[:, 0]), np.cos(angle[:, 1]), np.sin(angle[:, 1])]
    z = z + 0.05 * generator.normal(size=z.shape)
    pairs = [[0, 1], [2, 3]]
    apart, together = (sap(c, z, predictor="logistic", features=f) for f in (None, pairs))
    assert together == pytest.approx(0.75, abs=0.05) and apart < 0.3  # the other feature still guesses one in four
    assert dci(c, z, features=pairs).completeness > 0.99 > dci(c, z).completeness + 0.2
    assert dci(c, z, features=pairs).disentanglement > 0.99
    with pytest.raises(InputError, match=r"sap\[logistic\]"):
        sap(c, z, predictor="r2", features=pairs)


def test_codes_vary_relative_to_their_size():
    z = np.array([[1e-20, 1e20, 5.0, 0.0, -3e9], [3e-20, 1e20 * (1 + 5e-13), 5.0, 0.0, -3e9 - 1]])
    assert active_codes(z).tolist() == [True, False, False, False, True]
