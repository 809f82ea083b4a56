"""The beta-VAE."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE
from unweave.nn.functional import mean_kl, weighted_sum


@final
class BetaVAE(VAE):
    """beta-VAE (Higgins et al., 2017, Eq. 4): a VAE whose KL term has the weight beta.

    Minimizes `E[-log p(x | z)] + beta KL(q(z | x) || p(z))`. With beta = 1 it is the plain VAE.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> BetaVAE(latent_dim=2, steps=2, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "beta-vae"
    paper = "Higgins et al. (2017), Eq. 4"
    kl_weight = "beta"

    beta: Lane = 4.0
    """Weight of the KL term."""

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 4: reconstruction + beta KL."""
        q, _, rec = self.reconstruct(net, batch)
        return weighted_sum({"rec": (1, rec), "kl": (self.beta, mean_kl(q))})
