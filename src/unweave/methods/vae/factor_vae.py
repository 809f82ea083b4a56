"""FactorVAE: a penalty on the total correlation, estimated by a critic."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, posterior
from unweave.nn.autoencoder import mlp
from unweave.nn.functional import apply_frozen, mean_kl, permute_columns, weighted_sum
from unweave.training.adam import Adam
from unweave.utils.errors import InputError


@final
class FactorVAE(VAE):
    """FactorVAE (Kim and Mnih, 2018, Eq. 2): a VAE with a penalty on the total correlation of its codes.

    Minimizes `E[-log p(x | z)] + KL(q(z | x) || p(z)) + gamma TC(z)`. A critic, trained beside the VAE, estimates the
    total correlation.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> FactorVAE(latent_dim=2, steps=2, layers=(8,), critic=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "factor-vae"
    paper = "Kim and Mnih (2018), Eq. 2 and Algorithm 2"

    gamma: Lane = 10.0
    """Weight of the total correlation."""
    critic_lr: Lane = 1e-4
    """Learning rate of the critic, whose Adam has betas 0.5 and 0.9."""
    critic: tuple[int, ...] = (1000,) * 6
    """Hidden layers of the critic."""
    feature_dim: int = 1
    """Codes of a feature. The total correlation is between features, so codes of a feature may be dependent."""

    def prepare(self, data: FactorData) -> None:
        text = f"latent_dim={self.latent_dim}, feature_dim={self.feature_dim}"
        if self.feature_dim < 1 or self.latent_dim % self.feature_dim:
            raise InputError(f"{text}: codes must be whole features; expected a divisor of latent_dim")
        if 1 < self.feature_dim == self.latent_dim:
            raise InputError(f"{text}: one feature has no total correlation; expected at least two")
        if self.batch_size < 2:
            raise InputError("batch_size=1: codes are shuffled among the observations of a batch; expected at least 2")

    def feature_groups(self) -> list[list[int]]:
        """Return the codes of each feature: `feature_dim` consecutive ones."""
        return np.arange(self.latent_dim).reshape(-1, self.feature_dim).tolist()

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        critic = mlp(self.latent_dim, *self.critic, 1, activation=lambda: nn.LeakyReLU(0.2))
        net.critic = nn.Sequential(critic, nn.Flatten(0))
        return net

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        """Plan two batches: the shuffled codes must not be those that the total correlation is estimated from."""
        return Plan({"x": data.sample(n, rng), "x2": data.sample(n, rng)})

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        shape = n, self.latent_dim
        eps, eps2 = (torch.randn(shape, generator=rng, device=rng.device) for _ in range(2))
        features = n, self.latent_dim // self.feature_dim
        return {"eps": eps, "eps2": eps2, "shuffle": torch.rand(features, generator=rng, device=rng.device)}

    def optimizers(self) -> dict[str, Adam]:
        return super().optimizers() | {"critic.": Adam(self.critic_lr, (0.5, 0.9))}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 2 for the VAE, and the cross-entropy of Algorithm 2, which trains the critic only.

        D(z) = sigmoid(critic(z)) is the probability that z comes from q(z) rather than from the product of its
        marginals. So critic(z) = log D / (1 - D) estimates the total correlation.
        """
        q, z, rec = self.reconstruct(net, batch)
        tc = apply_frozen(net.critic, z).mean()
        z2 = posterior(net, batch["x2"]).sample(batch["eps2"]).detach()
        z2 = permute_columns(z2, batch["shuffle"].argsort(0).repeat_interleave(self.feature_dim, 1))
        joint, marginals = net.critic(torch.cat([z.detach(), z2])).chunk(2)
        critic = 0.5 * (F.softplus(-joint).mean() + F.softplus(marginals).mean())
        return weighted_sum({"rec": (1, rec), "kl": (1, mean_kl(q)), "tc": (self.gamma, tc), "critic": (1, critic)})
