"""Adaptive VAEs: pairs of observations share the codes that differ least."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, final

import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.data.supervision import Plan, paired, pairs
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, divergence, posterior, weighed
from unweave.nn.functional import Normal, kl
from unweave.utils.errors import InputError


class AdaVAE(VAE):
    """Abstract: both posteriors of a pair are replaced by a common one in the codes that seem to be shared."""

    paper = "Locatello et al. (2020), Sec. 4"
    needs = "pairs"

    beta: Lane = 1.0
    """weight of the KL term"""
    changed: int | Literal["uniform"] = "uniform"
    """factors that differ in a pair: so many, or a number drawn for each pair; data with one factor are paired by it"""
    distance: Literal["one-sided", "symmetric"] = "one-sided"
    """between the codes of a pair: KL(q || q'), as in the paper, or the mean of both directions"""

    @abstractmethod
    def common(self, q: Normal, q2: Normal) -> Normal:
        """One posterior in the place of two."""

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        count = len(data.factors)
        if count == 0 and not paired(data):
            text = f"{self.name} learns from pairs that share factors, and these data have none"
            raise InputError(f"{text}: pass y, or name columns by --data.factors")
        # A single label says what belongs together: a pair shares it.
        return pairs(data, n, rng, k=0 if count == 1 else self.changed, redraw="any", alone="self")

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return super().sample_noise(n, rng) | {"eps2": super().sample_noise(n, rng)["eps"]}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x, x2 = batch["x"], batch["x2"]
        q, q2 = averaged(posterior(net, x), posterior(net, x2), self)
        rec = self.reconstruction(x, net.decoder(q.sample(batch["eps"])))
        rec2 = self.reconstruction(x2, net.decoder(q2.sample(batch["eps2"])))
        both = 0.5 * (divergence(q) + divergence(q2))
        return weighed({"rec": (1, 0.5 * (rec + rec2).mean()), "kl": (self.beta, both)})


@final
class AdaGVAE(AdaVAE):
    """Ada-GVAE: from pairs that share some factors; shared codes get the mean of both means and of both variances."""

    name = "ada-gvae"

    def common(self, q: Normal, q2: Normal) -> Normal:
        return Normal((q.mean + q2.mean) / 2, ((q.logvar.exp() + q2.logvar.exp()) / 2).log())


@final
class AdaMLVAE(AdaVAE):
    """Ada-ML-VAE: from pairs that share some factors; shared codes get the product of both Gaussians."""

    name = "ada-ml-vae"
    aliases = ("ada-mlvae",)

    def common(self, q: Normal, q2: Normal) -> Normal:
        # The published code takes twice this variance: the normalized product of the square roots.
        logvar = -torch.logaddexp(-q.logvar, -q2.logvar)
        return Normal(q.mean * (logvar - q.logvar).exp() + q2.mean * (logvar - q2.logvar).exp(), logvar)


def averaged(q: Normal, q2: Normal, method: AdaVAE) -> tuple[Normal, Normal]:
    """Both posteriors with the common one where their distance is below half-way between its extremes; Eq. 5 to 7."""
    delta = kl(q, q2)  # (n, d)
    if method.distance == "symmetric":
        delta = (delta + kl(q2, q)) / 2
    threshold = (delta.amax(-1, keepdim=True) + delta.amin(-1, keepdim=True)) / 2
    shared = delta < threshold
    both = method.common(q, q2)
    a, b = (Normal(*(torch.where(shared, new, old) for new, old in zip(both, p, strict=True))) for p in (q, q2))
    return a, b
