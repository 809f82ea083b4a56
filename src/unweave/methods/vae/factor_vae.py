"""FactorVAE: a critic estimates the total correlation of the codes."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods.neural import Lane
from unweave.methods.vae.base import PenalizedVAE, Terms, divergence, posterior
from unweave.nn.functional import Normal, apply_frozen, permute_columns
from unweave.nn.mlp import mlp
from unweave.training.adam import Adam
from unweave.utils.errors import InputError


@final
class FactorVAE(PenalizedVAE):
    """FactorVAE: the plain VAE, and a penalty on the total correlation, which a critic learns to estimate."""

    name = "factor-vae"
    paper = "Kim and Mnih (2018), Eq. 2 and Algorithm 2"

    gamma: Lane = 10.0
    """weight of the total correlation"""
    critic_lr: Lane = 1e-4
    """the critic's own learning rate; its Adam has betas 0.5 and 0.9"""
    critic: tuple[int, ...] = (1000,) * 6
    """hidden layers of the critic"""
    feature_dim: int = 1
    """codes of a feature: the total correlation is that of features, so codes of one may depend on each other"""

    def prepare(self, data: FactorData) -> None:
        text = f"latent_dim={self.latent_dim}, feature_dim={self.feature_dim}"
        if self.feature_dim < 1 or self.latent_dim % self.feature_dim:
            raise InputError(f"{text}: codes must be whole features; expected a divisor of latent_dim")
        if 1 < self.feature_dim == self.latent_dim:
            raise InputError(f"{text}: one feature has no total correlation; expected at least two")
        if self.batch_size < 2:
            raise InputError(
                "batch_size=1: codes are shuffled among the observations of a batch; expected two at least"
            )

    def feature_groups(self) -> list[list[int]]:
        """Return the codes of each feature: `feature_dim` consecutive ones."""
        return np.arange(self.latent_dim).reshape(-1, self.feature_dim).tolist()

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        critic = mlp(self.latent_dim, *self.critic, 1, activation=lambda: nn.LeakyReLU(0.2))
        net.critic = nn.Sequential(critic, nn.Flatten(0))
        return net

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        """Two batches: shuffled codes must not be those that the total correlation is estimated on."""
        return Plan({"x": data.sample(n, rng), "x2": data.sample(n, rng)})

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        shape = n, self.latent_dim
        eps, eps2 = (torch.randn(shape, generator=rng, device=rng.device) for _ in range(2))
        features = n, self.latent_dim // self.feature_dim
        return {"eps": eps, "eps2": eps2, "shuffle": torch.rand(features, generator=rng, device=rng.device)}

    def optimizers(self) -> dict[str, Adam]:
        return super().optimizers() | {"critic.": Adam(self.critic_lr, (0.5, 0.9))}

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        # D(z) = sigmoid(critic(z)) is the critic's belief that z comes from q(z) and not from its marginals, so that
        # log D / (1 - D) = critic(z) estimates the total correlation.
        z2 = posterior(net, batch["x2"]).sample(batch["eps2"]).detach()
        z2 = permute_columns(z2, batch["shuffle"].argsort(0).repeat_interleave(self.feature_dim, 1))
        tc = apply_frozen(net.critic, z).mean()
        belief = 0.5 * (F.softplus(-net.critic(z.detach())).mean() + F.softplus(net.critic(z2)).mean())
        return {"kl": (1, divergence(q)), "tc": (self.gamma, tc), "critic": (1, belief)}
