"""UAI: reconstruction and prediction compete for what goes into which part of the codes; no nuisance is named."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Generator, Tensor, nn

from unweave.methods.invariance.base import Classifying
from unweave.methods.neural import Lane
from unweave.nn.functional import scale_gradient
from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError


@final
class UAI(Classifying):
    """Unsupervised adversarial invariance: e1 predicts, e2 and a noisy e1 reconstruct, neither tells of the other.

    Codes lie between -1 and 1; the first half is e1.
    """

    name = "uai"
    paper = "Jaiswal, Wu, Abd-Almageed and Natarajan (2018), Eqs. 1 to 4"

    latent_dim: int = 64
    """codes of both parts together"""
    alpha: Lane = 100.0
    """weight of the prediction"""
    beta: Lane = 0.1
    """weight of the reconstruction"""
    gamma: Lane = 1.0
    """weight of the disentanglers' gradient, turned round, in the encoder"""
    dropout: float = 0.4
    """share of e1 that the decoder does not get to see"""
    disentanglers: tuple[int, ...] = (64,)
    """hidden layers of the two networks that guess one part from the other"""

    def prepare(self, data: Any) -> None:
        super().prepare(data)
        if self.latent_dim < 2 or not 0 <= self.dropout < 1:
            text = f"latent_dim={self.latent_dim}, dropout={self.dropout}"
            raise InputError(f"{text}: expected two codes at least, one for each part, and a share below 1")

    def parts(self) -> tuple[int, int]:
        """How many codes e1 and e2 have."""
        return self.latent_dim - self.latent_dim // 2, self.latent_dim // 2

    def predictive(self, z: Tensor) -> Tensor:
        return z[:, : self.parts()[0]]

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        a, b = self.parts()
        net = self.coder(shape, self.latent_dim)
        net.encoder = nn.Sequential(net.encoder, nn.Tanh())
        net.classifier = nn.Linear(a, len(self.levels_))
        net.guess = nn.ModuleList([mlp(a, *self.disentanglers, b), mlp(b, *self.disentanglers, a)])
        return net

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"drop": torch.rand(n, self.parts()[0], generator=rng, device=rng.device)}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        e = net.encoder(x)
        e1, e2 = e.split(self.parts(), 1)
        ce = self.cross_entropy(net, e, batch["u"])
        noisy = e1 * (batch["drop"] >= self.dropout) / (1 - self.dropout)
        rec = self.reconstruction(x, net.decoder(torch.cat([noisy, e2], 1))).mean()
        first, second = (net.guess[i](scale_gradient(v, -self.gamma)) for i, v in enumerate((e1, e2)))
        guess = (first - e2.detach()).square().mean() + (second - e1.detach()).square().mean()
        return {"loss": self.alpha * ce + self.beta * rec + guess, "ce": ce, "rec": rec, "guess": guess}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net.encoder(part), x)
