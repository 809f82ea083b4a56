"""CVIB: a decoder conditioned on the nuisances, so that the codes need no information about them."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from unweave.methods.invariance.base import NuisanceClassifierMixin
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, posterior
from unweave.nn.functional import mean_kl, weighted_sum


@final
class CVIB(NuisanceClassifierMixin, VAE):
    """Conditional variational information bottleneck (Moyer et al., 2018, Sec. 3): invariance without an adversary.

    Minimizes `E[-log p(y | z)] + beta KL + lambda (KL + E[-log p(x | z, c)])`, where KL is KL(q(z | x) || N(0, I)). The
    last term bounds the information of z about the nuisances c.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> CVIB(latent_dim=2, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "cvib"
    paper = "Moyer, Gao, Brekelmans, Galstyan and Ver Steeg (2018), Sec. 3"

    latent_dim: int = 64
    """Number of codes."""
    beta: Lane = 1e-3
    """Weight of the bottleneck."""
    strength: Lane = 0.01
    """lambda, weight of the bound on nuisance information."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        decoder_inputs = self.latent_dim + sum(self.nuisance_sizes_)
        net = self.make_autoencoder(shape, 2 * self.latent_dim, decoder_inputs)
        net.classifier = nn.Linear(self.latent_dim, len(self.levels_))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute cross-entropy + (beta + lambda) KL + lambda reconstruction."""
        x = batch["x"]
        q = posterior(net, x)
        z = q.sample(batch["eps"])
        ce, kl = self.cross_entropy(net, z, batch["u"]), mean_kl(q)
        rec = self.reconstruction_loss(x, net.decoder(torch.cat([z, self.one_hot(batch["s"])], 1))).mean()
        return weighted_sum({"ce": (1, ce), "kl": (self.beta + self.strength, kl), "rec": (self.strength, rec)})

    def decode(self, z: Tensor) -> Tensor:
        """Return observations of codes, with all nuisance values equally probable."""
        return super().decode(torch.cat([z, self.uniform_nuisances(z)], 1))
