"""Scatter plots of codes, colored by each true factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.data.core import Factor
from unweave.report.figures.style import SMALL_FONT, make_panels

MAX_POINTS = 4_000
MAX_FACTORS = 4
MAX_CLASSES = 10  # more classes are colored by a ramp, without a legend
MIN_RELATIVE_DEVIATION = 0.25  # of an active code, relative to the code that varies most
DOT_SIZE = 4


def draw_embedding(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor]) -> Figure:
    """Return one panel per factor: two active codes as axes, the factor as color.

    A single code is drawn against the factor. Where each factor's color changes along one axis only, the codes are
    disentangled.

    Args:
        codes: Codes, (n, d).
        truth: Values of the factors, (n, k).
        factors: Names and kinds of the factors, k of them.
    """
    if len(codes) > MAX_POINTS:
        subset = np.random.default_rng(0).choice(len(codes), MAX_POINTS, replace=False)
        codes, truth = codes[subset], truth[subset]
    is_plane = codes.shape[1] > 1
    first, second = pick_active_codes(codes) if is_plane else (0, 0)
    columns = [j for j, factor in enumerate(factors) if not factor.noise][:MAX_FACTORS]
    figure, axes = make_panels(max(1, len(columns)))
    for axis, j in zip(axes, columns if columns else (None,), strict=True):
        y = codes[:, second] if is_plane else np.zeros(len(codes)) if j is None else truth[:, j]
        axis.set_xlabel(f"code {first + 1}")
        axis.set_ylabel(f"code {second + 1}" if is_plane else "" if j is None else factors[j].name)
        axis.set_title("codes" if j is None else f"colored by {factors[j].name}")
        if j is not None and factors[j].kind == "nominal" and (factors[j].size or 0) <= MAX_CLASSES:
            _draw_classes(axis, codes[:, first], y, truth[:, j], factors[j])
            continue
        ramp: Any = {} if j is None else {"c": truth[:, j], "cmap": "viridis"}
        dots = axis.scatter(codes[:, first], y, s=DOT_SIZE, linewidths=0, rasterized=True, **ramp)
        if j is not None:
            figure.colorbar(dots, ax=axis, label=factors[j].name)
    return figure


def pick_active_codes(codes: np.ndarray) -> tuple[int, int]:
    """Return the first two active codes of (n, d), or the two that vary most if fewer are active.

    A code is active if its standard deviation is at least a quarter of the largest one.
    """
    deviations = codes.std(0)
    active = np.flatnonzero(deviations >= MIN_RELATIVE_DEVIATION * deviations.max())
    first, second = (active if len(active) > 1 else np.sort(np.argsort(-deviations)[:2]))[:2].tolist()
    return first, second


def _draw_classes(axis: Axes, x: np.ndarray, y: np.ndarray, classes: np.ndarray, factor: Factor) -> None:
    """Draw points with a color and a legend entry for each class."""
    for k in range(factor.size or 0):
        name = str(factor.values[k]) if factor.values else str(k)
        rows = classes == k
        axis.scatter(x[rows], y[rows], s=DOT_SIZE, linewidths=0, rasterized=True, color=f"C{k}", label=name)
    axis.legend(fontsize=SMALL_FONT, markerscale=3, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
