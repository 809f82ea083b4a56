"""Mean correlation coefficient (MCC)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from unweave.metrics.contract import metric
from unweave.metrics.factors import prepare_factors
from unweave.utils.errors import InputError


@metric(
    paper="Hyvarinen and Morioka (2016)",
    variants={"": {}, "spearman": {"correlation": "spearman"}},
    ordered=("", "spearman"),
)
def mcc(factors: Any, codes: Any, *, correlation: Literal["pearson", "spearman"] = "pearson") -> float:
    """Mean absolute correlation of factors with codes, under the best one-to-one match (Hyvarinen and Morioka, 2016).

    The match maximizes the sum of |correlation| (Hungarian method). A factor without a code, and a constant code, count
    as 0. Codes that are independent of the factors score near 0 for many samples.

    Args:
        factors: True factors with an order, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        correlation: Pearson's, or Spearman's of the ranks, which allows any monotonic relation.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).uniform(size=(100, 2))
        >>> round(mcc(factors, -factors[:, ::-1]), 3)
        1.0
    """
    c, z = prepare_factors(factors, codes)
    r = np.abs(correlations(c.c, z, correlation))
    rows, columns = linear_sum_assignment(-r)
    return min(1.0, float(r[rows, columns].sum() / c.count))  # rounding may leave a little more


def correlations(c: np.ndarray, z: np.ndarray, correlation: str = "pearson") -> np.ndarray:
    """Return the correlation of every column of c with every column of z, (n, k) and (n, d) -> (k, d)."""
    if correlation not in ("pearson", "spearman"):
        raise InputError(f"correlation={correlation!r}: expected 'pearson' or 'spearman'")
    if correlation == "spearman":
        c, z = rankdata(c, axis=0), rankdata(z, axis=0)
    return _standardize(c).T @ _standardize(z) / len(c)


def _standardize(a: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and variance 1; a constant column becomes zeros."""
    size = np.abs(a).max(0)
    a = a - a.mean(0)
    scale = a.std(0)
    return a / np.where(scale <= 1e-13 * size, np.inf, scale)  # what is left of a constant is rounding
