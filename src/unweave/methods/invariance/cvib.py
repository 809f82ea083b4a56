"""CVIB: codes that a decoder needs no nuisance information from, since it is told the nuisances."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from unweave.methods.invariance.base import Informed
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, divergence, posterior, weighed


@final
class CVIB(Informed, VAE):
    """Conditional variational information bottleneck: invariance without an adversary, by a decoder that knows c.

    E[-log p(y | z)] + beta KL + lambda (KL - log p(x | z, c)): the last bracket bounds the information of z on the
    nuisances c. Both divergences are to a standard normal.
    """

    name = "cvib"
    paper = "Moyer, Gao, Brekelmans, Galstyan and Ver Steeg (2018), Sec. 3"

    latent_dim: int = 64
    """codes"""
    beta: Lane = 1e-3
    """weight of the bottleneck"""
    strength: Lane = 0.01
    """lambda, weight of the bound on nuisance information"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = self.coder(shape, 2 * self.latent_dim, latent=self.latent_dim + sum(self.sizes_))
        net.classifier = nn.Linear(self.latent_dim, len(self.levels_))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        q = posterior(net, x)
        z = q.sample(batch["eps"])
        ce = self.cross_entropy(net, z, batch["u"])
        rec = self.reconstruction(x, net.decoder(torch.cat([z, self.one_hot(batch["s"])], 1))).mean()
        kl = divergence(q)
        return weighed({"ce": (1, ce), "kl": (self.beta + self.strength, kl), "rec": (self.strength, rec)})

    def decode(self, z: Tensor) -> Tensor:
        """With all values of the nuisances equally likely."""
        return super().decode(torch.cat([z, self.any_nuisance(z)], 1))
