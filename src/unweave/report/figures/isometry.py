"""Distances between neighbors, in the data and in the codes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from unweave.report.figures.style import make_panels

MARGIN = 1.05  # of the largest distance, so that points do not touch the border
UPPER_QUANTILE = 0.995  # of the distances between codes; outliers are cut off


def draw_isometry(pairs: np.ndarray, score: float | None = None) -> Figure:
    """Return a scatter plot of distances; points on the diagonal mean that the codes are locally isometric.

    Args:
        pairs: For every pair of neighbors the distance in the data and in the rescaled codes, (m, 2).
        score: Local isometry, for the title.
    """
    figure, (axis,) = make_panels(1)
    axis.scatter(pairs[:, 0], pairs[:, 1], s=3, alpha=0.4, linewidths=0, color="tab:blue", rasterized=True)
    limit = float(pairs[:, 0].max()) * MARGIN
    axis.plot([0, limit], [0, limit], color="0.3", linewidth=1)
    axis.set_xlim(0, limit)
    axis.set_ylim(0, max(limit, float(np.quantile(pairs[:, 1], UPPER_QUANTILE)) * MARGIN))
    axis.set_xlabel("distance in the data")
    axis.set_ylabel("distance in the codes (rescaled)")
    axis.set_title("pairs of neighbors" if score is None else f"local isometry {score:.3f}")
    return figure
