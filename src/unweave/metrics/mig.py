"""Mutual information gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..scoring import checked, metric
from ._tables import BINS, entropies, information


@metric(paper="Chen, Li, Grosse and Duvenaud (2018), Eq. 6")
def mig(factors: Any, codes: Any, *, bins: int = BINS) -> float:
    """How much more the best code knows of a factor than the second best, as a share of its entropy, averaged."""
    c, z = checked(factors, codes)
    known = np.sort(information(c, z, bins), 1)  # (k, d)
    second = known[:, -2] if known.shape[1] > 1 else np.zeros(len(known))
    return float(np.mean((known[:, -1] - second) / entropies(c, bins)))
