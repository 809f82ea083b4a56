"""Exponential families with two parameters, for latent variables whose distribution depends on a condition.

GIN (Sorrenson et al., 2020), Eq. 1 and Table 1: log p(w | u) = log Q(w) + T1(w) l1(u) + T2(w) l2(u) - log Z(u). A flow
gives real numbers y; families on a half-line or an interval live on w = exp(y) or w = sigmoid(y).

A label may be a row of class probabilities r. Then the moments of a normal latent variable are those of the mixture of
the classes with these weights: linear in r, so that regression on r finds them, while l1 and l2 are not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from unweave.utils.errors import InputError

LEAST = 1e-12  # a variance below this is rounding
RIDGE = 1e-4  # of one observation: what keeps the regression on probabilities from dividing by zero
FamilyName = Literal["normal", "log-normal", "inverse-gaussian", "gamma", "inverse-gamma", "beta"]


class Coefficients(NamedTuple):
    """Two numbers for each condition and latent variable, (conditions, d) each; see each family."""

    first: Tensor
    second: Tensor

    def of(self, r: Tensor) -> Coefficients:
        """Those of observations of classes r, ones among zeros, (n, classes) -> (n, d)."""
        return Coefficients(*((r[:, :, None] * c).sum(1) for c in self))  # a product of matrices would round them


def weights(r: Tensor) -> Tensor:
    """With which observations of class probabilities r, (..., n, classes), make the statistics of each class.

    Sums over n with these weights are the regression on r: for classes, which are ones among zeros, the means.
    """
    gram = r.mT @ r + RIDGE * torch.eye(r.shape[-1], device=r.device, dtype=r.dtype)
    found = torch.linalg.solve(gram.double(), r.mT.double()).mT.to(r)
    return found / found.sum(-2, keepdim=True)


class Family(ABC):
    """Abstract. A location and a spread of y stand for both parameters where these are learned."""

    @abstractmethod
    def latent(self, y: Tensor) -> Tensor:
        """The latent variables w of the flow's outputs y."""

    @abstractmethod
    def free(self, w: Tensor) -> Tensor:
        """The other way."""

    @abstractmethod
    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """What outputs (n, d), weighed by p (n, classes) whose columns sum to one, say of each class; see `weights`."""

    @abstractmethod
    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Log-density of y, (n, d), the Jacobian of w included."""

    @abstractmethod
    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Of which y lies around a location, with about exp(spread) as its deviation."""

    def mixed(self, c: Coefficients, r: Tensor) -> Coefficients:
        """Those of observations with class probabilities r, (n, classes) -> (n, d)."""
        raise InputError(f"{type(self).__name__}: labels that are probabilities want family='normal' or 'log-normal'")

    @abstractmethod
    def _law(self, c: Coefficients) -> Any:
        """The distribution of w, as scipy has it."""

    def whiten(self, y: Tensor, c: Coefficients) -> Tensor:
        """y as a standard normal variable, by its quantiles."""
        u = np.clip(self._law(c).cdf(self.latent(y.double()).numpy()), 1e-12, 1 - 1e-12)
        return torch.from_numpy(stats.norm.ppf(u)).to(y)

    def color(self, e: Tensor, c: Coefficients) -> Tensor:
        """The other way: from a standard normal variable to y."""
        u = np.clip(stats.norm.cdf(e.double().numpy()), 1e-12, 1 - 1e-12)
        return self.free(torch.from_numpy(self._law(c).ppf(u))).to(e)


@final
class Normal(Family):
    """T = (w, w^2). Coefficients: mean / variance, and 1 / variance."""

    def latent(self, y: Tensor) -> Tensor:
        """y itself."""
        return y

    def free(self, w: Tensor) -> Tensor:
        """w itself."""
        return w

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """By likelihood: GIN, Eqs. 11 and 12. A regression, whose weights have signs, may give a variance below zero:
        a class then has a tenth of the usual one.
        """
        mean = _mean(y, p)
        variance = _mean((y[:, None] - mean).square(), p)
        least = 0.1 * variance.clamp(min=0).mean(0) * (p < 0).any() + LEAST
        precision = 1 / torch.maximum(variance, least)
        return Coefficients(mean * precision, precision)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """GIN, Eq. 2."""
        return 0.5 * (c.second.log() - math.log(2 * math.pi) - c.second * (y - c.first / c.second).square())

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Mean and log-deviation."""
        precision = (-2 * spread).exp()
        return Coefficients(location * precision, precision)

    def mixed(self, c: Coefficients, r: Tensor) -> Coefficients:
        """By the mean and the variance of the mixture."""
        means, variances = c.first / c.second, 1 / c.second
        mean = (r[:, :, None] * means).sum(1)
        variance = (r[:, :, None] * (variances + (means - mean[:, None]).square())).sum(1).clamp(min=LEAST)
        return Coefficients(mean / variance, 1 / variance)

    def _law(self, c: Coefficients) -> Any:
        a, b = _arrays(c)
        return stats.norm(a / b, b**-0.5)

    def whiten(self, y: Tensor, c: Coefficients) -> Tensor:
        """In closed form, which has no tails to run out of."""
        return (y - c.first / c.second) * c.second.sqrt()

    def color(self, e: Tensor, c: Coefficients) -> Tensor:
        """The other way."""
        return c.first / c.second + e * c.second.rsqrt()


class _Positive(Family):
    """Abstract: on the half-line, w = exp(y)."""

    def latent(self, y: Tensor) -> Tensor:
        """exp(y)."""
        return y.exp()

    def free(self, w: Tensor) -> Tensor:
        """log(w)."""
        return w.log()


@final
class LogNormal(_Positive):
    """T = (log w, (log w)^2): y is normal. Coefficients: those of y."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """By likelihood."""
        return NORMAL.fit(y, p)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """That of y."""
        return NORMAL.log_prob(y, c)

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Mean and log-deviation of y."""
        return NORMAL.learned(location, spread)

    def mixed(self, c: Coefficients, r: Tensor) -> Coefficients:
        """Those of y."""
        return NORMAL.mixed(c, r)

    def _law(self, c: Coefficients) -> Any:
        a, b = _arrays(c)
        return stats.lognorm(b**-0.5, scale=np.exp(a / b))


@final
class Gamma(_Positive):
    """T = (log w, w). Coefficients: shape and rate."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """By likelihood, the shape in a closed form that is right within 1.5 %."""
        center = _mean(y, p)
        # s = log E[w] - E[log w], which is small where y hardly varies
        excess = _mean(torch.expm1(y[:, None] - center), p)
        s = torch.log1p(excess).clamp(min=LEAST)
        shape = (3 - s + ((s - 3).square() + 24 * s).sqrt()) / (12 * s)
        return Coefficients(shape, shape * (-center).exp() / (1 + excess))

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Around the mean, so that large shapes do not cancel."""
        k = c.first
        u = y - (k / c.second).log()
        return k * (u - torch.expm1(u)) - _stirling(k)

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """The mean's logarithm, and -1/2 the shape's."""
        shape = (-2 * spread).exp()
        return Coefficients(shape, shape * (-location).exp())

    def _law(self, c: Coefficients) -> Any:
        k, rate = _arrays(c)
        return stats.gamma(k, scale=1 / rate)


@final
class InverseGamma(_Positive):
    """T = (log w, 1 / w): 1 / w has a gamma distribution. Coefficients: its shape and rate."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """As for -y."""
        return GAMMA.fit(-y, p)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """As of -y."""
        return GAMMA.log_prob(-y, c)

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """As for -y."""
        return GAMMA.learned(-location, spread)

    def _law(self, c: Coefficients) -> Any:
        k, rate = _arrays(c)
        return stats.invgamma(k, scale=rate)


@final
class InverseGaussian(_Positive):
    """T = (w, 1 / w). Coefficients: shape / mean^2, and shape."""

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """By likelihood: 1 / shape = E[1 / w] - 1 / E[w], here as the mean of (w - m)^2 / (w m^2)."""
        center = _mean(y, p)
        u = y[:, None] - center  # (n, classes, d): w over its geometric mean, in logarithms
        m = 1 + _mean(torch.expm1(u), p)
        inverse = _mean((u.exp() - m).square() * (-u).exp(), p) / m.square()
        shape = 1 / inverse.clamp(min=LEAST)  # of w over its geometric mean
        return Coefficients(shape / m.square() * (-center).exp(), shape * center.exp())

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """With a u + b / u - 2 sqrt(a b) as a square."""
        root = (c.first.sqrt() * (y / 2).exp() - c.second.sqrt() * (-y / 2).exp()).square()
        return 0.5 * (c.second.log() - math.log(2 * math.pi) - y - root)

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """The mean's logarithm, and half the logarithm of mean / shape."""
        ratio = (-2 * spread).exp()
        return Coefficients(ratio * (-location).exp(), ratio * location.exp())

    def _law(self, c: Coefficients) -> Any:
        a, b = _arrays(c)
        mean = np.sqrt(b / a)
        return stats.invgauss(mean / b, scale=b)


@final
class Beta(Family):
    """T = (log w, log(1 - w)), w = sigmoid(y). Coefficients: both shapes."""

    def latent(self, y: Tensor) -> Tensor:
        """sigmoid(y)."""
        return y.sigmoid()

    def free(self, w: Tensor) -> Tensor:
        """logit(w)."""
        return w.logit()

    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """By the mean and the variance."""
        w = y.sigmoid()
        mean = _mean(w, p)
        total = mean * (1 - mean) / _mean((w[:, None] - mean).square(), p).clamp(min=LEAST) - 1
        total = total.clamp(min=1e-3)
        return Coefficients(mean * total, (1 - mean) * total)

    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Minus (a + b) times the divergence of w from the mean, so that large shapes do not cancel."""
        a, b = c
        mean, away = a / (a + b), y - (a / b).log()
        divergence = torch.log1p(mean * torch.expm1(away)) - mean * away
        return -(a + b) * divergence - _stirling(a) - _stirling(b) + _stirling(a + b)

    def learned(self, location: Tensor, spread: Tensor) -> Coefficients:
        """The mean's logit, and -1/2 the logarithm of the sum of the shapes."""
        mean, total = location.sigmoid(), (-2 * spread).exp()
        return Coefficients(mean * total, (1 - mean) * total)

    def _law(self, c: Coefficients) -> Any:
        return stats.beta(*_arrays(c))


NORMAL, GAMMA = Normal(), Gamma()
FAMILIES: dict[FamilyName, Family] = {
    "normal": NORMAL,
    "log-normal": LogNormal(),
    "inverse-gaussian": InverseGaussian(),
    "gamma": GAMMA,
    "inverse-gamma": InverseGamma(),
    "beta": Beta(),
}


def _mean(v: Tensor, p: Tensor) -> Tensor:
    """Weighted means of v, (n, d) or (n, classes, d), by p, (n, classes): (classes, d)."""
    return ((v if v.ndim == 3 else v[:, None]) * p[:, :, None]).sum(0)


def _stirling(k: Tensor) -> Tensor:
    """log Gamma(k) - (k log k - k), which for large k is small, and lost in the difference of large numbers."""
    large = k.clamp(min=10)
    series = 0.5 * (2 * math.pi / large).log() + 1 / (12 * large) - 1 / (360 * large**3)
    small = k.clamp(max=10)
    return torch.where(k > 10, series, torch.lgamma(small) - small * small.log() + small)


def _arrays(c: Coefficients) -> tuple[np.ndarray, np.ndarray]:
    return c.first.double().numpy(), c.second.double().numpy()
