"""Figures of a fitted method by name. `Method.figures` lists those that a method supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unweave.methods.base import FigureName, Method
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.flows import MAX_VARIABLES, class_centers, draw_samples, draw_spectra, draw_variable
from unweave.report.figures.loadings import draw_loadings, draw_scree
from unweave.report.figures.traversal import (
    draw_interpolation,
    draw_kl_per_code,
    draw_reconstructions,
    draw_traversals,
)
from unweave.utils.errors import InputError, unknown

MAX_RECONSTRUCTIONS = 10  # observations shown beside their reconstructions

Figures = Figure | dict[str, Figure]
FigureFunction = Callable[[Any, np.ndarray, np.ndarray | None], Figures]
"""(method, observations (n, *shape), labels (n,) or None) -> one figure, or several by file name"""


def draw_figures(method: Method, x: np.ndarray, labels: np.ndarray | None) -> dict[str, Figure]:
    """Return all figures that a fitted method supports, by file name without suffix.

    Args:
        method: A fitted method; `method.figures()` names its figures.
        x: Observations, (n, *shape).
        labels: One class per observation, (n,), or None.
    """
    figures: dict[str, Figure] = {}
    for entry in method.figures():
        name, draw = resolve_figure(entry)
        drawn = draw(method, x, labels)
        figures |= drawn if isinstance(drawn, dict) else {name: drawn}
    if not figures:
        raise InputError(f"{type(method).__name__} has neither a decoder for images nor a history: nothing to draw")
    return figures


def resolve_figure(entry: FigureName) -> tuple[str, FigureFunction]:
    """Return the name and the function of an entry of `Method.figures`, which is a name or a function."""
    if callable(entry):
        return getattr(entry, "__name__", type(entry).__name__), entry
    if entry not in FIGURES:
        raise unknown("figure", entry, list(FIGURES))
    return entry, FIGURES[entry]


def _draw_curves(method: Any, x: np.ndarray, labels: np.ndarray | None) -> Figure:
    return draw_loss_curves({method.name: method.history})


def _draw_variables(method: Any, x: np.ndarray, labels: np.ndarray | None) -> dict[str, Figure]:
    """Draw every informative variable of a flow, with a row for each label; nothing without labels."""
    return {} if labels is None else _draw_each_variable(method, class_centers(method, x, labels))


def _draw_class_variables(method: Any, x: np.ndarray, labels: np.ndarray | None) -> dict[str, Figure]:
    """Draw every informative variable of a flow, with a row for each class that it learned."""
    return _draw_each_variable(method, method.class_statistics())


def _draw_each_variable(method: Any, rows: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Figure]:
    count = min(method.n_informative_, MAX_VARIABLES)
    return {f"variable-{j + 1:02}": draw_variable(method, j, rows) for j in range(count)}


def _draw_class_samples(method: Any, x: np.ndarray, labels: np.ndarray | None) -> dict[str, Figure]:
    informative = draw_samples(method, temperature=0.8, informative=True)
    return {"samples": draw_samples(method), "samples-informative": informative}


FIGURES: dict[str, FigureFunction] = {
    "curves": _draw_curves,
    "kl": lambda method, x, labels: draw_kl_per_code(method, x),
    "traversals": lambda method, x, labels: draw_traversals(method, x),
    "reconstructions": lambda method, x, labels: draw_reconstructions(method, x[:MAX_RECONSTRUCTIONS]),
    "interpolation": lambda method, x, labels: draw_interpolation(method, x[0], x[1]),
    "spectrum": lambda method, x, labels: draw_spectra(method, x),
    "variables": _draw_variables,
    "class-variables": _draw_class_variables,
    "samples": _draw_class_samples,
    "scree": lambda method, x, labels: draw_scree(method),
    "loadings": lambda method, x, labels: draw_loadings(method),
}
