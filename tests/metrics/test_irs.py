"""Interventional robustness score."""

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import (
    irs,
)


def test_irs_equals_a_computation_by_hand():
    """While the factor is held fixed, the code moves by 0.1 of at most 1.1: one minus 1/11."""
    factor = np.repeat([0.0, 1.0], 1000)
    code = 2 * factor - 1 + 0.1 * np.tile([-1, 1], 1000)
    assert irs(factor, code, quantile=1.0) == pytest.approx(1 - 0.1 / 1.1)
    with pytest.raises(InputError, match="quantile=0"):
        irs(factor, code, quantile=0)


def test_irs_of_noise_depends_on_the_quantile_and_is_far_from_zero():
    rng = np.random.default_rng(0)
    c, z = rng.integers(0, 5, (4000, 3)), rng.normal(size=(4000, 3))
    assert 0.1 < irs(c, z, quantile=1.0) < irs(c, z, quantile=0.99) < 0.5
