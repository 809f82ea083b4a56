"""Estimators of the dimension on manifolds of known dimension."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet, swiss_roll
from unweave.methods.spectral.dimension import gap_dimension, likelihood_dimension
from unweave.methods.spectral.neighbors import (
    find_neighbors,
)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_likelihood_estimate_is_close_to_the_dimension(d):
    x, _ = flat_sheet(2500, d)
    near = find_neighbors(x, 20)
    assert likelihood_dimension(x, near) == pytest.approx(d, abs=0.45)


def test_the_gap_estimate_is_robust_to_noise():
    x = swiss_roll(2000)[0] @ np.linalg.qr(np.random.default_rng(0).normal(size=(10, 3)))[0].T
    x = x + 0.05 * np.random.default_rng(1).normal(size=x.shape)
    near = find_neighbors(x, 30)
    assert gap_dimension(torch.from_numpy(x), near, 6) == 2
