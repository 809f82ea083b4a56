"""Factor-code matrices."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.metrics.explain import Explanation
from unweave.report.figures.style import escape, make_panels

MAX_NUMBERS = 200  # cells of a matrix whose numbers are printed
MIN_WHITE_TEXT = 0.6  # of the largest value, from which a cell is dark


def draw_matrices(explanation: Explanation) -> Figure:
    """Return mutual information and importance, factors as rows and codes as columns.

    One dark cell in each row and each column means that the codes are disentangled.
    """
    k, d = explanation.information.shape
    longest = max(len(name) for name in explanation.names)
    figure, axes = make_panels(2, width=1.6 + 0.09 * longest + 0.55 * max(3, d), height=1.3 + 0.5 * max(2, k))
    draw_matrix(axes[0], explanation.information, explanation.names)
    axes[0].set_ylabel("factor")
    axes[0].set_title("mutual information / entropy of the factor")
    draw_matrix(axes[1], explanation.importance, explanation.names)
    axes[1].set_title("importance for predicting the factor")
    return figure


def draw_matrix(
    axis: Axes,
    values: np.ndarray,
    names: list[str],
    *,
    minimum: float = 0.0,
    maximum: float = 1.0,
    color_map: str = "Blues",
) -> None:
    """Draw a matrix (k, d) as shades, one row per name and one column per code, with its numbers if it is small."""
    image = axis.imshow(values, vmin=minimum, vmax=maximum, cmap=color_map, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if values.size <= MAX_NUMBERS and not np.isnan(value):
            color = "white" if abs(value) > MIN_WHITE_TEXT * maximum else "black"
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=color)
    axis.set_xticks(range(values.shape[1]), [str(j + 1) for j in range(values.shape[1])])
    axis.set_xlabel("code")
    axis.set_yticks(range(len(names)), [escape(name) for name in names])
    axis.spines[:].set_visible(False)
    axis.get_figure().colorbar(image, ax=axis)  # type: ignore[union-attr]
