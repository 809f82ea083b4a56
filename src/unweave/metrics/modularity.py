"""Modularity: does each code know of one factor only?"""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import BINS, factor_code_information, prepare_factors
from unweave.utils.errors import InputError


@metric(paper="Ridgeway and Mozer (2018), Sec. 3")
def modularity(factors: Any, codes: Any, *, bins: int = BINS) -> float:
    """One minus the squared information of a code on all but its best factor, relative to that of the best; averaged.

    A code that knows nothing counts as zero. Codes of pure noise score above zero: look at the chance level.
    """
    c, z = prepare_factors(factors, codes)
    if c.count < 2:
        raise InputError("modularity compares factors, and there is one only")
    squared = factor_code_information(c, z, bins).T ** 2  # (d, k)
    best = squared.max(1)
    rest = (squared.sum(1) - best) / np.where(best > 0, best * (c.count - 1), 1)
    return float(np.mean(np.where(best > 0, 1 - rest, 0)))
