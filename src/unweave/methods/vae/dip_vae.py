"""DIP-VAE: a penalty on the covariance of the codes."""

from __future__ import annotations

from typing import Any, Literal, final

import torch
from torch import Tensor

from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE
from unweave.nn.functional import Normal, covariance, covariance_penalty, mean_kl, weighted_sum


@final
class DIPVAE(VAE):
    """DIP-VAE (Kumar et al., 2018, Eqs. 6 and 7): a VAE whose codes are to have the identity as covariance.

    Minimizes `E[-log p(x | z)] + KL(q(z | x) || p(z))` plus weighted squares of `Cov - I`, where Cov is the covariance
    of the posterior's means (variant i) or of its samples (variant ii).

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> DIPVAE(latent_dim=2, steps=2, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "dip-vae"
    aliases = ("dipvae",)
    paper = "Kumar et al. (2018), Eqs. 6 and 7"

    variant: Literal["i", "ii"] = "ii"
    """Whose covariance: that of the posterior's means (i) or of its samples (ii)."""
    off_diagonal: Lane = 10.0
    """Weight of squared covariances."""
    diagonal: Lane = 10.0
    """Weight of squared deviations of variances from one; the reference study of variant i has 10 off_diagonal."""

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 6 (variant i) or Eq. 7 (variant ii): reconstruction + KL + covariance penalty."""
        q, _, rec = self.reconstruct(net, batch)
        return weighted_sum({"rec": (1, rec), "kl": (1, mean_kl(q)), "dip": (1, self.penalty(q))})

    def penalty(self, q: Normal) -> Tensor:
        """Compute the weighted squared distance of the covariance of the codes to the identity, a scalar."""
        C = covariance(q.mean)  # (d, d)
        if self.variant == "ii":
            C = C + torch.diag_embed(q.logvar.exp().mean(0))
        return covariance_penalty(C, diagonal=self.diagonal, off_diagonal=self.off_diagonal)
