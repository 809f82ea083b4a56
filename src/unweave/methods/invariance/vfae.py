"""VFAE: codes with the same distribution for all nuisance values, by their maximum mean discrepancy."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, final

import torch
from torch import Generator, Tensor, nn

from unweave.methods.invariance.base import NuisanceClassifierMixin
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.methods.vae.base import posterior
from unweave.nn.autoencoder import mlp
from unweave.nn.functional import (
    Normal,
    mean_discrepancy,
    mean_kl,
    one_hot,
    random_fourier_features,
    weighted_sum,
)


@final
class VFAE(NuisanceClassifierMixin, AutoencoderMixin, Neural):
    """Variational fair autoencoder (Louizos et al., 2016, Eqs. 4 to 9).

    z1 explains x together with the nuisances s; z2 explains z1 together with the class y. Minimizes
    `E[-log p(y | z1)] + generative bound + mmd MMD(z1 for different s)`. The paper's encoder takes s too; ours does
    not, since nuisances are new at test time.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> VFAE(latent_dim=2, upper_dim=1, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "vfae"
    renamed = MappingProxyType({**NuisanceClassifierMixin.renamed, "waves": "random_features"})
    paper = "Louizos, Swersky, Li, Welling and Zemel (2016), Eqs. 4 to 9"

    latent_dim: int = 64
    """Number of codes, z1."""
    upper_dim: int = 16
    """Dimension of z2."""
    generative: Lane = 0.01
    """Weight of the evidence bound, relative to the cross-entropy."""
    mmd: Lane = 1.0
    """Weight of the maximum mean discrepancy between the codes of different nuisance values."""
    random_features: int = 500
    """Random Fourier features that approximate the kernel of the discrepancy."""
    upper: tuple[int, ...] = (64,)
    """Hidden layers of the networks between z1 and z2."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        d, e, classes = self.latent_dim, self.upper_dim, len(self.levels_)
        net = self.make_autoencoder(shape, 2 * d, d + sum(self.nuisance_sizes_))
        net.classifier = nn.Linear(d, classes)
        net.up, net.down = mlp(d + classes, *self.upper, 2 * e), mlp(e + classes, *self.upper, 2 * d)
        net.register_buffer("slopes", torch.randn(self.random_features, d))
        net.register_buffer("phases", 2 * math.pi * torch.rand(self.random_features))
        return net

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        sizes = {"eps": self.latent_dim, "eps2": self.upper_dim}
        return {name: torch.randn(n, d, generator=rng, device=rng.device) for name, d in sizes.items()}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute cross-entropy + generative (bound of Eq. 4) + mmd (MMD of Eq. 9)."""
        x, s = batch["x"], self.one_hot(batch["s"])
        y = one_hot(batch["u"], len(self.levels_), x.dtype)
        q1 = bound_variance(posterior(net, x))
        z1 = q1.sample(batch["eps"])
        q2 = bound_variance(Normal(*net.up(torch.cat([z1, y], 1)).chunk(2, 1)))
        z2 = q2.sample(batch["eps2"])
        p1 = bound_variance(Normal(*net.down(torch.cat([z2, y], 1)).chunk(2, 1)))
        rec = self.reconstruction_loss(x, net.decoder(torch.cat([z1, s], 1))).mean()
        # Eq. 4: z2 was drawn given this z1 and must explain it; KL(q1 || p1) would ask it to explain other samples.
        bound = rec + mean_kl(q2) + (q1.log_prob(z1) - p1.log_prob(z1)).sum(1).mean()
        mmd = mean_discrepancy(random_fourier_features(z1, net.slopes, net.phases), s)
        ce = self.cross_entropy(net, z1, batch["u"])
        return weighted_sum({"ce": (1, ce), "bound": (self.generative, bound), "mmd": (self.mmd, mmd)})

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: posterior(net, rows).mean, x)

    def decode(self, z: Tensor) -> Tensor:
        """Return observations of codes, with all nuisance values equally probable."""
        return super().decode(torch.cat([z, self.uniform_nuisances(z)], 1))


def bound_variance(q: Normal) -> Normal:
    """Return the Gaussian with log-variances squashed to [-6, 6], since a learned prior could collapse to a point."""
    return Normal(q.mean, 6 * torch.tanh(q.logvar / 6))
