"""Where a spectrum of deviations falls: how many latent variables carry information."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from unweave.utils.errors import InputError


class Knee(NamedTuple):
    """How many variables stand out of a spectrum."""

    informative: int
    confidence: float
    """the posterior probability of this count"""
    posterior: np.ndarray
    """of the counts 1, ..., d, (d,)"""


def knee(deviations: Any) -> Knee:
    """Two levels of log-deviations, or one: by the likelihood of Zhu and Ghodsi (2006), weighed as a choice.

    The logarithms of the q largest deviations and those of the rest are two normal samples with means of their own and
    one variance, R^2 being the share of the variance between them. Beforehand all counts are equally likely, and given
    the count all sets of variables: that there are C(d, q) of them is what keeps a sorted sample of one level from
    looking like two. The second mean costs as in BIC. With one level all d count.
    """
    s = np.sort(np.asarray(deviations, float).ravel())[::-1]
    if len(s) == 0 or not np.isfinite(s).all() or (s <= 0).any():
        raise InputError("a spectrum needs positive, finite deviations")
    x, d = np.log(s), len(s)
    x = x - x.mean()
    q = np.arange(1, d)
    head = np.cumsum(x)[:-1]  # of q numbers; those of the rest sum to minus it
    between = head**2 / q + head**2 / (d - q)
    whole = max(float((x**2).sum()), 1e-12)
    within = np.maximum(1 - between / whole, 1e-9)  # 1 - R^2
    ways = gammaln(d + 1) - gammaln(q + 1) - gammaln(d - q + 1)
    evidence = np.append(-(d - 2) / 2 * np.log(within) - np.log(d) / 2 - ways, 0.0)
    posterior = np.exp(evidence - evidence.max())
    posterior /= posterior.sum()
    best = int(posterior.argmax())
    return Knee(best + 1, float(posterior[best]), posterior)
