"""The codes as points, colored by each true factor: one color ramp per axis means disentangled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.data.core import Factor
from unweave.report.figures.style import make_panels

MOST_POINTS = 4_000
MOST_FACTORS = 4


def draw_embedding(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor]) -> Figure:
    """codes (n, d) and truth (n, k): two codes that vary, one panel per factor; with one code, against the factor."""
    if len(codes) > MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(codes), MOST_POINTS, replace=False)
        codes, truth = codes[chosen], truth[chosen]
    several = codes.shape[1] > 1
    first, second = pick_active_codes(codes) if several else (0, 0)
    shown = [j for j, f in enumerate(factors) if not f.noise][:MOST_FACTORS]
    figure, axes = make_panels(max(1, len(shown)))
    for axis, j in zip(axes, shown if shown else (None,), strict=True):
        y = codes[:, second] if several else np.zeros(len(codes)) if j is None else truth[:, j]
        axis.set_xlabel(f"code {first + 1}")
        axis.set_ylabel(f"code {second + 1}" if several else "" if j is None else factors[j].name)
        axis.set_title("codes" if j is None else f"colored by {factors[j].name}")
        if j is not None and factors[j].kind == "nominal" and (factors[j].size or 0) <= 10:
            _by_class(axis, codes[:, first], y, truth[:, j], factors[j])
            continue
        ramp: Any = {} if j is None else {"c": truth[:, j], "cmap": "viridis"}
        dots = axis.scatter(codes[:, first], y, s=4, linewidths=0, rasterized=True, **ramp)
        if j is not None:
            figure.colorbar(dots, ax=axis, label=factors[j].name)
    return figure


def pick_active_codes(codes: np.ndarray) -> tuple[int, int]:
    """The first two of codes (n, d) that vary at least a quarter as much as the most; else the two that vary most."""
    spread = codes.std(0)
    alive = np.flatnonzero(spread >= spread.max() / 4)
    first, second = (alive if len(alive) > 1 else np.sort(np.argsort(-spread)[:2]))[:2].tolist()
    return first, second


def _by_class(axis: Axes, x: np.ndarray, y: np.ndarray, classes: np.ndarray, factor: Factor) -> None:
    """A color and a name for each class."""
    for k in range(factor.size or 0):
        name = str(factor.values[k]) if factor.values else str(k)
        mine = classes == k
        axis.scatter(x[mine], y[mine], s=4, linewidths=0, rasterized=True, color=f"C{k}", label=name)
    axis.legend(fontsize=7, markerscale=3, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
