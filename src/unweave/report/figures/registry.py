"""Figures of a fitted method by name. `Method.figures` lists those that a method supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Generator

from unweave.data.core import FactorData
from unweave.experiments.ordered import order_observations
from unweave.methods.base import FigureName, Method
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.embedding import draw_codes
from unweave.report.figures.flows import MAX_VARIABLES, class_centers, draw_samples, draw_spectra, draw_variable
from unweave.report.figures.loadings import draw_loadings, draw_scree
from unweave.report.figures.ordered import describe_missing, draw_ordered
from unweave.report.figures.traversal import (
    draw_interpolation,
    draw_kl_per_code,
    draw_reconstructions,
    draw_traversals,
)
from unweave.report.sample import DrawnData
from unweave.utils.errors import InputError, unknown

MAX_OBSERVATIONS = 2_000  # that determine the range of each code
MAX_RECONSTRUCTIONS = 10  # observations shown beside their reconstructions


def sample_observations(data: FactorData, seed: int = 0) -> DrawnData:
    """Return at most `MAX_OBSERVATIONS` observations in random order; of finite data, each at most once."""
    rng = Generator().manual_seed(seed)
    points = data.points_or_sample(MAX_OBSERVATIONS, rng)
    rows = torch.randperm(len(points), generator=rng)[:MAX_OBSERVATIONS]
    names = data.row_names or ()
    row_names = [names[i] for i in rows.tolist()] if len(names) == len(points) else None
    x, c = data.render(points[rows]).float(), data.labels(points[rows])
    return DrawnData(x.numpy(force=True), c.numpy(force=True), data.factors, row_names, data.feature_names)


Figures = Figure | dict[str, Figure]
FigureFunction = Callable[[Any, DrawnData], Figures]
"""(method, data) -> one figure, or several by file name"""


def draw_figures(method: Method, data: DrawnData) -> dict[str, Figure]:
    """Return all figures that a fitted method supports, by file name without suffix.

    Args:
        method: A fitted method; `method.figures()` names its figures.
        data: Observations, (n, *shape), with their factors.
    """
    figures: dict[str, Figure] = {}
    for entry in method.figures():
        name, draw = resolve_figure(entry)
        drawn = draw(method, data)
        figures |= drawn if isinstance(drawn, dict) else {name: drawn}
    if not figures:
        raise InputError(f"all codes of {type(method).__name__} are constant: nothing to draw")
    return figures


def resolve_figure(entry: FigureName) -> tuple[str, FigureFunction]:
    """Return the name and the function of an entry of `Method.figures`, which is a name or a function."""
    if callable(entry):  # a user's function takes arrays
        name = getattr(entry, "__name__", type(entry).__name__)
        return name, lambda method, data: entry(method, data.x, data.labels)
    if entry not in FIGURES:
        raise unknown("figure", entry, list(FIGURES))
    return entry, FIGURES[entry]


def _draw_along_codes(method: Any, data: DrawnData) -> dict[str, Figure]:
    """Draw observations along each code; nothing if no code varies."""
    codes, periods = method.transform(data.x), method.code_periods()
    names: Any = {"row_names": data.row_names, "feature_names": data.feature_names}
    ordered = order_observations(codes, data.x, periods, **names)
    return {} if ordered is None else draw_ordered(ordered, periods, describe_missing(codes, ordered))


def _draw_curves(method: Any, data: DrawnData) -> Figure:
    return draw_loss_curves({method.name: method.history})


def _draw_variables(method: Any, data: DrawnData) -> dict[str, Figure]:
    """Draw every informative variable of a flow, with a row for each label; nothing without labels."""
    return {} if data.labels is None else _draw_each_variable(method, class_centers(method, data.x, data.labels))


def _draw_class_variables(method: Any, data: DrawnData) -> dict[str, Figure]:
    """Draw every informative variable of a flow, with a row for each class that it learned."""
    return _draw_each_variable(method, method.class_statistics())


def _draw_each_variable(method: Any, rows: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Figure]:
    count = min(method.n_informative_, MAX_VARIABLES)
    return {f"variable-{j + 1:02}": draw_variable(method, j, rows) for j in range(count)}


def _draw_class_samples(method: Any, data: DrawnData) -> dict[str, Figure]:
    informative = draw_samples(method, temperature=0.8, informative=True)
    return {"samples": draw_samples(method), "samples-informative": informative}


FIGURES: dict[str, FigureFunction] = {
    "along-codes": _draw_along_codes,
    "codes": lambda method, data: draw_codes(method.transform(data.x), data.truth, data.factors, method.code_periods()),
    "curves": _draw_curves,
    "kl": lambda method, data: draw_kl_per_code(method, data.x),
    "traversals": lambda method, data: draw_traversals(method, data.x),
    "reconstructions": lambda method, data: draw_reconstructions(method, data.x[:MAX_RECONSTRUCTIONS]),
    "interpolation": lambda method, data: draw_interpolation(method, data.x[0], data.x[1]),
    "spectrum": lambda method, data: draw_spectra(method, data.x),
    "variables": _draw_variables,
    "class-variables": _draw_class_variables,
    "samples": _draw_class_samples,
    "scree": lambda method, data: draw_scree(method),
    "loadings": lambda method, data: draw_loadings(method),
}
