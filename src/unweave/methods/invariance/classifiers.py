"""Baseline classifiers without invariance: a plain network, and a classifier on the codes of a VAE."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, final

from torch import Tensor, nn

from unweave.methods.invariance.base import LatentClassifierMixin
from unweave.methods.mixins import EncoderMixin
from unweave.methods.neural import Lane, Neural
from unweave.methods.vae.base import VAE
from unweave.nn.functional import mean_kl, weighted_sum


@final
class CNNClassifier(LatentClassifierMixin, EncoderMixin, Neural):
    """Plain classifier: an encoder and a linear layer, trained by cross-entropy ("Baseline" of swap and contrast).

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> CNNClassifier(latent_dim=2, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "cnn-classifier"
    renamed = MappingProxyType({**LatentClassifierMixin.renamed, "likelihood": ""})
    paper = "Swap and contrast (2022), Table 1, 'Baseline'"

    latent_dim: int = 64
    """Number of codes, from which the classes are predicted."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = nn.Module()
        net.encoder = self.make_encoder(shape, self.latent_dim)
        net.classifier = nn.Sequential(nn.ReLU(), nn.Linear(self.latent_dim, len(self.levels_)))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the cross-entropy, E[-log p(y | x)]."""
        ce = self.cross_entropy(net, net.encoder(batch["x"]), batch["u"])
        return {"loss": ce, "ce": ce}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: net.encoder(rows), x)


@final
class VAEClassifier(LatentClassifierMixin, VAE):
    """Classifier on the codes of a beta-VAE, trained together ("beta-VAE" of swap and contrast).

    Minimizes `E[-log p(y | z)] + generative (E[-log p(x | z)] + beta KL(q(z | x) || p(z)))`.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> VAEClassifier(latent_dim=2, steps=2, layers=(8,)).fit(x, y).predict(x).shape
        (50,)
    """

    name = "vae-classifier"
    paper = "Swap and contrast (2022), Table 1, 'beta-VAE'"

    latent_dim: int = 64
    """Number of codes."""
    beta: Lane = 1.0
    """Weight of the KL term, relative to the reconstruction."""
    generative: Lane = 0.01
    """Weight of reconstruction and KL term, which are hundreds of nats where the cross-entropy is a few."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        net.classifier = nn.Linear(self.latent_dim, len(self.levels_))
        return net

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute cross-entropy + generative (reconstruction + beta KL)."""
        q, z, rec = self.reconstruct(net, batch)
        ce, kl = self.cross_entropy(net, z, batch["u"]), mean_kl(q)
        return weighted_sum({"ce": (1, ce), "rec": (self.generative, rec), "kl": (self.generative * self.beta, kl)})
