"""iVAE: a prior that depends on a label makes the factors identifiable."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, final

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan, labeled
from unweave.methods.base import FigureName
from unweave.methods.neural import Lane
from unweave.methods.vae.base import VAE
from unweave.nn.autoencoder import mlp
from unweave.nn.functional import Normal, kl, one_hot, weighted_sum
from unweave.utils.errors import InputError

COUNTED_LABELS = 10_000  # labels drawn to estimate how frequent each class is


@final
class IVAE(VAE):
    """iVAE (Khemakhem et al., 2020, Eqs. 6 to 8): nonlinear ICA by a VAE whose prior depends on a label.

    Minimizes `E[-log p(x | z)] + beta KL(q(z | x) || p(z | u))`, where p(z | u) is Gaussian with variances that a
    network computes from the label u. The paper's encoder takes u too; ours does not, so that `transform` needs no
    labels.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
        >>> IVAE(latent_dim=2, steps=2, layers=(8,)).fit(x, y).transform(x).shape
        (50, 2)
    """

    name = "ivae"
    renamed = MappingProxyType({"spread": "noise_variance", "shares_": "class_shares_"})
    paper = "Khemakhem et al. (2020), Eqs. 6 to 8"
    needs = "labels"

    beta: Lane = 1.0
    """Weight of the KL term."""
    noise_variance: Lane = 0.1
    """Variance of the Gaussian noise of observations; has no effect on Bernoulli pixels."""
    label: str = ""
    """Factor that is the label; the first discrete one by default."""
    prior_hidden: tuple[int, ...] = (50,)
    """Hidden layers of the network from labels to prior variances."""

    def prepare(self, data: FactorData) -> None:
        rng = Generator(self.resolve_device()).manual_seed(0)
        u = labeled(data, COUNTED_LABELS, rng, factor=self.label or None).extras["u"]
        sizes = {f.name: f.size for f in data.factors}
        name = self.label or next(f.name for f in data.factors if f.size is not None)
        self.classes_ = int(sizes[name] or 0)
        if self.classes_ < 2:
            raise InputError(f"label {name!r} has one value only: iVAE needs at least two classes")
        self.class_shares_ = (u.bincount(minlength=self.classes_) / len(u)).cpu()  # (classes,)

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        net.prior = mlp(self.classes_, *self.prior_hidden, self.latent_dim)
        return net

    def is_cacheable(self) -> bool:
        return True

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        return labeled(data, n, rng, factor=self.label or None)

    def loss(self, net: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute Eq. 8: reconstruction + beta KL(q(z | x) || p(z | u))."""
        q, z, rec = self.reconstruct(net, batch)
        logvar = net.prior(one_hot(batch["u"], self.classes_, z.dtype))
        prior = Normal(logvar.new_zeros(()), logvar)
        return weighted_sum({"rec": (1, rec), "kl": (self.beta, kl(q, prior).sum(-1).mean())})

    def reconstruction_loss(self, x: Tensor, out: Tensor) -> Tensor:
        rec = super().reconstruction_loss(x, out)
        return rec if self.is_bernoulli() else rec / self.noise_variance

    def likelihood_constant(self) -> float:
        scale = 0.0 if self.is_bernoulli() else 0.5 * math.prod(self.shape_) * math.log(self.noise_variance)
        return super().likelihood_constant() + scale

    def after_training(self, data: FactorData) -> None:
        """Diagnose nothing: the KL term depends on labels."""

    def figures(self) -> tuple[FigureName, ...]:
        return tuple(name for name in super().figures() if name != "kl")

    def kl_per_code(self, x: Tensor) -> Tensor:
        """Raise an error: the prior depends on the label."""
        raise InputError("the prior of iVAE depends on the label: KL per code is not a function of the observation")

    def sample_prior(self, n: int, rng: Generator) -> Tensor:
        """Return n samples of p(z | u), (n, d), with labels u as frequent as in the data."""
        u = one_hot(torch.multinomial(self.class_shares_, n, replacement=True, generator=rng), self.classes_)
        logvar = self.apply_network(lambda net, rows: net.prior(rows), u)
        eps = torch.randn(n, self.latent_dim, generator=rng)
        return Normal(torch.zeros_like(logvar), logvar).sample(eps)
