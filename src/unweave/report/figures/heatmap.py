"""Correlations between factors and codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from unweave.data.core import Factor
from unweave.metrics.mcc import correlations
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import make_panels


def draw_correlations(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor]) -> Figure | None:
    """Return the absolute Pearson correlation of every factor with every code; None without ordered factors.

    Args:
        codes: Codes, (n, d).
        truth: Values of the factors, (n, k).
        factors: Names and kinds of the factors, k of them.
    """
    rows = [
        j
        for j, factor in enumerate(factors)
        if factor.kind != "nominal" and not factor.noise and np.ptp(truth[:, j]) > 0
    ]
    if not rows:
        return None
    r = np.abs(correlations(truth[:, rows], codes))  # (k, d)
    figure, (axis,) = make_panels(1, width=1.3 + 0.7 * max(2, r.shape[1]), height=1.2 + 0.6 * max(2, len(rows)))
    draw_matrix(axis, r, [factors[j].name for j in rows])
    axis.set_ylabel("factor")
    axis.set_title("absolute correlation")
    return figure
