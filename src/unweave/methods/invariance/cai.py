"""CAI: a discriminator predicts nuisances from the codes, and its gradient is reversed in the encoder."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unweave.methods.invariance.base import NuisanceClassifierMixin
from unweave.methods.mixins import EncoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.nn.autoencoder import mlp
from unweave.nn.functional import scale_gradient


@final
class CAI(NuisanceClassifierMixin, EncoderMixin, Neural):
    """Controllable adversarial invariance (Xie et al., 2017, Sec. 3), by gradient reversal (Ganin et al., 2016).

    The encoder minimizes `-log p(y | z) + strength log p(s | z)`: codes predict the class y, and a discriminator cannot
    predict the nuisances s from them.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> CAI(latent_dim=2, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "cai"
    renamed = MappingProxyType({**NuisanceClassifierMixin.renamed, "likelihood": ""})
    paper = "Xie, Dai, Du, Hovy and Neubig (2017), Sec. 3; gradient reversal of Ganin et al. (2016)"

    latent_dim: int = 64
    """Number of codes."""
    strength: Lane = 0.03
    """lambda, weight of the reversed gradient of the discriminators; with 1, colored digits are not learned."""
    discriminator: tuple[int, ...] = (64,)
    """Hidden layers of the discriminators."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = nn.Module()
        net.encoder = self.make_encoder(shape, self.latent_dim)
        net.classifier = nn.Sequential(nn.ReLU(), nn.Linear(self.latent_dim, len(self.levels_)))
        heads = (mlp(self.latent_dim, *self.discriminator, size) for size in self.nuisance_sizes_)
        net.discriminators = nn.ModuleList(heads)
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the cross-entropies of class and nuisances; the encoder gets the reversed gradient of the latter."""
        z = net.encoder(batch["x"])
        ce = self.cross_entropy(net, z, batch["u"])
        reversed_z = scale_gradient(z, -self.strength)
        losses = [F.cross_entropy(d(reversed_z), batch["s"][:, i]) for i, d in enumerate(net.discriminators)]
        nuisance = torch.stack(losses).mean() if losses else torch.zeros_like(ce)
        return {"loss": ce + nuisance, "ce": ce, "nuisance": nuisance}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: net.encoder(rows), x)
