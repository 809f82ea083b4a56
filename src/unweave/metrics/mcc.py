"""Mean correlation coefficient."""

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
    """Mean |correlation| of each factor with its own code, under the best one-to-one match of codes to factors.

    The match is the Hungarian method's. A factor that is left without a code, because there are fewer codes than
    factors, counts as zero; so does a code that never changes. 1 is best.
    """
    c, z = prepare_factors(factors, codes)
    r = np.abs(correlations(c.c, z, correlation))
    rows, columns = linear_sum_assignment(-r)
    return min(1.0, float(r[rows, columns].sum() / c.count))  # rounding may leave a little more


def correlations(c: np.ndarray, z: np.ndarray, correlation: str = "pearson") -> np.ndarray:
    """The correlation of every column of c with every column of z, (n, k) and (n, d) -> (k, d)."""
    if correlation not in ("pearson", "spearman"):
        raise InputError(f"correlation={correlation!r}: expected 'pearson' or 'spearman'")
    if correlation == "spearman":
        c, z = rankdata(c, axis=0), rankdata(z, axis=0)
    return _standard(c).T @ _standard(z) / len(c)


def _standard(a: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1; a column that never changes becomes zeros."""
    size = np.abs(a).max(0)
    a = a - a.mean(0)
    scale = a.std(0)
    return a / np.where(scale <= 1e-13 * size, np.inf, scale)  # what is left of a constant is rounding
