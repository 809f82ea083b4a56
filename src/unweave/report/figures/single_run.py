"""Figures of one run: traversals, codes colored by factors, correlations, local isometry, loadings."""

from __future__ import annotations

from matplotlib.figure import Figure

from unweave import catalog
from unweave.experiments.run import FinishedRun
from unweave.report.figures.embedding import draw_embedding
from unweave.report.figures.heatmap import draw_correlations
from unweave.report.figures.isometry import draw_isometry
from unweave.report.figures.loadings import draw_linear
from unweave.report.figures.traversal import draw_code_traversals
from unweave.utils.errors import InputError

IMAGE_DIMENSIONS = (2, 3)  # axes of an observation that can be shown as an image


def draw_run(run: FinishedRun) -> list[tuple[str, Figure]]:
    """Return captions and figures."""
    caption = "Traversals: each row changes one code and keeps the others fixed. The first image is the starting point."
    figures = [(caption, draw_run_traversals(run))]
    caption = "The codes. If a factor's color changes along one axis only, one code represents it."
    figures.append((caption if run.factors else "The codes.", draw_embedding(run.codes, run.truth, run.factors)))
    correlations = draw_correlations(run.codes, run.truth, run.factors)
    figures.append(("One dark cell per row and column means one code per factor.", correlations))
    isometry = draw_isometry(run.pairs, run.scores.get("local-isometry")) if len(run.pairs) else None
    figures.append(("Pairs of neighbors. On the line, codes preserve the distance in the data.", isometry))
    return [(caption, figure) for caption, figure in figures if figure is not None] + draw_run_components(run)


def draw_run_components(run: FinishedRun) -> list[tuple[str, Figure]]:
    """Return captions and figures of a linear method on a table: variance and loadings; none for other runs."""
    if len(run.env["data"]["shape"]) != 1:
        return []
    try:
        return draw_linear(catalog.load(run.folder))
    except InputError:  # a class of the user, whose file the folder does not name
        return []


def draw_run_traversals(run: FinishedRun) -> Figure | None:
    """Return traversals, if the run decodes images and its class can be imported; otherwise None."""
    if len(run.env["data"]["shape"]) not in IMAGE_DIMENSIONS:
        return None
    try:
        method = catalog.load(run.folder)
    except InputError:  # a class of the user, whose file the folder does not name
        return None
    return draw_code_traversals(method, run.codes) if method.has_decoder() else None
