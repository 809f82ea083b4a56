"""Mutual information gap."""

import numpy as np
import pytest

from unweave.metrics import (
    mig,
)


def test_perfect_duplicate_and_mixed_codes(grid):
    assert mig(grid, grid) == pytest.approx(1)
    assert mig(grid, np.column_stack([grid, grid])) == pytest.approx(0, abs=1e-9), "a second code knows as much"
    assert mig(grid, grid[:, [0]] * 4 + grid[:, [1]]) == pytest.approx(1), (
        "one code that knows everything: a known flaw"
    )


def test_the_gap_equals_a_computation_by_hand(grid):
    """The first code tells whether the factor is above 1: one bit of two; the second nothing."""
    codes = np.column_stack([grid[:, 0] > 1, grid[:, 1] > 1]).astype(float)
    assert mig(grid, codes) == pytest.approx(0.5)


def test_codes_are_binned_and_discrete_factors_are_not():
    """Forty values, twenty bins: a code can tell log 20 of log 40; with the factor binned too it would tell all."""
    c = np.column_stack([np.arange(4000) % 40, np.arange(4000) // 40 % 10]).astype(float)
    assert mig(c, c) == pytest.approx((np.log(20) / np.log(40) + 1) / 2, abs=1e-3)


def test_latents_are_not_scrambled():
    """A reshape where a transpose was meant would mix codes and samples: each code must be matched with itself."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 4, (2000, 2)).astype(float)
    assert mig(c, np.column_stack([c[:, 0], rng.normal(size=2000), c[:, 1]])) > 0.95
