"""Base class of exponential families of latent variables: coefficients per class, and the interface.

GIN (Sorrenson et al., 2020), Eq. 1 and Table 1: log p(w | u) = log Q(w) + T1(w) l1(u) + T2(w) l2(u) - log Z(u). A flow
outputs real numbers y. Families on a half-line or an interval describe w = exp(y) or w = sigmoid(y).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from unweave.utils.errors import InputError

MIN_VARIANCE = 1e-12  # smaller variances are rounding errors
MIN_PROBABILITY = 1e-12  # smaller quantiles would be infinite


class Coefficients(NamedTuple):
    """Two numbers for each condition and latent variable, (conditions, d) each; every family defines its own."""

    first: Tensor
    second: Tensor

    def columns(self, chosen: Any) -> Coefficients:
        """Return the coefficients of some latent variables, by their index or slice."""
        return Coefficients(self.first[:, chosen], self.second[:, chosen])

    def select(self, r: Tensor) -> Coefficients:
        """Return the coefficients of observations with one-hot classes r, (n, classes) -> (n, d)."""
        return Coefficients(*((r[:, :, None] * c).sum(1) for c in self))  # a matrix product would round them


class Family(ABC):
    """Abstract: a family of distributions of a latent variable, with two coefficients for each class."""

    @abstractmethod
    def to_latent(self, y: Tensor) -> Tensor:
        """Return the latent variables w of the flow's outputs y, of any shape."""

    @abstractmethod
    def from_latent(self, w: Tensor) -> Tensor:
        """Inverse of `to_latent`."""

    @abstractmethod
    def fit(self, y: Tensor, p: Tensor) -> Coefficients:
        """Estimate the coefficients of each class, (classes, d).

        Args:
            y: Outputs of the flow, (n, d).
            p: Weight of each observation for each class, (n, classes); columns sum to one.
        """

    @abstractmethod
    def log_prob(self, y: Tensor, c: Coefficients) -> Tensor:
        """Return the log-density of y, (n, d), including the Jacobian of `to_latent`."""

    @abstractmethod
    def from_location_spread(self, location: Tensor, spread: Tensor) -> Coefficients:
        """Return the coefficients for which y has this location, and a deviation of about exp(spread)."""

    def mix(self, c: Coefficients, r: Tensor) -> Coefficients:
        """Return the coefficients of observations with class probabilities r, (n, classes) -> (n, d)."""
        raise InputError(f"{type(self).__name__}: labels that are probabilities need family='normal' or 'log-normal'")

    @abstractmethod
    def _distribution(self, c: Coefficients) -> Any:
        """Return the distribution of w, as in scipy.stats."""

    def whiten(self, y: Tensor, c: Coefficients) -> Tensor:
        """Map y to a standard normal variable by its quantiles, (n, d) -> (n, d)."""
        cdf = self._distribution(c).cdf(self.to_latent(y.double()).numpy())
        return torch.from_numpy(stats.norm.ppf(_clip_probability(cdf))).to(y)

    def color(self, e: Tensor, c: Coefficients) -> Tensor:
        """Inverse of `whiten`: map a standard normal variable e to y, (n, d) -> (n, d)."""
        u = _clip_probability(stats.norm.cdf(e.double().numpy()))
        return self.from_latent(torch.from_numpy(self._distribution(c).ppf(u))).to(e)


def _clip_probability(u: np.ndarray) -> np.ndarray:
    return np.clip(u, MIN_PROBABILITY, 1 - MIN_PROBABILITY)


def weighted_mean(v: Tensor, p: Tensor) -> Tensor:
    """Return the mean of v, (n, d) or (n, classes, d), with weights p, (n, classes): (classes, d)."""
    return ((v if v.ndim == 3 else v[:, None]) * p[:, :, None]).sum(0)


def stirling_remainder(k: Tensor) -> Tensor:
    """Return log Gamma(k) - (k log k - k), which for large k would be lost in the difference of large numbers."""
    large = k.clamp(min=10)
    series = 0.5 * (2 * math.pi / large).log() + 1 / (12 * large) - 1 / (360 * large**3)
    small = k.clamp(max=10)
    return torch.where(k > 10, series, torch.lgamma(small) - small * small.log() + small)


def to_arrays(c: Coefficients) -> tuple[np.ndarray, np.ndarray]:
    """Return both coefficients as arrays in double precision."""
    return c.first.double().numpy(), c.second.double().numpy()
