"""Interventional robustness score (IRS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factors import active_codes, prepare_factors
from unweave.utils.errors import InputError


@metric(
    paper="Suter, Miladinovic, Schoelkopf and Bauer (2019)",
    variants={"q99": {"quantile": 0.99}, "q100": {"quantile": 1.0}},
    default=("q99", "q100"),
)
def irs(factors: Any, codes: Any, *, quantile: float = 0.99) -> float:
    """Robustness of each code to changes of all factors but its own (Suter et al., 2019).

    For a code and a factor: 1 - (largest deviation from the mean while the factor is constant) / (largest deviation
    over all samples). A code counts by its best factor and is weighted by its largest deviation. Codes of noise score
    well above 0: compare with the chance level.

    Args:
        factors: True factors, (n, k), or the result of `prepared`.
        codes: Codes, (n, d).
        quantile: Quantile used as the largest deviation: 0.99 in the reference library, 1.0 in the paper.

    Returns:
        A number from 0 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(100, 2))
        >>> irs(factors, factors)
        1.0
    """
    if not 0 < quantile <= 1:
        raise InputError(f"quantile={quantile}: expected more than 0, at most 1")
    c, z = prepare_factors(factors, codes)
    z = z[:, active_codes(z)]
    if z.shape[1] == 0:
        return 0.0
    largest = np.abs(z - z.mean(0)).max(0)  # (d,)
    within = np.stack([_deviation_within(groups, z, quantile) for groups in c.groups], 1) / largest[:, None]  # (d, k)
    return float(np.average((1 - within).max(1), weights=largest))


def _deviation_within(groups: list[np.ndarray], z: np.ndarray, quantile: float) -> np.ndarray:
    """Return the deviation of codes from their mean while the factor is constant, averaged over its values, (d,)."""
    values = [z[rows] for rows in groups]
    return np.mean([np.quantile(np.abs(own - own.mean(0)), quantile, axis=0) for own in values], 0)
