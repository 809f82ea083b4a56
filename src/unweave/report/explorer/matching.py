"""Codes of two methods, matched one to one, so that a page can show both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.metrics.factors import PreparedFactors
from unweave.metrics.mcc import associations, correlations

MIN_CORRELATION = 0.3  # below which a code has no counterpart

Periods = Sequence[float | None]


class Counterpart(NamedTuple):
    """The code of the other method that a code is matched with."""

    code: int  # -1 for none
    correlation: float  # signed; of an angle the absolute value
    sign: int  # direction in which the counterpart moves, -1 or 1


def match_codes(
    codes: np.ndarray, others: np.ndarray, periods: Periods, other_periods: Periods, is_dead: np.ndarray
) -> list[Counterpart]:
    """Return the counterpart of every code under the best one-to-one match, as `mcc` finds it.

    Args:
        codes: Codes of the first method, (n, d).
        others: Codes of the second method for the same observations, (n, e).
        periods: Period of each code that is an angle, (d,).
        other_periods: The same of the second method, (e,).
        is_dead: Codes of the first method that get no counterpart, (d,).
    """
    strength = associations(PreparedFactors(codes, periods=periods, code_periods=other_periods), others)  # (d, e)
    strength = np.where(is_dead[:, None], 0.0, strength)
    signed = correlations(codes, others)
    rows, columns = linear_sum_assignment(-strength)
    result = [Counterpart(-1, 0.0, 1)] * codes.shape[1]
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if strength[i, j] < MIN_CORRELATION:
            continue
        if periods[i] is None and other_periods[j] is None:
            result[i] = Counterpart(j, round(float(signed[i, j]), 4), -1 if signed[i, j] < 0 else 1)
        else:
            sign = _direction(codes[:, i], others[:, j], periods[i], other_periods[j])
            result[i] = Counterpart(j, round(float(strength[i, j]), 4), sign)
    return result


def _direction(a: np.ndarray, b: np.ndarray, period: float | None, other: float | None) -> int:
    """Return -1 if one angle decreases where the other increases: then their sum varies less than their difference."""
    if period is None or other is None:
        return 1
    a, b = 2 * np.pi * a / period, 2 * np.pi * b / other
    together, against = (abs(np.exp(1j * (a + sign * b)).mean()) for sign in (-1, 1))
    return 1 if together >= against else -1
