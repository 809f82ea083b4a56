"""Mutual information gap (MIG)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import BINS, factor_code_information, prepare_factors


@metric(paper="Chen, Li, Grosse and Duvenaud (2018), Eq. 6")
def mig(factors: Any, codes: Any, *, bins: int = BINS) -> float:
    """Gap in mutual information between the two most informative codes of a factor (Chen et al., 2018, Eq. 6).

    The gap is a share of the factor's entropy, averaged over factors. Mutual information is estimated by histograms.
    Codes that are independent of the factors score near 0.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        bins: Bins of equal width per code and per continuous factor.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(100, 2))
        >>> round(mig(factors, factors), 2), round(mig(factors, factors @ [[1, 1], [1, -1]]), 2)
        (0.98, 0.02)
    """
    c, z = prepare_factors(factors, codes)
    information = np.sort(factor_code_information(c, z, bins), 1)  # (k, d), ascending
    second = information[:, -2] if information.shape[1] > 1 else np.zeros(len(information))
    return float(np.mean((information[:, -1] - second) / c.entropies(bins)))
