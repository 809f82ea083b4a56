"""DIP-VAE: the covariance of the codes is pulled towards the identity."""

from __future__ import annotations

from typing import Any, Literal, final

import torch
from torch import Tensor

from unweave.methods.neural import Lane
from unweave.methods.vae.base import PenalizedVAE, Terms, divergence
from unweave.nn.functional import Normal, covariance, covariance_penalty


@final
class DIPVAE(PenalizedVAE):
    """DIP-VAE: codes that are uncorrelated with variance one; of the means alone (i) or of the samples (ii)."""

    name = "dip-vae"
    aliases = ("dipvae",)
    paper = "Kumar et al. (2018), Eqs. 6 and 7"

    variant: Literal["i", "ii"] = "ii"
    """i: the covariance of the posterior's means; ii: that of its samples"""
    off_diagonal: Lane = 10.0
    """weight of squared covariances"""
    diagonal: Lane = 10.0
    """weight of squared deviations of variances from one; ten times off_diagonal in the reference study of variant i"""

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        C = covariance(q.mean)  # (d, d)
        if self.variant == "ii":
            C = C + torch.diag_embed(q.logvar.exp().mean(0))
        dip = covariance_penalty(C, diagonal=self.diagonal, off_diagonal=self.off_diagonal)
        return {"kl": (1, divergence(q)), "dip": (1, dip)}
