"""How much each code has to do with each factor: one strong cell per row and column means disentangled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ..data import Factor
from ..metrics.mcc import correlations
from .style import panels


def heatmap(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor]) -> Figure | None:
    """|Pearson correlation| of every factor with every code; None where no factor has an order to correlate with."""
    rows = [j for j, f in enumerate(factors) if f.kind != "nominal" and not f.noise and np.ptp(truth[:, j]) > 0]
    if not rows:
        return None
    r = np.abs(correlations(truth[:, rows], codes))  # (k, d)
    figure, (axis,) = panels(1, width=1.3 + 0.7 * max(2, r.shape[1]), height=1.2 + 0.6 * max(2, len(rows)))
    picture = axis.imshow(r, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for (i, j), value in np.ndenumerate(r):
        if r.size <= 100:
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
    axis.set_xticks(range(r.shape[1]), [f"code {j + 1}" for j in range(r.shape[1])])
    axis.set_yticks(range(len(rows)), [factors[j].name for j in rows])
    axis.spines[:].set_visible(False)
    axis.set_title("|correlation|")
    figure.colorbar(picture, ax=axis)
    return figure
