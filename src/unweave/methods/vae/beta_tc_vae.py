"""beta-TCVAE: the total correlation of the codes, estimated from the batch itself."""

from __future__ import annotations

import sys
from typing import Any, Literal, final

from torch import Tensor

from unweave.data.core import FactorData
from unweave.methods.neural import Lane
from unweave.methods.vae.base import PenalizedVAE, Terms, divergence
from unweave.nn.functional import (
    Normal,
    pairwise_log_densities,
    stratified_log_weights,
    total_correlation,
    uniform_log_weights,
)
from unweave.utils.errors import InputError

ESTIMATORS = {"weighted": uniform_log_weights, "stratified": stratified_log_weights}


@final
class BetaTCVAE(PenalizedVAE):
    """beta-TCVAE: the plain VAE, and beta - 1 times the total correlation, estimated from the batch."""

    name = "beta-tc-vae"
    aliases = ("beta-tcvae",)
    paper = "Chen et al. (2018), Eq. 4 with alpha = gamma = 1"

    beta: Lane = 6.0
    """weight of the total correlation; 1 is the plain VAE"""
    estimator: Literal["weighted", "stratified"] = "weighted"
    """of the aggregate posterior: minibatch-weighted, off by a constant of many nats, or corrected stratified"""

    def prepare(self, data: FactorData) -> None:
        points = data.all_points(sys.maxsize)
        self.observed_ = len(points) if points is not None else self.steps * self.batch_size
        if self.batch_size < 2:
            raise InputError(
                "batch_size=1: the total correlation is estimated from the others of a batch; expected two"
            )
        if self.estimator == "stratified" and self.batch_size > self.observed_:
            text = f"batch_size={self.batch_size} of {self.observed_} observations"
            raise InputError(f"{text}: the stratified estimate wants batches of no more than there are")

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        log_weight = ESTIMATORS[self.estimator](len(z), self.observed_, z.device)
        tc = total_correlation(pairwise_log_densities(z, q), log_weight).mean()
        return {"kl": (1, divergence(q)), "tc": (self.beta - 1, tc)}
