"""Correlations between factors and codes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unweave.data.core import Factor
from unweave.experiments.ordered import Periods
from unweave.report.figures.scales import factor_values


def correlate(
    codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor], periods: Periods
) -> tuple[list[str], np.ndarray] | None:
    """Return names of factors and their absolute correlation with every code, (k, d).

    None without ordered or circular factors.

    Args:
        codes: Codes, (n, d).
        truth: Values of the factors, (n, k).
        factors: Names and kinds of the factors, k of them.
        periods: Period of each code, or None.
    """
    rows = [
        j
        for j, factor in enumerate(factors)
        if factor.kind != "nominal" and not factor.noise and np.ptp(truth[:, j]) > 0
    ]
    if not rows:
        return None
    shown = [factors[j] for j in rows]
    names = [f"{f.name} (circular)" if f.period is not None else f.name for f in shown]
    return names, associate(codes, truth[:, rows], shown, periods)


def associate(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor], periods: Periods) -> np.ndarray:
    """Return how closely every code follows every factor, (k, d), from 0 to 1.

    It is the absolute correlation of two ordinary numbers. Angles count by their cosine and sine, classes by an
    indicator each: the value is then the largest correlation between linear functions of both.
    """
    left = [_orthonormal(_factor_columns(f, column)) for f, column in zip(factors, truth.T, strict=True)]
    right = [_orthonormal(_code_columns(z, period)) for z, period in zip(codes.T, periods, strict=True)]
    return np.array([[_largest_correlation(a, b) for b in right] for a in left])


def _factor_columns(factor: Factor, column: np.ndarray) -> np.ndarray:
    if factor.kind == "nominal":
        return (column[:, None] == np.unique(column)[None]).astype(np.float64)
    return _code_columns(factor_values(factor, column), factor.period)


def _code_columns(values: np.ndarray, period: float | None) -> np.ndarray:
    if period is None:
        return values[:, None]
    angle = values * (2 * math.pi / period)
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the centered columns, (n, c) -> (n, rank)."""
    centered = columns - columns.mean(0)
    u, s, _ = np.linalg.svd(centered, full_matrices=False)
    return u[:, s > 1e-9 * max(1e-300, np.abs(columns).max() * math.sqrt(len(columns)))]


def _largest_correlation(a: np.ndarray, b: np.ndarray) -> float:
    if not a.shape[1] or not b.shape[1]:
        return 0.0
    return float(np.clip(np.linalg.svd(a.T @ b, compute_uv=False)[0], 0, 1))
