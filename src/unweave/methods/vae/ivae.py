"""iVAE: a prior that depends on a label makes the factors identifiable."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan, labeled
from unweave.methods.base import FigureName
from unweave.methods.neural import Lane
from unweave.methods.vae.base import PenalizedVAE, Terms
from unweave.nn.functional import Normal, kl, one_hot
from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError

SEEN = 10_000  # labels that their shares are counted from


@final
class IVAE(PenalizedVAE):
    """iVAE: labels choose the variances of the prior; nonlinear ICA up to a simple transformation of each code.

    The encoder sees the observation alone, where the paper's sees the label too: so that `transform` needs none.
    """

    name = "ivae"
    paper = "Khemakhem et al. (2020), Eqs. 6 to 8"
    needs = "labels"

    beta: Lane = 1.0
    """weight of the KL term"""
    spread: Lane = 0.1
    """variance of the noise that Gaussian observations are assumed to have"""
    label: str = ""
    """the factor that is the label; the first discrete one unless named"""
    prior_hidden: tuple[int, ...] = (50,)
    """hidden layers of the network from labels to variances"""

    def prepare(self, data: FactorData) -> None:
        u = labeled(data, SEEN, Generator(self.resolve_device()).manual_seed(0), factor=self.label or None).extras["u"]
        sizes = {f.name: f.size for f in data.factors}
        name = self.label or next(f.name for f in data.factors if f.size is not None)
        self.classes_ = int(sizes[name] or 0)
        if self.classes_ < 2:
            raise InputError(f"label {name!r} has one value only: iVAE needs at least two classes")
        self.shares_ = (u.bincount(minlength=self.classes_) / len(u)).cpu()  # (classes,), to sample by

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        net = super().build(shape)
        net.prior = mlp(self.classes_, *self.prior_hidden, self.latent_dim)
        return net

    def is_cacheable(self) -> bool:
        return True

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan:
        return labeled(data, n, rng, factor=self.label or None)

    def reconstruction(self, x: Tensor, out: Tensor) -> Tensor:
        rec = super().reconstruction(x, out)
        return rec if self.bernoulli() else rec / self.spread

    def constant(self) -> float:
        return super().constant() + (0 if self.bernoulli() else 0.5 * math.prod(self.shape_) * math.log(self.spread))

    def after_training(self, data: FactorData) -> None:
        """Nothing: what a code tells cannot be seen without the label."""

    def figures(self) -> tuple[FigureName, ...]:
        return tuple(name for name in super().figures() if name != "kl")

    def kl_per_code(self, x: Tensor) -> Tensor:
        """Raise: the prior depends on the label."""
        raise InputError("the prior of iVAE depends on the label: KL per code is not a function of the observation")

    def prior(self, n: int, rng: Generator) -> Tensor:
        """Labels as often as in the data, codes from the prior of each."""
        u = one_hot(torch.multinomial(self.shares_, n, replacement=True, generator=rng), self.classes_)
        logvar = self.apply_network(lambda net, part: net.prior(part), u)
        eps = torch.randn(n, self.latent_dim, generator=rng)
        return Normal(torch.zeros_like(logvar), logvar).sample(eps)

    def penalty(self, net: Any, q: Normal, z: Tensor, batch: dict[str, Tensor]) -> Terms:
        u = one_hot(batch["u"], self.classes_, z.dtype)  # (n, classes)
        logvar = net.prior(u)
        return {"kl": (self.beta, kl(q, Normal(logvar.new_zeros(()), logvar)).sum(-1).mean())}
