"""Modularity: does each code carry information about one factor only?"""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import BINS, factor_code_information, prepare_factors
from unweave.utils.errors import InputError


@metric(paper="Ridgeway and Mozer (2018), Sec. 3")
def modularity(factors: Any, codes: Any, *, bins: int = BINS) -> float:
    """Share of a code's squared information that is about one factor (Ridgeway and Mozer, 2018, Sec. 3).

    For a code with information m_j about factor j, largest for factor b: 1 - sum(m_j^2, j != b) / (m_b^2 (k - 1)),
    averaged over codes. A code without information counts as 0. Codes of noise score above 0, since their estimated
    information is random: compare with the chance level.

    Args:
        factors: True factors, (n, k) with k > 1, or the result of `prepared`.
        codes: Codes, (n, d).
        bins: Bins of equal width per code and per continuous factor.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(100, 2))
        >>> round(modularity(factors, factors), 2)
        1.0
    """
    c, z = prepare_factors(factors, codes)
    if c.count < 2:
        raise InputError("modularity compares factors, and there is only one")
    squared = factor_code_information(c, z, bins).T ** 2  # (d, k)
    best = squared.max(1)
    rest = (squared.sum(1) - best) / np.where(best > 0, best * (c.count - 1), 1)
    return float(np.mean(np.where(best > 0, 1 - rest, 0)))
