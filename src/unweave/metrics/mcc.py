"""Mean correlation coefficient (MCC)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from unweave.metrics.circular import circular_associations, no_angles_error
from unweave.metrics.contract import CIRCULAR, ORDERED, metric
from unweave.metrics.factors import PreparedFactors, prepare_factors
from unweave.utils.errors import InputError


@metric(
    paper="Hyvarinen and Morioka (2016)",
    variants={"": {}, "spearman": {"correlation": "spearman"}, "circular": {"only_circular": True}},
    kinds={"": ORDERED, "spearman": ORDERED, "circular": CIRCULAR},
)
def mcc(
    factors: Any,
    codes: Any,
    *,
    correlation: Literal["pearson", "spearman"] = "pearson",
    only_circular: bool = False,
) -> float:
    """Mean absolute correlation of factors with codes, under the best one-to-one match (Hyvarinen and Morioka, 2016).

    The match maximizes the sum of |correlation| (Hungarian method). A factor without a code, and a constant code, count
    as 0. Codes that are independent of the factors score near 0 for many samples.

    Circular factors and codes, as `prepared` declares them: two angles by the coefficient of Fisher and Lee (1983), an
    angle and a number by regression on (cos, sin). A code that is cos or sin alone has half of an angle, and 0.71.

    Args:
        factors: True factors with an order, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        correlation: Pearson's, or Spearman's of the ranks, which allows any monotonic relation.
        only_circular: Average over circular factors only; the variant `mcc[circular]`.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).uniform(size=(100, 2))
        >>> round(mcc(factors, -factors[:, ::-1]), 3)
        1.0
    """
    c, z = prepare_factors(factors, codes)
    r = associations(c, z, correlation)
    if only_circular:
        r = r[[period is not None for period in c.periods]]
        if not len(r):
            raise no_angles_error()
    rows, columns = linear_sum_assignment(-r)
    return min(1.0, float(r[rows, columns].sum() / len(r)))  # rounding may leave a little more


def associations(c: PreparedFactors, z: np.ndarray, correlation: str = "pearson") -> np.ndarray:
    """Return the absolute correlation of every factor with every code, (k, d); angles are compared as angles."""
    r = correlations(c.c, z, correlation)
    return circular_associations(c, z, r) if c.has_angles else np.abs(r)


def correlations(c: np.ndarray, z: np.ndarray, correlation: str = "pearson") -> np.ndarray:
    """Return the correlation of every column of c with every column of z, (n, k) and (n, d) -> (k, d)."""
    if correlation not in ("pearson", "spearman"):
        raise InputError(f"correlation={correlation!r}: expected 'pearson' or 'spearman'")
    if correlation == "spearman":
        c, z = rankdata(c, axis=0), rankdata(z, axis=0)
    return standardize(c).T @ standardize(z) / len(c)


def standardize(a: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and variance 1; a constant column becomes zeros."""
    size = np.abs(a).max(0)
    a = a - a.mean(0)
    scale = a.std(0)
    return a / np.where(scale <= 1e-13 * size, np.inf, scale)  # what is left of a constant is rounding
