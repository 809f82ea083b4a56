"""The beta-VAE, and its capacity-annealed sister."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from unweave.data.core import FactorData
from unweave.methods.neural import Lane
from unweave.methods.vae.base import PenalizedVAE, Terms, divergence
from unweave.nn.functional import Normal
from unweave.utils.errors import InputError


@final
class BetaVAE(PenalizedVAE):
    """beta-VAE: a stronger pull of every posterior towards the prior; beta = 1 is the plain VAE."""

    name = "beta-vae"
    paper = "Higgins et al. (2017), Eq. 4"

    beta: Lane = 4.0
    """weight of the KL term"""

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        return {"kl": (self.beta, divergence(q))}


@final
class AnnealedVAE(PenalizedVAE):
    """Annealed VAE: the KL term is held at a capacity that grows during training."""

    name = "annealed-vae"
    paper = "Burgess et al. (2018), Eq. 8"

    gamma: Lane = 1000.0
    """weight of the distance between the KL term and the capacity"""
    capacity: Lane = 25.0
    """nats that the codes may carry in the end"""
    anneal: Lane = 1 / 3
    """share of the steps over which the capacity grows from 0; 100,000 of 300,000 in the reference study"""

    def prepare(self, data: FactorData) -> None:
        if self.anneal <= 0:
            raise InputError(f"anneal={self.anneal}: expected a share of the steps above 0")

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        kl = divergence(q)
        C = self.capacity * (batch["progress"] / self.anneal).clamp(max=1)
        return {"kl": (0, kl), "gap": (self.gamma, (kl - C).abs())}
