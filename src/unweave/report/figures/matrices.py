"""What each code knows of each factor, twice: by information and by what a classifier makes use of."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.metrics.explain import Explanation
from unweave.report.figures.style import make_panels


def draw_matrices(found: Explanation) -> Figure:
    """Two panels, factors down and codes across; one dark cell in each row and column means disentangled."""
    k, d = found.information.shape
    longest = max(len(name) for name in found.names)
    figure, axes = make_panels(2, width=1.6 + 0.09 * longest + 0.55 * max(3, d), height=1.3 + 0.5 * max(2, k))
    draw_matrix(axes[0], found.information, found.names)
    axes[0].set_title("information: share of the factor's entropy")
    draw_matrix(axes[1], found.importance, found.names)
    axes[1].set_title("importance for predicting the factor")
    return figure


def draw_matrix(
    axis: Axes, values: np.ndarray, names: list[str], *, least: float = 0.0, most: float = 1.0, palette: str = "Blues"
) -> None:
    """A matrix between `least` and `most` as shades, with its numbers where they have room."""
    picture = axis.imshow(values, vmin=least, vmax=most, cmap=palette, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if values.size <= 200 and not np.isnan(value):
            axis.text(
                j, i, f"{value:.2f}", ha="center", va="center", color="white" if abs(value) > 0.6 * most else "black"
            )
    axis.set_xticks(range(values.shape[1]), [str(j + 1) for j in range(values.shape[1])])
    axis.set_xlabel("code")
    axis.set_yticks(range(len(names)), names)
    axis.spines[:].set_visible(False)
    axis.get_figure().colorbar(picture, ax=axis)  # type: ignore[union-attr]
