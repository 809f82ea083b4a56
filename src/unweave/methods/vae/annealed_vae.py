"""The capacity-annealed VAE."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from unweave.data.core import FactorData
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE
from unweave.nn.functional import mean_kl, weighted_sum
from unweave.utils.errors import InputError


@final
class AnnealedVAE(VAE):
    """Annealed VAE (Burgess et al., 2018, Eq. 8): the KL term follows a capacity that grows during training.

    Minimizes `E[-log p(x | z)] + gamma |KL(q(z | x) || p(z)) - C|`, where C grows linearly from 0 to `capacity`.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> AnnealedVAE(latent_dim=2, steps=2, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "annealed-vae"
    paper = "Burgess et al. (2018), Eq. 8"

    gamma: Lane = 1000.0
    """Weight of the distance between the KL term and the capacity."""
    capacity: Lane = 25.0
    """Final capacity of the codes, in nats."""
    anneal: Lane = 1 / 3
    """Share of the steps over which the capacity grows; 100,000 of 300,000 in the reference study."""

    def prepare(self, data: FactorData) -> None:
        if self.anneal <= 0:
            raise InputError(f"anneal={self.anneal}: expected a share of the steps above 0")

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 8: reconstruction + gamma |KL - C|."""
        q, _, rec = self.reconstruct(net, batch)
        kl = mean_kl(q)
        C = self.capacity * (batch["progress"] / self.anneal).clamp(max=1)
        return weighted_sum({"rec": (1, rec), "kl": (0, kl), "gap": (self.gamma, (kl - C).abs())})
