"""Distances of near pairs, in the data and in the codes: on a line means locally isometric."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from unweave.report.figures.style import make_panels


def draw_isometry(pairs: np.ndarray, score: float | None = None) -> Figure:
    """pairs (m, 2): the distance in the data, the distance in the rescaled codes."""
    figure, (axis,) = make_panels(1)
    axis.scatter(pairs[:, 0], pairs[:, 1], s=3, alpha=0.4, linewidths=0, color="tab:blue", rasterized=True)
    top = float(pairs[:, 0].max()) * 1.05
    axis.plot([0, top], [0, top], color="0.3", linewidth=1)
    axis.set_xlim(0, top)
    axis.set_ylim(0, max(top, float(np.quantile(pairs[:, 1], 0.995)) * 1.05))
    axis.set_xlabel("distance in the data")
    axis.set_ylabel("distance in the codes, rescaled")
    axis.set_title("near pairs" if score is None else f"local isometry {score:.3f}")
    return figure
