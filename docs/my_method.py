"""A method of one's own, in one file: `unweave fit docs/my_method.py:Whitening squares-xy`."""

import torch

from unweave import FactorData, Method


class Whitening(Method):
    """PCA whitening: uncorrelated codes of equal variance, which is what you get without independence."""

    paper = "none"

    samples: int = 2_000
    """points to draw where the data are a generator"""

    def learn(self, data: FactorData) -> None:
        x = data.collect(self.samples, torch.Generator().manual_seed(self.seed)).x.flatten(1).double()
        _, s, vt = torch.linalg.svd(x - x.mean(0), full_matrices=False)
        self.mean_ = x.mean(0)
        self.whitening_ = vt[: self.latent_dim] / s[: self.latent_dim, None] * len(x) ** 0.5  # (d, features)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) - self.mean_.to(x)) @ self.whitening_.to(x).T
