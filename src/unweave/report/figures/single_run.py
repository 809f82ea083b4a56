"""Figures of one run: observations and traversals along each code, codes by factors, correlations, local isometry."""

from __future__ import annotations

from matplotlib.figure import Figure

from unweave import catalog
from unweave.experiments.ordered import IMAGE_DIMENSIONS, OrderedImages, Periods, read_ordered
from unweave.experiments.run import FinishedRun
from unweave.report.figures.embedding import draw_codes
from unweave.report.figures.heatmap import draw_correlations
from unweave.report.figures.isometry import draw_isometry
from unweave.report.figures.loadings import draw_linear
from unweave.report.figures.ordered import describe_missing, draw_ordered
from unweave.report.figures.traversal import draw_code_traversals
from unweave.utils.errors import InputError

Captioned = list[tuple[str, Figure]]


def draw_run(run: FinishedRun) -> Captioned:
    """Return captions and figures."""
    periods = code_periods(run)
    traversals = draw_run_traversals(run)
    caption = "Traversals: each row changes one code and keeps the others fixed. The first image is the starting point."
    figures = draw_along_codes(run, periods) + ([(caption, traversals)] if traversals is not None else [])
    figures += caption_codes(draw_codes(run.codes, run.truth, run.factors, periods), run)
    correlations = draw_correlations(run.codes, run.truth, run.factors, periods)
    if correlations is not None:
        figures.append((_caption_correlations(run, periods), correlations))
    if len(run.pairs):
        caption = "Pairs of neighbors. On the line, codes preserve the distance in the data."
        figures.append((caption, draw_isometry(run.pairs, run.scores.get("local-isometry"))))
    return figures + draw_run_components(run)


def code_periods(run: FinishedRun) -> Periods:
    """Return the period of each code; None for all codes of a run of an earlier version."""
    periods: list[float | None] = run.env.get("code_periods") or []
    return periods if len(periods) == run.codes.shape[1] else [None] * run.codes.shape[1]


def draw_along_codes(run: FinishedRun, periods: Periods) -> Captioned:
    """Return the observations along each code that the run folder holds; nothing for one of an earlier version."""
    ordered = read_ordered(run.folder)
    if ordered is None:
        return []
    if isinstance(ordered, OrderedImages):
        caption = (
            "Real observations along each code, its value below. The other codes stay similar where the data allow."
        )
    else:
        caption = (
            "Columns that change most along each code: means of groups of rows, from low to high values of the code."
        )
        caption += " At the right, the means at both ends in the units of the column."
    if any(period is not None for period in periods):
        caption += " An angle goes once around: the last place is the first again."
    return [
        (caption, figure) for figure in draw_ordered(ordered, periods, describe_missing(run.codes, ordered)).values()
    ]


def caption_codes(figures: dict[str, Figure], run: FinishedRun) -> Captioned:
    """Return figures of the codes with captions, the meaning of the colors in the first only."""
    pairs = [figure for name, figure in figures.items() if not name.startswith("codes-over-factors")]
    captions = ["The same codes, colored by another factor."] * len(pairs)
    if pairs and not run.factors:
        captions[0] = "The codes."
    elif pairs:
        which = "The codes" if len(pairs) == len(figures) else "The two codes that depend most on each factor"
        caption = f"{which}, colored by the real values of the factors."
        captions[0] = f"{caption} If a factor's color changes along one axis only, one code represents it."
    text = "Each code over the real values of each factor. A code that represents a factor depends on no other."
    grids = [(text, figure) for name, figure in figures.items() if name.startswith("codes-over-factors")]
    return [*zip(captions, pairs, strict=True), *grids]


def _caption_correlations(run: FinishedRun, periods: Periods) -> str:
    caption = "One dark cell per row and column means one code per factor."
    if any(factor.period is not None for factor in run.factors) or any(p is not None for p in periods):
        caption += " Angles count by their cosine and sine."
    return caption


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
