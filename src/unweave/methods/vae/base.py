"""Base class of variational autoencoders: a Gaussian posterior, its samples, and the evidence lower bound."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.methods.base import FigureName
from unweave.methods.mixins import AutoencoderMixin
from unweave.methods.neural import Neural
from unweave.nn.functional import Normal, kl_to_standard
from unweave.utils.errors import InputError

CHECKED_OBSERVATIONS = 500  # after training, for the test below
MIN_NATS = 0.1  # mean KL of an observation, below which the posterior has collapsed to the prior


class VAE(AutoencoderMixin, Neural):
    """Abstract variational autoencoder (Kingma and Welling, 2014): q(z | x) is Gaussian, its means are the codes.

    A subclass writes `loss` from the three parts that `reconstruct` returns.
    """

    kl_weight: ClassVar[str] = ""
    """Setting that weights the KL term, of which a smaller value prevents that the posterior collapses."""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        return self.make_autoencoder(shape, 2 * self.latent_dim, self.latent_dim)

    def sample_noise(self, n: int, rng: Generator) -> dict[str, Tensor]:
        return {"eps": torch.randn(n, self.latent_dim, generator=rng, device=rng.device)}

    def reconstruct(self, net: Any, batch: dict[str, Tensor]) -> tuple[Normal, Tensor, Tensor]:
        """Return the posterior q(z | x), a sample z (n, d) of it, and the mean of -log p(x | z), a scalar."""
        q = posterior(net, batch["x"])
        z = q.sample(batch["eps"])
        return q, z, self.reconstruction_loss(batch["x"], net.decoder(z)).mean()

    def encode(self, x: Tensor) -> Tensor:
        return self.apply_network(lambda net, rows: posterior(net, rows).mean, x)

    def figures(self) -> tuple[FigureName, ...]:
        return (*super().figures(), "kl")

    def log_likelihood(self, history: pd.DataFrame) -> float | None:
        """Return the evidence lower bound E[log p(x | z)] - KL, averaged over the rows of `history`."""
        if not {"rec", "kl"} <= {*history}:  # a subclass with a loss of its own
            return None
        return -float((history["rec"] + history["kl"]).mean()) - self.likelihood_constant()

    def kl_per_code(self, x: Tensor) -> Tensor:
        """Return KL(q(z_j | x) || p(z_j)) in nats for every observation and code, (n, *shape) -> (n, d)."""
        return kl_to_standard(self.encode_posterior(x))

    def encode_posterior(self, x: Tensor) -> Normal:
        """Return means and log-variances of q(z | x), (n, *shape) -> (n, d) each."""
        both = self.apply_network(lambda net, rows: torch.cat(posterior(net, rows), 1), x)
        return Normal(*both.chunk(2, 1))

    def sample_prior(self, n: int, rng: Generator) -> Tensor:
        """Return n samples of the prior p(z), (n, d)."""
        return torch.randn(n, self.latent_dim, generator=rng)

    @final
    def sample(self, n: int = 1, *, seed: int = 0) -> np.ndarray:
        """Return n new observations, (n, *shape), decoded from samples of the prior."""
        check_is_fitted(self)
        if n < 1:
            raise InputError(f"n={n}: sample at least one observation")
        with torch.no_grad():
            z = self.sample_prior(n, Generator().manual_seed(seed))
        return self.inverse_transform(z.numpy())

    @torch.no_grad()
    def after_training(self, data: FactorData) -> None:
        """Diagnose a collapsed posterior."""
        x = data.render(data.sample(CHECKED_OBSERVATIONS, Generator().manual_seed(0))).float().cpu()
        nats = float(self.kl_per_code(x).sum(1).mean())
        if nats < MIN_NATS:
            text = f"The posterior has collapsed: mean KL {nats:.2g} nats per observation"
            smaller = f" a smaller {self.kl_weight}," if self.kl_weight else ""
            notes = [*getattr(self, "diagnosis_", []), f"{text}. Try more steps,{smaller} or another lr."]
            self.diagnosis_: list[str] = notes


def posterior(net: Any, x: Tensor) -> Normal:
    """Return q(z | x): means and log-variances, (n, d) each, the two halves of the encoder's outputs."""
    mean, logvar = net.encoder(x).chunk(2, -1)
    return Normal(mean, logvar)
