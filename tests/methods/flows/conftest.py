"""Fitted flows that several test modules use."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from unweave.datasets import GaussianMixture
from unweave.methods import GIN


@pytest.fixture(scope="package")
def fitted():
    """A GIN on the paper's data, in small."""
    data = GaussianMixture(points=4_000, noise_dims=3, clusters=5, seed=1).load()
    method = GIN(steps=250, batch_size=500, latent_dim="all").fit(data)
    x, c = data.collect(4_000, torch.Generator().manual_seed(0))
    return method, data, x.numpy(), c


@pytest.fixture(scope="package")
def digits():
    """A GIN on small images."""
    x, u = load_digits(return_X_y=True)
    images = (x / 16).reshape(-1, 8, 8).astype(np.float32)
    return GIN(steps=30, batch_size=100, conv_blocks=1, conv_widths=(4, 6), width=20).fit(images, u), images, u
