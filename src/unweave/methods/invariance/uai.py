"""UAI: reconstruction and prediction compete for two parts of the codes; needs no nuisance labels."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Generator, Tensor, nn

from unweave.methods.invariance.base import LatentClassifierMixin
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.nn.autoencoder import mlp
from unweave.nn.functional import scale_gradient
from unweave.utils.errors import InputError


@final
class UAI(LatentClassifierMixin, AutoencoderMixin, Neural):
    """Unsupervised adversarial invariance (Jaiswal et al., 2018, Eqs. 1 to 4).

    The codes have two parts. e1, the first half, predicts the class; e2 and a noisy e1 reconstruct the observation;
    neither part can be predicted from the other. Codes lie between -1 and 1.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> UAI(latent_dim=2, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "uai"
    paper = "Jaiswal, Wu, Abd-Almageed and Natarajan (2018), Eqs. 1 to 4"

    latent_dim: int = 64
    """Number of codes of both parts together."""
    alpha: Lane = 100.0
    """Weight of the cross-entropy."""
    beta: Lane = 0.1
    """Weight of the reconstruction."""
    gamma: Lane = 1.0
    """Weight of the reversed gradient of the disentanglers in the encoder."""
    dropout: float = 0.4
    """Share of e1 that is hidden from the decoder."""
    disentanglers: tuple[int, ...] = (64,)
    """Hidden layers of the two networks that predict one part from the other."""

    def prepare(self, data: Any) -> None:
        super().prepare(data)
        if self.latent_dim < 2 or not 0 <= self.dropout < 1:
            text = f"latent_dim={self.latent_dim}, dropout={self.dropout}"
            raise InputError(f"{text}: expected two codes at least, one for each part, and a share below 1")

    def split_sizes(self) -> tuple[int, int]:
        """Return the numbers of codes of e1 and e2."""
        return self.latent_dim - self.latent_dim // 2, self.latent_dim // 2

    def select_predictive(self, z: Tensor) -> Tensor:
        return z[:, : self.split_sizes()[0]]

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        a, b = self.split_sizes()
        net = self.make_autoencoder(shape, self.latent_dim, self.latent_dim)
        net.encoder = nn.Sequential(net.encoder, nn.Tanh())
        net.classifier = nn.Linear(a, len(self.levels_))
        net.guess = nn.ModuleList([mlp(a, *self.disentanglers, b), mlp(b, *self.disentanglers, a)])
        return net

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"drop": torch.rand(n, self.split_sizes()[0], generator=rng, device=rng.device)}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eqs. 1 to 4: alpha cross-entropy + beta reconstruction + disentanglers, reversed for the encoder."""
        x = batch["x"]
        e = net.encoder(x)
        e1, e2 = e.split(self.split_sizes(), 1)
        ce = self.cross_entropy(net, e, batch["u"])
        noisy_e1 = e1 * (batch["drop"] >= self.dropout) / (1 - self.dropout)
        rec = self.reconstruction_loss(x, net.decoder(torch.cat([noisy_e1, e2], 1))).mean()
        guess_2, guess_1 = (net.guess[i](scale_gradient(v, -self.gamma)) for i, v in enumerate((e1, e2)))
        guess = (guess_2 - e2.detach()).square().mean() + (guess_1 - e1.detach()).square().mean()
        return {"loss": self.alpha * ce + self.beta * rec + guess, "ce": ce, "rec": rec, "guess": guess}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: net.encoder(rows), x)
