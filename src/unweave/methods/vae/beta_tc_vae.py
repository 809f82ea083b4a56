"""beta-TCVAE: a penalty on the total correlation, estimated from the batch."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any, Literal, final

from torch import Tensor

from unweave.data.core import FactorData
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE
from unweave.nn.functional import (
    mean_kl,
    pairwise_log_densities,
    stratified_log_weights,
    total_correlation,
    uniform_log_weights,
    weighted_sum,
)
from unweave.utils.errors import InputError

ESTIMATORS = {"weighted": uniform_log_weights, "stratified": stratified_log_weights}


@final
class BetaTCVAE(VAE):
    """beta-TCVAE (Chen et al., 2018, Eq. 4): a VAE with a penalty on the total correlation of its codes.

    Minimizes `E[-log p(x | z)] + KL(q(z | x) || p(z)) + (beta - 1) TC(z)`, which is Eq. 4 with alpha = gamma = 1. The
    total correlation is estimated from the batch.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(50, 4))
        >>> BetaTCVAE(latent_dim=2, steps=2, batch_size=16, layers=(8,)).fit_transform(x).shape
        (50, 2)
    """

    name = "beta-tc-vae"
    aliases = ("beta-tcvae",)
    renamed = MappingProxyType({"observed_": "n_observations_"})
    paper = "Chen et al. (2018), Eq. 4 with alpha = gamma = 1"

    beta: Lane = 6.0
    """Weight of the total correlation; 1 is the plain VAE."""
    estimator: Literal["weighted", "stratified"] = "weighted"
    """Estimator of the aggregate posterior: minibatch-weighted (off by a constant of many nats) or stratified."""

    def prepare(self, data: FactorData) -> None:
        points = data.all_points(sys.maxsize)
        self.n_observations_ = len(points) if points is not None else self.steps * self.batch_size
        if self.batch_size < 2:
            text = "batch_size=1: the total correlation is estimated from several observations of a batch"
            raise InputError(f"{text}; expected at least 2")
        if self.estimator == "stratified" and self.batch_size > self.n_observations_:
            text = f"batch_size={self.batch_size} of {self.n_observations_} observations"
            raise InputError(f"{text}: the stratified estimate needs a batch that is not larger than the data")

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 4: reconstruction + KL + (beta - 1) TC."""
        q, z, rec = self.reconstruct(net, batch)
        log_weight = ESTIMATORS[self.estimator](len(z), self.n_observations_, z.device)
        tc = total_correlation(pairwise_log_densities(z, q), log_weight).mean()
        return weighted_sum({"rec": (1, rec), "kl": (1, mean_kl(q)), "tc": (self.beta - 1, tc)})
