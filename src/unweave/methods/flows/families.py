"""The exponential families of GIN (Sorrenson et al., 2020, Table 1); see `Family`."""

from __future__ import annotations

import math
from typing import Any, Literal, final

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from unweave.methods.flows.family import (
    MIN_VARIANCE,
    Coefficients,
    Family,
    stirling_remainder,
    to_arrays,
    weighted_mean,
)
from unweave.utils.errors import InputError

MAX_EXPONENT = 20.0  # largest |x| for families whose variables start as exponentials of the observations
FamilyName = Literal["normal", "log-normal", "inverse-gaussian", "gamma", "inverse-gamma", "beta"]


@final
class NormalFamily(Family):
    """T = (w, w^2). Coefficients: mean / variance, and 1 / variance."""

    def to_latent(self, y: Tensor) -> Tensor:
        """Return y itself."""
        return y

    def from_latent(self, w: Tensor) -> Tensor:
        """Inverse of `to_latent`."""
        return w

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Maximize the likelihood (GIN, Eqs. 11 and 12).

        Weights from a regression have signs and may give a negative variance: a class then gets a tenth of the mean.
        """
        mean = weighted_mean(y, p)
        variance = weighted_mean((y[:, None] - mean).square(), p)
        least = 0.1 * variance.clamp(min=0).mean(0) * (p < 0).any() + MIN_VARIANCE
        precision = 1 / torch.maximum(variance, least)
        return Coefficients(mean * precision, precision)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the normal log-density (GIN, Eq. 2)."""
        return 0.5 * (c.second.log() - math.log(2 * math.pi) - c.second * (y - c.first / c.second).square())

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return coefficients from the mean and the logarithm of the deviation."""
        precision = (-2 * spread).exp()
        return Coefficients(location * precision, precision)

    def mix(self, c: Coefficients, r: Tensor) -> Coefficients:
        """Return the normal distribution with the mean and variance of the mixture of classes."""
        means, variances = c.first / c.second, 1 / c.second
        mean = (r[:, :, None] * means).sum(1)
        variance = (r[:, :, None] * (variances + (means - mean[:, None]).square())).sum(1).clamp(min=MIN_VARIANCE)
        return Coefficients(mean / variance, 1 / variance)

    def _distribution(self, c: Coefficients) -> Any:
        a, b = to_arrays(c)
        return stats.norm(a / b, b**-0.5)

    def whiten(self, y: Tensor, c: Coefficients) -> Tensor:
        """Standardize y in closed form, which is exact in the tails too."""
        return (y - c.first / c.second) * c.second.sqrt()

    def color(self, e: Tensor, c: Coefficients) -> Tensor:
        """Inverse of `whiten`."""
        return c.first / c.second + e * c.second.rsqrt()


class PositiveFamily(Family):
    """Abstract: a family on the half-line, w = exp(y)."""

    def to_latent(self, y: Tensor) -> Tensor:
        """Return exp(y)."""
        return y.exp()

    def from_latent(self, w: Tensor) -> Tensor:
        """Inverse of `to_latent`."""
        return w.log()


@final
class LogNormal(PositiveFamily):
    """T = (log w, (log w)^2): y is normal. Coefficients: those of y."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Maximize the likelihood."""
        return NORMAL.fit(y, p)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the normal log-density of y."""
        return NORMAL.log_prob(y, c)

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return coefficients from the mean of y and the logarithm of its deviation."""
        return NORMAL.from_location_spread(location, spread)

    def mix(self, c: Coefficients, r: Tensor) -> Coefficients:
        """Return the distribution with the mean and variance of y in the mixture of classes."""
        return NORMAL.mix(c, r)

    def _distribution(self, c: Coefficients) -> Any:
        a, b = to_arrays(c)
        return stats.lognorm(b**-0.5, scale=np.exp(a / b))


@final
class Gamma(PositiveFamily):
    """T = (log w, w). Coefficients: shape and rate."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Maximize the likelihood, with the shape in a closed form that is accurate within 1.5 %."""
        center = weighted_mean(y, p)
        # s = log E[w] - E[log w], relative to the geometric mean: small where y hardly varies
        excess = weighted_mean(torch.expm1(y[:, None] - center), p)
        s = torch.log1p(excess).clamp(min=MIN_VARIANCE)
        shape = (3 - s + ((s - 3).square() + 24 * s).sqrt()) / (12 * s)
        return Coefficients(shape, shape * (-center).exp() / (1 + excess))

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the log-density relative to the mean, so that large shapes do not cancel."""
        k = c.first
        u = y - (k / c.second).log()
        return k * (u - torch.expm1(u)) - stirling_remainder(k)

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return coefficients from the logarithm of the mean, and -1/2 the logarithm of the shape."""
        shape = (-2 * spread).exp()
        return Coefficients(shape, shape * (-location).exp())

    def _distribution(self, c: Coefficients) -> Any:
        k, rate = to_arrays(c)
        return stats.gamma(k, scale=1 / rate)


@final
class InverseGamma(PositiveFamily):
    """T = (log w, 1 / w): 1 / w has a gamma distribution. Coefficients: its shape and rate."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Fit a gamma distribution to the mirrored variable -y."""
        return GAMMA.fit(-y, p)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Log-density of the mirrored variable -y."""
        return GAMMA.log_prob(-y, c)

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return the coefficients of the mirrored variable -y."""
        return GAMMA.from_location_spread(-location, spread)

    def _distribution(self, c: Coefficients) -> Any:
        k, rate = to_arrays(c)
        return stats.invgamma(k, scale=rate)


@final
class InverseGaussian(PositiveFamily):
    """T = (w, 1 / w). Coefficients: shape / mean^2, and shape."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Maximize the likelihood: 1 / shape = E[1 / w] - 1 / E[w], here as the mean of (w - m)^2 / (w m^2)."""
        center = weighted_mean(y, p)
        u = y[:, None] - center  # (n, classes, d): log of w relative to its geometric mean
        m = 1 + weighted_mean(torch.expm1(u), p)
        inverse = weighted_mean((u.exp() - m).square() * (-u).exp(), p) / m.square()
        shape = 1 / inverse.clamp(min=MIN_VARIANCE)  # of w relative to its geometric mean
        return Coefficients(shape / m.square() * (-center).exp(), shape * center.exp())

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the log-density, with a w + b / w - 2 sqrt(a b) written as a square."""
        root = (c.first.sqrt() * (y / 2).exp() - c.second.sqrt() * (-y / 2).exp()).square()
        return 0.5 * (c.second.log() - math.log(2 * math.pi) - y - root)

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return coefficients from the logarithm of the mean, and half the logarithm of mean / shape."""
        ratio = (-2 * spread).exp()
        return Coefficients(ratio * (-location).exp(), ratio * location.exp())

    def _distribution(self, c: Coefficients) -> Any:
        a, b = to_arrays(c)
        mean = np.sqrt(b / a)
        return stats.invgauss(mean / b, scale=b)


@final
class Beta(Family):
    """T = (log w, log(1 - w)), w = sigmoid(y). Coefficients: both shapes."""

    def to_latent(self, y: Tensor) -> Tensor:
        """Return sigmoid(y)."""
        return y.sigmoid()

    def from_latent(self, w: Tensor) -> Tensor:
        """Inverse of `to_latent`."""
        return w.logit()

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Match the mean and the variance of w."""
        w = y.sigmoid()
        mean = weighted_mean(w, p)
        total = mean * (1 - mean) / weighted_mean((w[:, None] - mean).square(), p).clamp(min=MIN_VARIANCE) - 1
        total = total.clamp(min=1e-3)
        return Coefficients(mean * total, (1 - mean) * total)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the log-density by the KL divergence of w from the mean, so that large shapes do not cancel."""
        a, b = c
        mean, distance = a / (a + b), y - (a / b).log()
        divergence = torch.log1p(mean * torch.expm1(distance)) - mean * distance
        return -(a + b) * divergence - stirling_remainder(a) - stirling_remainder(b) + stirling_remainder(a + b)

    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return coefficients from the logit of the mean, and -1/2 the logarithm of the sum of both shapes."""
        mean, total = location.sigmoid(), (-2 * spread).exp()
        return Coefficients(mean * total, (1 - mean) * total)

    def _distribution(self, c: Coefficients) -> Any:
        return stats.beta(*to_arrays(c))


def check_family(name: FamilyName, *, soft: bool, largest: float) -> None:
    """Raise an error if a family cannot be used with soft labels, or with observations up to |x| = `largest`."""
    if name in ("normal", "log-normal"):
        return
    if soft:
        raise InputError(f"family={name!r}: labels that are probabilities need family='normal' or 'log-normal'")
    if largest > MAX_EXPONENT:
        text = f"family={name!r} starts from exponentials of the observations, which reach {largest:.3g}"
        raise InputError(f"{text}: standardize them first (standardize=True)")


def check_support(name: FamilyName, w: Tensor) -> None:
    """Raise an error if latent variables w lie outside the support of a family."""
    if not bool(FAMILIES[name].from_latent(w).isfinite().all()):
        support = "between 0 and 1" if name == "beta" else "above 0"
        raise InputError(f"latent variables of the {name} family are {support}, and some codes are not")


NORMAL, GAMMA = NormalFamily(), Gamma()
FAMILIES: dict[FamilyName, Family] = {
    "normal": NORMAL,
    "log-normal": LogNormal(),
    "inverse-gaussian": InverseGaussian(),
    "gamma": GAMMA,
    "inverse-gamma": InverseGamma(),
    "beta": Beta(),
}
