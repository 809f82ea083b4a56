"""Mutual information gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import BINS, factor_code_information, prepare_factors


@metric(paper="Chen, Li, Grosse and Duvenaud (2018), Eq. 6")
def mig(factors: Any, codes: Any, *, bins: int = BINS) -> float:
    """How much more the best code knows of a factor than the second best, as a share of its entropy, averaged."""
    c, z = prepare_factors(factors, codes)
    told = np.sort(factor_code_information(c, z, bins), 1)  # (k, d)
    second = told[:, -2] if told.shape[1] > 1 else np.zeros(len(told))
    return float(np.mean((told[:, -1] - second) / c.entropies(bins)))
