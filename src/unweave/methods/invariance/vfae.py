"""VFAE: codes whose distribution is the same whatever the nuisance, by a kernel distance between them."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.methods.invariance.base import Informed
from unweave.methods.neural import Lane
from unweave.methods.vae.base import divergence, posterior, weighed
from unweave.nn.functional import Normal
from unweave.nn.mlp import mlp


@final
class VFAE(Informed):
    """Variational fair autoencoder: z1 explains x beside the nuisances s, z2 explains z1 beside the class y.

    The encoder sees the observation alone, where the paper's sees s too: at test time nuisances are new.
    """

    name = "vfae"
    paper = "Louizos, Swersky, Li, Welling and Zemel (2016), Eqs. 4 to 9"

    latent_dim: int = 64
    """z1, the codes"""
    upper_dim: int = 16
    """z2"""
    generative: Lane = 0.01
    """weight of the bound beside the cross-entropy"""
    mmd: Lane = 1.0
    """weight of the distance between the codes of different nuisances"""
    waves: int = 500
    """random features that the distance is computed with"""
    upper: tuple[int, ...] = (64,)
    """hidden layers of the networks between z1 and z2"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        d, e, classes = self.latent_dim, self.upper_dim, len(self.levels_)
        net = self.coder(shape, 2 * d, latent=d + sum(self.sizes_))
        net.classifier = nn.Linear(d, classes)
        net.up, net.down = mlp(d + classes, *self.upper, 2 * e), mlp(e + classes, *self.upper, 2 * d)
        net.register_buffer("slopes", torch.randn(self.waves, d))
        net.register_buffer("phases", 2 * math.pi * torch.rand(self.waves))
        return net

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        sizes = {"eps": self.latent_dim, "eps2": self.upper_dim}
        return {name: torch.randn(n, d, generator=rng, device=rng.device) for name, d in sizes.items()}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, s = batch["x"], self.one_hot(batch["s"])
        y = (batch["u"][:, None] == torch.arange(len(self.levels_), device=x.device)).to(x.dtype)
        q1 = bounded(posterior(net, x))
        z1 = q1.sample(batch["eps"])
        q2 = bounded(Normal(*net.up(torch.cat([z1, y], 1)).chunk(2, 1)))
        z2 = q2.sample(batch["eps2"])
        p1 = bounded(Normal(*net.down(torch.cat([z2, y], 1)).chunk(2, 1)))
        rec = self.reconstruction(x, net.decoder(torch.cat([z1, s], 1))).mean()
        # Eq. 4: z2 was drawn from this z1, and is to explain this one; KL(q1 || p1) would ask it to explain any other.
        bound = rec + divergence(q2) + (q1.log_prob(z1) - p1.log_prob(z1)).sum(1).mean()
        apart = discrepancy(waves(z1, net.slopes, net.phases), s)
        ce = self.cross_entropy(net, z1, batch["u"])
        return weighed({"ce": (1, ce), "bound": (self.generative, bound), "mmd": (self.mmd, apart)})

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: posterior(net, part).mean, x)

    def decode(self, z: Tensor) -> Tensor:
        """With all values of the nuisances equally likely."""
        return super().decode(torch.cat([z, self.any_nuisance(z)], 1))


def bounded(q: Normal) -> Normal:
    """With log-variances between -6 and 6: a prior that is learned could otherwise become a point."""
    return Normal(q.mean, 6 * torch.tanh(q.logvar / 6))


def waves(z: Tensor, slopes: Tensor, phases: Tensor) -> Tensor:
    """Random features of a Gaussian kernel whose width is the root of the dimension, (n, d) -> (n, waves); Eq. 9."""
    return math.sqrt(2 / len(slopes)) * torch.cos(F.linear(z, slopes) / math.sqrt(z.shape[1]) + phases)


def discrepancy(features: Tensor, s: Tensor) -> Tensor:
    """Squared distance of the mean features of each nuisance value to those of all, over the values in the batch."""
    count = s.sum(0)  # (values,)
    own = s.T @ features / count.clamp(min=1)[:, None]
    there = (count > 0).to(features.dtype)
    return ((own - features.mean(0)).square().sum(1) * there).sum() / there.sum().clamp(min=1)
