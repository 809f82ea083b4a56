"""Factors that several tests of metrics share."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def z():
    return np.random.default_rng(0).uniform(-1, 1, (4000, 2))


@pytest.fixture(scope="session")
def grid():
    """Two independent discrete factors of four values each, every combination 250 times."""
    axes = np.meshgrid(np.arange(4), np.arange(4), indexing="ij")
    return np.stack(axes, -1).reshape(-1, 2).repeat(250, 0).astype(float)
