"""Angle error: how far off are angles that are read from the codes?"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from unweave.metrics.circular import no_angles_error
from unweave.metrics.contract import CIRCULAR, metric
from unweave.metrics.factors import PreparedFactors, expand_angles, prepare_factors
from unweave.utils.errors import InputError

FOLDS = 5


@metric(paper="Unweave", best=0.0, worst=None, kinds={"": CIRCULAR})
def angle_error(factors: Any, codes: Any, *, seed: int = 0) -> float:
    """Median error of circular factors that are read from the codes, in units of the factor.

    A linear regression on all codes predicts cosine and sine of a factor, by five-fold cross-validation; codes that are
    angles enter with their own cosine and sine, so that offset and direction do not matter. The error is measured along
    the circle. Codes without information give a quarter of a turn. Several circular factors are averaged.

    Args:
        factors: The result of `prepared` with circular factors; other factors are ignored.
        codes: Codes, (n, d).
        seed: Seed of the folds.

    Returns:
        A number from 0 to half a turn; 0 is best.

    Example:
        >>> import numpy as np
        >>> from unweave.metrics import prepared
        >>> angle = np.arange(0.0, 360, 5)
        >>> truth = prepared(angle, kinds=("circular", 360))
        >>> round(angle_error(truth, np.stack([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))], 1)), 3)
        0.0
    """
    c, z = prepare_factors(factors, codes)
    circular = [j for j, period in enumerate(c.periods) if period is not None]
    if not circular:
        raise no_angles_error()
    if len(z) < 2 * FOLDS:
        raise InputError(f"{len(z)} samples are too few for {FOLDS}-fold cross-validation")
    x = expand_angles(z, c.code_periods)
    return float(np.mean([_median_error(c, j, x, seed) for j in circular]))


def _median_error(c: PreparedFactors, j: int, x: np.ndarray, seed: int) -> float:
    """Return the median distance along the circle between factor j and its prediction, in units of the factor."""
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    cosine, sine = cross_val_predict(LinearRegression(), x, c.targets(j), cv=folds).T
    period = float(c.periods[j] or 0)
    difference = np.arctan2(sine, cosine) * (period / (2 * np.pi)) - c.c[:, j]
    return float(np.median(np.abs((difference + period / 2) % period - period / 2)))
