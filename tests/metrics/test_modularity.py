"""Modularity."""

import pytest

from unweave import InputError
from unweave.metrics import (
    modularity,
)


def test_modularity_equals_a_computation_by_hand(grid):
    """One code knows both factors equally: the rest is as large as the best, so it scores zero."""
    assert modularity(grid, grid) == pytest.approx(1)
    assert modularity(grid, grid[:, [0]] * 4 + grid[:, [1]]) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="there is only one"):
        modularity(grid[:, 0], grid)
