"""Adaptive VAEs: pairs of observations share the codes that differ least."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.data.supervision import Plan, find_pair_table, pairs
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE, posterior
from unweave.nn.functional import Normal, kl, mean_kl, weighted_sum
from unweave.utils.errors import InputError

if TYPE_CHECKING:  # see `unweave.methods.mixins`: mixins stand beside `VAE`, not above it
    Base = VAE
else:
    Base = object


@dataclass(kw_only=True, eq=False, repr=False)
class AdaptiveMixin(Base):
    """A VAE on pairs of observations that share some factors (Locatello et al., 2020, Sec. 4); mix into `VAE`.

    Minimizes `E[-log p(x | z)] + beta KL(q(z | x) || p(z))`, averaged over both observations. Their posteriors are
    replaced by a common one in the codes that seem to be shared.
    """

    paper = "Locatello et al. (2020), Sec. 4"
    kl_weight = "beta"
    needs = "pairs"

    beta: Lane = 1.0
    """Weight of the KL term."""
    changed: int | Literal["uniform"] = "uniform"
    """Factors that differ in a pair: a number, or drawn for each pair. Data with one factor are paired by it."""
    distance: Literal["one-sided", "symmetric"] = "one-sided"
    """Distance between the codes of a pair: KL(q || q'), as in the paper, or the mean of both directions."""

    @abstractmethod
    def merge(self, q: Normal, q2: Normal) -> Normal:
        """Return the common posterior that replaces two, (n, d) each."""

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        count = len(data.factors)
        if count == 0 and not find_pair_table(data):
            text = f"{self.name} learns from pairs that share factors, and these data have none"
            raise InputError(f"{text}: pass y, or name columns by --data.factors")
        # A single label says what belongs together: a pair shares it.
        return pairs(data, n, rng, k=0 if count == 1 else self.changed, redraw="any", no_partner="self")

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return super().sample_noise(n, rng) | {"eps2": super().sample_noise(n, rng)["eps"]}

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute reconstruction + beta KL of both observations, with merged posteriors."""
        x = torch.cat([batch["x"], batch["x2"]])  # one pass through the networks for both, (2 n, ...)
        first, second = (Normal(*half) for half in zip(*(v.chunk(2) for v in posterior(net, x)), strict=True))
        q, q2 = self.merge_shared(first, second)
        z = torch.cat([q.sample(batch["eps"]), q2.sample(batch["eps2"])])
        rec = self.reconstruction_loss(x, net.decoder(z)).mean()
        return weighted_sum({"rec": (1, rec), "kl": (self.beta, 0.5 * (mean_kl(q) + mean_kl(q2)))})

    def merge_shared(self, q: Normal, q2: Normal) -> tuple[Normal, Normal]:
        """Return both posteriors with the common one in shared codes, Eqs. 5 to 7.

        A code is shared if the distance of its two posteriors is below the midpoint between the smallest and the
        largest distance of all codes of the pair.
        """
        delta = kl(q, q2)  # (n, d)
        if self.distance == "symmetric":
            delta = (delta + kl(q2, q)) / 2
        threshold = (delta.amax(-1, keepdim=True) + delta.amin(-1, keepdim=True)) / 2
        shared, merged = delta < threshold, self.merge(q, q2)
        a, b = (Normal(*(torch.where(shared, new, old) for new, old in zip(merged, p, strict=True))) for p in (q, q2))
        return a, b


@final
class AdaGVAE(AdaptiveMixin, VAE):
    """Ada-GVAE (Locatello et al., 2020): shared codes of a pair get the averages of both means and variances.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> AdaGVAE(latent_dim=2, steps=2, layers=(8,)).fit(x, y).transform(x).shape
        (50, 2)
    """

    name = "ada-gvae"

    def merge(self, q: Normal, q2: Normal) -> Normal:
        return Normal((q.mean + q2.mean) / 2, ((q.logvar.exp() + q2.logvar.exp()) / 2).log())


@final
class AdaMLVAE(AdaptiveMixin, VAE):
    """Ada-ML-VAE (Locatello et al., 2020): shared codes of a pair get the product of both Gaussians.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> AdaMLVAE(latent_dim=2, steps=2, layers=(8,)).fit(x, y).transform(x).shape
        (50, 2)
    """

    name = "ada-ml-vae"
    aliases = ("ada-mlvae",)

    def merge(self, q: Normal, q2: Normal) -> Normal:
        # The published code takes twice this variance: the normalized product of the square roots.
        logvar = -torch.logaddexp(-q.logvar, -q2.logvar)
        return Normal(q.mean * (logvar - q.logvar).exp() + q2.mean * (logvar - q2.logvar).exp(), logvar)
