"""Explicitness."""

import numpy as np
import pytest

from unweave.metrics import (
    explicitness,
)


def test_linear_codes_score_higher_than_wrapped_ones(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert (
        explicitness(grid, np.eye(4)[grid.astype(int)].reshape(len(grid), -1) + 0.01 * rng.normal(size=(4000, 8)))
        > 0.999
    )
    assert explicitness(grid, np.sin(10 * z)) < 0.9
    assert explicitness(grid, rng.normal(size=grid.shape)) == pytest.approx(0.5, abs=0.05)
