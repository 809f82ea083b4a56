"""The knee of a spectrum of deviations: how many latent variables are informative."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from unweave.utils.errors import InputError

MIN_CLEAR_PROBABILITY = 0.9  # probability from which on a knee is called clear


class Knee(NamedTuple):
    """The number of informative variables of a spectrum."""

    informative: int
    confidence: float
    """Posterior probability of this number."""
    posterior: np.ndarray
    """Posterior probabilities of 1, ..., d informative variables, (d,)."""


def find_knee(deviations: Any) -> Knee:
    """Return the most probable number of large deviations, after the profile likelihood of Zhu and Ghodsi (2006).

    The logarithms of the q largest deviations, and those of the rest, are two normal samples with their own means and
    one variance; R^2 is the share of the variance between them. The prior is uniform over q, and given q over all
    C(d, q) sets of variables: without it, a sorted sample of one level would look like two. The second mean costs as in
    BIC. If one level is more probable than two, all d variables are informative.

    Args:
        deviations: Positive standard deviations in any order, (d,).

    Example:
        >>> find_knee([2.0, 1.8, 0.011, 0.01, 0.012, 0.009]).informative
        2
    """
    s = np.sort(np.asarray(deviations, float).ravel())[::-1]
    if len(s) == 0 or not np.isfinite(s).all() or (s <= 0).any():
        raise InputError("a spectrum needs positive, finite deviations")
    x, d = np.log(s), len(s)
    x = x - x.mean()
    q = np.arange(1, d)
    head = np.cumsum(x)[:-1]  # sum of the q largest; the rest sums to minus this
    between = head**2 / q + head**2 / (d - q)
    total = max(float((x**2).sum()), 1e-12)
    within = np.maximum(1 - between / total, 1e-9)  # 1 - R^2
    log_sets = gammaln(d + 1) - gammaln(q + 1) - gammaln(d - q + 1)  # log C(d, q)
    evidence = np.append(-(d - 2) / 2 * np.log(within) - np.log(d) / 2 - log_sets, 0.0)
    posterior = np.exp(evidence - evidence.max())
    posterior /= posterior.sum()
    best = int(posterior.argmax())
    return Knee(best + 1, float(posterior[best]), posterior)


def describe_knee(n: int, confidence: float, spectrum: np.ndarray) -> str:
    """Return a sentence on the n informative variables of a sorted spectrum, (d,)."""
    if n == len(spectrum):
        return f"The spectrum has no knee: all {n} variables count as informative."
    clarity = "clear" if confidence > MIN_CLEAR_PROBABILITY else "not clear"
    fall = f"deviations fall from {spectrum[n - 1]:.3g} to {spectrum[n]:.3g}"
    text = f"{n} of {len(spectrum)} variables are informative: {fall} there."
    return f"{text} The knee is {clarity} (probability {confidence:.0%})."
