"""Where a spectrum of deviations falls: how many latent variables carry information."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .errors import InputError


class Knee(NamedTuple):
    """How many variables stand out of a spectrum."""

    informative: int
    confidence: float
    """the posterior probability of this count, all counts being equally likely beforehand"""
    posterior: np.ndarray
    """of the counts 1, ..., d, (d,)"""


def knee(deviations: Any) -> Knee:
    """The profile likelihood of Zhu and Ghodsi (2006), on the logarithms of deviations.

    The logarithms of the q largest and those of the rest are two normal samples with means of their own and one
    variance; q is what makes them likeliest. A spectrum without a second level has no knee: then all d count.
    """
    s = np.sort(np.asarray(deviations, float).ravel())[::-1]
    if len(s) == 0 or not np.isfinite(s).all() or (s <= 0).any():
        raise InputError("a spectrum needs positive, finite deviations")
    x, d = np.log(s), len(s)
    # Sums of squares around the means of both sides, by running sums.
    total, square, q = np.cumsum(x), np.cumsum(x**2), np.arange(1, d + 1)
    left = square - total**2 / q
    rest = np.maximum(d - q, 1)
    right = np.where(q < d, square[-1] - square - (total[-1] - total) ** 2 / rest, 0)
    variance = np.maximum(left + right, 1e-12 * max(1.0, square[-1])) / max(1, d - 2)
    log_likelihood = -0.5 * d * np.log(variance)
    posterior = np.exp(log_likelihood - log_likelihood.max())
    posterior /= posterior.sum()
    best = d - 1 - int(posterior[::-1].argmax())  # all of them, where all are equal
    return Knee(best + 1, float(posterior[best]), posterior)
