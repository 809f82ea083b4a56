"""One run in pictures: what its codes do to images, where they lie, what they have to do with factors."""

from __future__ import annotations

from matplotlib.figure import Figure

from unweave import catalog
from unweave.experiments.run import FinishedRun
from unweave.report.figures.embedding import draw_embedding
from unweave.report.figures.heatmap import draw_correlations
from unweave.report.figures.isometry import draw_isometry
from unweave.report.figures.traversal import draw_code_traversals
from unweave.utils.errors import InputError

IMAGES = (2, 3)  # axes of an observation that can be shown


def draw_run(run: FinishedRun) -> list[tuple[str, Figure]]:
    """Captions and figures."""
    figures = [("Each row moves one code alone: what changes is what the code means.", draw_run_traversals(run))]
    ramps = "If each factor's colors run along one axis, every code is one factor." if run.factors else "The codes."
    figures.append((ramps, draw_embedding(run.codes, run.truth, run.factors)))
    heat = draw_correlations(run.codes, run.truth, run.factors)
    figures.append(("One dark cell per row and column: each factor has a code of its own.", heat))
    near = draw_isometry(run.pairs, run.scores.get("local-isometry")) if len(run.pairs) else None
    figures.append(("Near pairs on the line: a small step in the data is the same step in the codes.", near))
    return [(caption, figure) for caption, figure in figures if figure is not None]


def draw_run_traversals(run: FinishedRun) -> Figure | None:
    """Traversals, where the run decodes images and its class is here to do so."""
    if len(run.env["data"]["shape"]) not in IMAGES:
        return None
    try:
        method = catalog.load(run.folder)
    except InputError:  # a class of the user's own, which is not here
        return None
    return draw_code_traversals(method, run.codes) if method.has_decoder() else None
