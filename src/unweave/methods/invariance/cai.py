"""CAI: an adversary that reads nuisances off the codes, whose gradient is turned round."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unweave.methods.base import Method
from unweave.methods.invariance.base import Informed
from unweave.methods.neural import Lane
from unweave.nn.functional import scale_gradient
from unweave.nn.mlp import mlp


@final
class CAI(Informed):
    """Controllable adversarial invariance: codes tell the class, and a discriminator cannot tell the nuisances."""

    name = "cai"
    paper = "Xie, Dai, Du, Hovy and Neubig (2017), Sec. 3; gradient reversal of Ganin et al. (2016)"

    latent_dim: int = 64
    """codes"""
    strength: Lane = 0.03
    """lambda, weight of the discriminator's gradient in the encoder; at 1 colored digits are not learned"""
    discriminator: tuple[int, ...] = (64,)
    """hidden layers of the discriminator"""

    decode = Method.decode  # there is none

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = nn.Module()
        net.encoder = self.judge(shape, self.hidden, out=self.latent_dim)
        net.classifier = nn.Sequential(nn.ReLU(), nn.Linear(self.latent_dim, len(self.levels_)))
        net.discriminators = nn.ModuleList(mlp(self.latent_dim, *self.discriminator, size) for size in self.sizes_)
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        z = net.encoder(batch["x"])
        ce = self.cross_entropy(net, z, batch["u"])
        seen = scale_gradient(z, -self.strength)
        each = [F.cross_entropy(d(seen), batch["s"][:, i]) for i, d in enumerate(net.discriminators)]
        nuisance = torch.stack(each).mean() if each else torch.zeros_like(ce)
        return {"loss": ce + nuisance, "ce": ce, "nuisance": nuisance}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net.encoder(part), x)
