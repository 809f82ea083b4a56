"""The variational autoencoder: one bound for all, to which every paper adds its penalty."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, final

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.methods._autoencoding import Autoencoding
from unweave.methods.base import FigureName
from unweave.nn.functional import Normal, kl_to_standard
from unweave.utils.errors import InputError

LOOKED_AT = 500  # observations, after training
NOTHING = 0.1  # nats of KL below which a posterior is the prior

Terms = dict[str, tuple[Any, Tensor]]
"""weight and value of each term; history shows values, the loss is their weighted sum"""


class VAE(Autoencoding):
    """Abstract: a Gaussian posterior for every observation, whose means are the codes."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        return self.coder(shape, 2 * self.latent_dim)

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n, self.latent_dim, generator=rng, device=rng.device)}

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, part: posterior(net, part).mean, x)

    def figures(self) -> tuple[FigureName, ...]:
        return (*super().figures(), "kl")

    def log_likelihood(self, history: pd.DataFrame) -> float | None:
        """Return the evidence lower bound E[log p(x | z)] - KL, averaged over the rows of `history`."""
        if not {"rec", "kl"} <= {*history}:  # a subclass with a loss of its own
            return None
        return -float((history["rec"] + history["kl"]).mean()) - self.constant()

    def kl_per_code(self, x: Tensor) -> Tensor:
        """Return KL(q(z_j | x) || p(z_j)) in nats for every observation and code, (n, *shape) -> (n, d)."""
        return kl_to_standard(self.posterior_of(x))

    def posterior_of(self, x: Tensor) -> Normal:
        """Means and log-variances of observations, (n, d) each."""
        both = self.apply_network(lambda net, part: torch.cat(posterior(net, part), 1), x)
        return Normal(*both.chunk(2, 1))

    def prior(self, n: int, rng: Generator) -> Tensor:
        """Codes of n observations that do not exist, (n, d)."""
        return torch.randn(n, self.latent_dim, generator=rng)

    @final
    def sample(self, n: int = 1, *, seed: int = 0) -> np.ndarray:
        """n new observations, (n, *shape), decoded from the prior."""
        check_is_fitted(self)
        if n < 1:
            raise InputError(f"n={n}: sample at least one observation")
        with torch.no_grad():
            z = self.prior(n, Generator().manual_seed(seed))
        return self.inverse_transform(z.numpy())


class PenalizedVAE(VAE):
    """Abstract: minimizes E[-log p(x | z)] plus the terms of `penalty`."""

    @abstractmethod
    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        """What the paper adds to the reconstruction; q (n, d) is the posterior, z (n, d) a sample of it."""

    @final
    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        x = batch["x"]
        q = posterior(net, x)
        z = q.sample(batch["eps"])
        rec = self.reconstruction(x, net.decoder(z)).mean()
        return weighed({"rec": (1, rec), **self.penalty(net, q, z, batch)})

    @torch.no_grad()
    def after_training(self, data: FactorData) -> None:
        x = data.render(data.sample(LOOKED_AT, Generator().manual_seed(0))).float().cpu()
        told = float(self.kl_per_code(x).sum(1).mean())
        if told < NOTHING:
            text = f"The codes tell next to nothing of an observation ({told:.2g} nats): the posterior has collapsed"
            smaller = " a smaller beta," if hasattr(self, "beta") else ""
            self.diagnosis_ = [f"{text}. More steps,{smaller} or another lr may help."]


def posterior(net: Any, x: Tensor) -> Normal:
    """q(z | x), (n, d) each."""
    mean, logvar = net.encoder(x).chunk(2, -1)
    return Normal(mean, logvar)


def divergence(q: Normal) -> Tensor:
    """KL(q || N(0, 1)), summed over codes, averaged over the batch."""
    return kl_to_standard(q).sum(-1).mean()


def weighed(terms: Terms) -> dict[str, Tensor]:
    """The loss, and every term as it is."""
    total = sum(weight * value for weight, value in terms.values())
    return {"loss": torch.as_tensor(total)} | {name: value for name, (_, value) in terms.items()}
