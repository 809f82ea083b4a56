"""Interventional robustness score."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import alive, prepare_factors
from unweave.utils.errors import InputError


@metric(
    paper="Suter, Miladinovic, Schoelkopf and Bauer (2019)",
    variants={"q99": {"quantile": 0.99}, "q100": {"quantile": 1.0}},
    default=("q99", "q100"),
)
def irs(factors: Any, codes: Any, *, quantile: float = 0.99) -> float:
    """How little a code moves while its own factor is held fixed and all others change; large codes weigh more.

    The largest deviation within a group of equal factor is taken as a quantile: 0.99 in the reference library, 1.0 in
    the paper. Pure noise scores well above zero: look at the chance level.
    """
    if not 0 < quantile <= 1:
        raise InputError(f"quantile={quantile}: expected more than 0, at most 1")
    c, z = prepare_factors(factors, codes)
    z = z[:, alive(z)]
    if z.shape[1] == 0:
        return 0.0
    most = np.abs(z - z.mean(0)).max(0)  # (d,)
    moved = np.stack([_within(rows, z, quantile) for rows in c.groups], 1) / most[:, None]  # (d, k)
    return float(np.average((1 - moved).max(1), weights=most))


def _within(rows: list[np.ndarray], z: np.ndarray, quantile: float) -> np.ndarray:
    """How far codes stray from their mean while the factor has one value, averaged over its values, (d,)."""
    groups = [z[same] for same in rows]
    return np.mean([np.quantile(np.abs(group - group.mean(0)), quantile, axis=0) for group in groups], 0)
