"""A method of your own in one file.

unweave fit examples/my_method.py:Whitening squares-xy
"""

import torch
from torch import Tensor

from unweave import FactorData, Method


class Whitening(Method):
    """PCA whitening: uncorrelated codes of equal variance, which need not be independent."""

    paper = "none"

    samples: int = 2_000
    """Observations to draw where the data are a generator."""

    def learn(self, data: FactorData) -> None:
        """Learn mean and whitening matrix, (latent_dim, features)."""
        x = data.collect(self.samples, torch.Generator().manual_seed(self.seed)).x.flatten(1).double()
        _, s, vt = torch.linalg.svd(x - x.mean(0), full_matrices=False)
        self.mean_ = x.mean(0)
        self.whitening_ = vt[: self.latent_dim] / s[: self.latent_dim, None] * len(x) ** 0.5

    def encode(self, x: Tensor) -> Tensor:
        """Return whitened codes, (n, latent_dim)."""
        codes: Tensor = (x.flatten(1) - self.mean_.to(x)) @ self.whitening_.to(x).T
        return codes
