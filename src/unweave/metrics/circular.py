"""Correlation with angles: of two angles, and of an angle with an ordinary number."""

from __future__ import annotations

import numpy as np

from unweave.metrics.factors import PreparedFactors, unit_circle
from unweave.utils.errors import InputError


def circular_associations(c: PreparedFactors, z: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return absolute correlations of factors and codes, (k, d), where either may be circular.

    Args:
        c: Factors with their periods, and those of the codes.
        z: Codes, (n, d).
        r: Correlations of all of them as ordinary numbers, (k, d); used for pairs without an angle.

    Two angles: the coefficient of Fisher and Lee (1983), which is 1 for any offset and direction. An angle and a
    number: the root of the share of variance that a linear regression between the number and (cos, sin) explains.
    """
    strength = np.abs(r)
    code_periods = c.code_periods or (None,) * z.shape[1]
    for j, period in enumerate(c.periods):
        for i, code_period in enumerate(code_periods):
            if period is not None and code_period is not None:
                strength[j, i] = fisher_lee(c.targets(j), unit_circle(z[:, i], code_period))
            elif period is not None:
                strength[j, i] = _explained_root(z[:, i, None], c.targets(j))
            elif code_period is not None:
                strength[j, i] = _explained_root(unit_circle(z[:, i], code_period), c.c[:, j, None])
    return strength


def no_angles_error() -> InputError:
    """Return the error of a score of angles where no factor is one."""
    return InputError("no factor is circular: name one, e.g. --circular azimuth=360, or prepared(..., kinds=...)")


def fisher_lee(a: np.ndarray, b: np.ndarray) -> float:
    """Return the absolute correlation of two angles as points on the unit circle, (n, 2) each (Fisher and Lee, 1983).

    It is the determinant of the cross moments, normalized: 1 if and only if one angle is the other plus a constant, or
    its mirror image.
    """
    cross, own_a, own_b = (np.linalg.det(u.T @ v / len(a)) for u, v in ((a, b), (a, a), (b, b)))
    scale = np.sqrt(max(own_a, 0.0) * max(own_b, 0.0))
    return min(1.0, abs(float(cross)) / float(scale)) if scale > 1e-12 else 0.0


def _explained_root(x: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the share of the variance of y (n, b) that a linear regression on x (n, a) explains."""
    x, y = x - x.mean(0), y - y.mean(0)
    total = float((y**2).sum())
    if total <= 0 or np.ptp(x, axis=0).max() <= 1e-12 * max(np.abs(x).max(), 1e-300):
        return 0.0
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(np.sqrt(max(0.0, 1 - (rest**2).sum() / total)))
