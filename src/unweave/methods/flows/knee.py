"""The knee of a spectrum of deviations: how many latent variables are informative, and how sure that is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from unweave.utils.errors import InputError

INTERVAL = 0.95  # probability of the interval
MAX_CLEAR_WIDTH = 0.25  # width of the interval, relative to the number, up to which a knee is called clear
RESAMPLES = 100  # resamples of the observations
MEAN_RANGE = np.log(1e3)  # width of the uniform prior of a level, in log-deviations
JITTER = 0.1  # scale of the prior of the deviation of log-deviations within a level, with one degree of freedom


class Knee(NamedTuple):
    """The number of informative variables of a spectrum."""

    informative: int
    """The most probable number."""
    confidence: float
    """Posterior probability of this number."""
    posterior: np.ndarray
    """Posterior probabilities of 1, ..., d informative variables, (d,)."""

    @property
    def interval(self) -> tuple[int, int]:
        """Smallest and largest number of the central 95 % interval, extended to the most probable number."""
        reached = self.posterior.cumsum()
        low, high = np.searchsorted(reached, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2 * reached[-1]]) + 1
        return min(int(low), self.informative), max(int(high), self.informative)


def find_knee(deviations: Any, resamples: Any = None) -> Knee:
    """Return the number of large deviations: two levels of log-deviations, after Zhu and Ghodsi (2006).

    The logarithms of the q largest deviations, and those of the rest, are two normal samples with their own means. They
    share one variance, or each has its own: both are averaged, since a spectrum that falls gradually tells neither from
    the other. Means and variances are integrated out. The prior is uniform over q, and given q over all C(d, q) sets of
    variables: without it, a sorted sample of one level would look like two. If one level is more probable than two, all
    d variables are informative, as are both of two.

    Args:
        deviations: Positive standard deviations in any order, (d,).
        resamples: Deviations of resampled observations, (count, d), see `resample_deviations`. The posterior is their
            mean, so that it includes the error of the deviations. Default: the deviations are exact.

    Example:
        >>> knee = find_knee([2.0, 1.8, 0.011, 0.01, 0.012, 0.009])
        >>> knee.informative, knee.interval
        (2, (2, 2))
    """
    spectra = np.atleast_2d(np.asarray(deviations if resamples is None else resamples, float))
    if spectra.size == 0 or not np.isfinite(spectra).all() or (spectra <= 0).any():
        raise InputError("a spectrum needs positive, finite deviations")
    x = np.sort(np.log(spectra), 1)[:, ::-1]
    posterior = np.mean([_posterior(row - row.mean()) for row in x], 0)
    best = int(posterior.argmax())
    return Knee(best + 1, float(posterior[best]), posterior)


def _posterior(x: np.ndarray) -> np.ndarray:
    """Return the posterior of the number of large values of x, (d,), which is centered and descending."""
    d = len(x)
    if d < 3:
        return np.arange(1, d + 1) == d  # two values do not show how much those of a level differ
    q = np.arange(1, d)
    head, head_squares = x.cumsum()[:-1], (x**2).cumsum()[:-1]
    total = float((x**2).sum())
    above = np.maximum(head_squares - head**2 / q, 0)  # sums of squares around the mean of each level
    below = np.maximum(total - head_squares - head**2 / (d - q), 0)  # the rest sums to -head
    log_sets = gammaln(d + 1) - gammaln(q + 1) - gammaln(d - q + 1)  # log C(d, q)
    means = -np.log(q * (d - q)) / 2 - 2 * np.log(MEAN_RANGE) - log_sets
    one = _log_evidence(np.array([total]), d - 1) - np.log(d) / 2 - np.log(MEAN_RANGE)
    own = _log_evidence(above, q - 1) + _log_evidence(below, d - q - 1)
    shared = _log_evidence(above + below, d - 2)
    logs = [np.append(variances + means, one) for variances in (own, shared)]
    return np.asarray(sum(np.exp(log - logsumexp(log)) for log in logs)) / 2


def _log_evidence(squares: np.ndarray, free: Any) -> np.ndarray:
    """Return the log-density of residuals, the variance integrated out with a scaled inverse chi-squared prior.

    Args:
        squares: Sums of squares of the residuals.
        free: Their degrees of freedom.
    """
    total = JITTER**2 + squares
    half = (1 + free) / 2
    return np.asarray(gammaln(half) - gammaln(0.5) + np.log(JITTER) - half * np.log(total) - free / 2 * np.log(np.pi))


def resample_deviations(y: Any, count: int = RESAMPLES) -> np.ndarray:
    """Return deviations of outputs y (n, d) over `count` bootstrap samples of the observations, (count, d)."""
    y = np.asarray(y, np.float32)
    y, n = y - y.mean(0), len(y)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=count).astype(np.float32) / n
    variances = weights @ y**2 - (weights @ y) ** 2
    return np.sqrt(np.maximum(variances, 1e-24))


def simulate_resamples(spectrum: Any, n: int, count: int = RESAMPLES) -> np.ndarray:
    """Return `resample_deviations` of n independent normal outputs, of which only the deviations are known."""
    s = np.asarray(spectrum, float)
    return s * np.sqrt(np.random.default_rng(0).chisquare(n - 1, size=(count, len(s))) / (n - 1))


def is_clear(n: int, interval: tuple[int, int]) -> bool:
    """Return whether the interval of n informative variables is narrow."""
    return interval[1] - interval[0] <= MAX_CLEAR_WIDTH * n


def describe_interval(interval: tuple[int, int]) -> str:
    """Return an interval as text, e.g. "15 to 19"."""
    low, high = interval
    return str(low) if low == high else f"{low} to {high}"


def describe_knee(n: int, interval: tuple[int, int], spectrum: np.ndarray) -> str:
    """Return a sentence on the n informative variables of a sorted spectrum, (d,)."""
    among = f"{INTERVAL:.0%} interval {describe_interval(interval)}"
    if n == len(spectrum):
        return f"The spectrum has no knee: all {n} variables count as informative ({among})."
    clarity = "clear" if is_clear(n, interval) else "not clear"
    fall = f"deviations fall from {spectrum[n - 1]:.3g} to {spectrum[n]:.3g}"
    return f"{n} of {len(spectrum)} variables are informative ({among}): {fall} there. The knee is {clarity}."
