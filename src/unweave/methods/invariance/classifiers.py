"""Classifiers that do nothing about nuisances, to compare with: a plain network, and one that reconstructs too."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor, nn

from unweave.methods.base import Method
from unweave.methods.invariance.base import Classifying
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, divergence, posterior, weighed


@final
class CNNClassifier(Classifying):
    """Plain classifier: the encoder of the others and a linear layer, trained by cross-entropy."""

    name = "cnn-classifier"
    paper = "Swap and contrast (2022), Table 1, 'Baseline'"

    latent_dim: int = 64
    """numbers that the classes are read off"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = nn.Module()
        net.encoder = self.judge(shape, self.hidden, out=self.latent_dim)
        net.classifier = nn.Sequential(nn.ReLU(), nn.Linear(self.latent_dim, len(self.levels_)))
        return net

    decode = Method.decode  # there is none

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        ce = self.cross_entropy(net, net.encoder(batch["x"]), batch["u"])
        return {"loss": ce, "ce": ce}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: net.encoder(part), x)


@final
class VAEClassifier(Classifying, VAE):
    """Classifier on the codes of a beta-VAE, both trained together."""

    name = "vae-classifier"
    paper = "Swap and contrast (2022), Table 1, 'beta-VAE'"

    latent_dim: int = 64
    """codes"""
    beta: Lane = 1.0
    """weight of the KL term beside the reconstruction"""
    generative: Lane = 0.01
    """weight of reconstruction and KL term beside the cross-entropy, which is a few nats where they are hundreds"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        net.classifier = nn.Linear(self.latent_dim, len(self.levels_))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        q = posterior(net, x)
        z = q.sample(batch["eps"])
        ce = self.cross_entropy(net, z, batch["u"])
        rec = self.reconstruction(x, net.decoder(z)).mean()
        kl = divergence(q)
        return weighed({"ce": (1, ce), "rec": (self.generative, rec), "kl": (self.generative * self.beta, kl)})
