"""Independence of codes, the check of a recovery that needs no labels: distance correlation and its permutation test.

Factors are independent. Codes that are not, are no factors, however well they keep distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

N_FREQUENCIES = 16  # cosines per code; their weights fall with the square of the frequency
N_PERMUTATIONS = 199


class Dependence(NamedTuple):
    """The two codes that depend most on each other."""

    pair: tuple[int, int]  # indices of the codes
    correlation: float  # distance correlation of their ranks, 0 where there is a single code
    p_value: float  # of independence of all codes


def measure_dependence(
    codes: np.ndarray, periods: Sequence[float | None] = (), seed: int = 0, n_permutations: int = N_PERMUTATIONS
) -> Dependence:
    """Return the most dependent pair of codes (n, d), tested by permutations of the rows.

    A code with a period takes part with its ranks along the circle, from 0 to its period. Without permutations the
    p-value is 1.
    """
    n, d = codes.shape
    if d < 2 or n < 4:
        return Dependence((0, 0), 0.0, 1.0)
    waves = [rank_cosines(column, circular=bool(period)) for column, period in zip_periods(codes, periods)]
    pairs = list(combinations(range(d), 2))
    squares = [squared_distance_correlation(waves[i], waves[j]) for i, j in pairs]
    highest = max(squares)
    # Ranks are a permutation whatever the data are, so all pairs of linear codes share one null distribution.
    i, j = pairs[int(np.argmax(squares))]
    a, b = (wave.astype(np.float32) for wave in (waves[i], waves[j]))  # n_permutations products: in single precision
    rng, observed = np.random.default_rng(seed), overlap(waves[i], waves[j])
    null = [overlap(a, b[rng.permutation(n)]) for _ in range(n_permutations)]  # nothing else changes
    exceeded = (1 + sum(value >= observed for value in null)) / (1 + n_permutations)
    return Dependence((i, j), float(np.sqrt(max(highest, 0.0))), min(1.0, exceeded * len(pairs)))


def largest_dependence(codes: np.ndarray) -> float:
    """Return the largest distance correlation of two codes (n, d), without a test."""
    return measure_dependence(codes, n_permutations=0).correlation


def zip_periods(codes: np.ndarray, periods: Sequence[float | None]) -> list[tuple[np.ndarray, float | None]]:
    """Return each code (n,) with its period; without periods all are linear."""
    return list(zip(codes.T, periods or [None] * codes.shape[1], strict=True))


def rank_cosines(code: np.ndarray, *, circular: bool = False) -> np.ndarray:
    """Return cosines of the ranks of a code (n,), standardized and weighted, (n, frequencies).

    They are the eigenfunctions of centered distances between ranks, |s - t| on [0, 1] with eigenvalues
    proportional to 1 / frequency^2. Around a circle sines come besides.
    """
    ranks = (rankdata(code) - 0.5) / len(code)
    frequency = np.arange(1, N_FREQUENCIES + 1)
    if circular:
        frequency = (frequency + 1) // 2
        phase = np.where(np.arange(N_FREQUENCIES) % 2, np.pi / 2, 0.0)
        waves = np.cos(2 * np.pi * ranks[:, None] * frequency - phase)
    else:
        waves = np.cos(np.pi * ranks[:, None] * frequency)
    waves = waves - waves.mean(0)
    return np.asarray(waves / np.maximum(waves.std(0), 1e-12) / frequency)


def squared_distance_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return the squared distance correlation of ranks (Szekely et al., 2007), from their cosines (n, frequencies).

    Its expectation under independence is subtracted, so that it is 0 on average there, and can be negative.
    """
    n = len(a)
    var_a, var_b = np.einsum("nf,nf->f", a, a) / n, np.einsum("nf,nf->f", b, b) / n  # columns have mean zero
    by_chance = var_a.sum() * var_b.sum() / (n - 1)
    return float((overlap(a, b) - by_chance) / np.sqrt((var_a @ var_a) * (var_b @ var_b)))


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Return the sum of squared covariances of cosines (n, frequencies)."""
    return float(((a.T @ b / len(a)) ** 2).sum())
