"""Scatter plots of codes as data: the columns of a run are packed once, and panels refer to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from unweave.experiments.ordered import Periods
from unweave.experiments.run import FinishedRun
from unweave.report.figures.embedding import HISTOGRAM_BINS, MAX_GRID_POINTS, CodeLayout, arrange_codes
from unweave.report.figures.scales import FactorScale, angle_text
from unweave.report.plots.overview import Plot
from unweave.report.plots.packing import pack_column, round_number, round_numbers

MAX_POINTS = 2_000  # observations of a run on the page
MARGIN = 1.05  # of the largest distance, so that points do not touch the border
UPPER_QUANTILE = 0.995  # of the distances between codes; outliers are cut off
STOPS = 17  # colors of a ramp, between which the page interpolates


def describe_codes(run: FinishedRun, periods: Periods) -> list[Plot]:
    """Return plots of the codes of a run, with the same panels as `unweave draw`; none if no code varies."""
    layout = arrange_codes(run.codes, run.truth, run.factors, periods, MAX_POINTS)
    if not layout.scales and len(layout.grid):
        return [describe_histogram(layout, int(layout.grid[0]))]
    used = sorted({int(j) for pair in layout.planes for j in pair} | {*layout.pairs.tolist(), *layout.grid.tolist()})
    if not used:
        return []
    axes = [describe_axis(layout.codes[:, j], j, periods[j]) for j in used]
    source = {"codes": axes, "factors": [describe_factor(scale) for scale in layout.scales]}
    place = {j: i for i, j in enumerate(used)}
    plots = []
    if layout.planes or len(layout.pairs):
        plots.append(describe_pairs(layout, place))
    if len(layout.grid):
        plots.append(describe_grid(layout, place))
    return [plots[0] | {"source": source}, *plots[1:]]  # plots without a source share the one before them


def describe_pairs(layout: CodeLayout, place: dict[int, int]) -> Plot:
    """Return panels with two codes as axes, colored by the factors."""
    pairs = [(int(i), int(j)) for i, j in layout.planes]
    if len(layout.pairs):
        order = layout.pairs.tolist()
        pairs = [(order[c], order[r]) for r in range(1, len(order)) for c in range(r)]
        caption = "All pairs of codes"
    else:
        caption = "The codes" if not len(layout.grid) else "The two codes that depend most on each factor"
    panels: list[Plot] = [{"x": ["codes", place[i]], "y": ["codes", place[j]]} for i, j in pairs]
    if layout.scales and layout.planes:
        panels = [panel | {"color": k} for k, panel in enumerate(panels)]
    if layout.scales:
        caption += ", colored by the real values of the factors. If a factor's color changes along one axis only, one"
        caption += " code represents it"
    choose = bool(layout.scales) and len(layout.pairs) > 0
    return {"kind": "scatter", "caption": f"{caption}.", "panels": panels, "choose": choose}


def describe_grid(layout: CodeLayout, place: dict[int, int]) -> Plot:
    """Return a panel for each code and each factor: the code over the real values of the factor."""
    panels = [
        {"x": ["factors", k], "y": ["codes", place[j]], "color": k, "count": MAX_GRID_POINTS}
        for j in layout.grid.tolist()
        for k in range(len(layout.scales))
    ]
    caption = "Each code over the real values of each factor. A code that represents a factor depends on no other."
    caption = f"{caption} {layout.note}".strip()
    return {"kind": "scatter", "caption": caption, "panels": panels, "columns": len(layout.scales)}


def describe_histogram(layout: CodeLayout, j: int) -> Plot:
    """Return a histogram of code j."""
    counts, edges = np.histogram(layout.codes[:, j], bins=HISTOGRAM_BINS)
    bars = {"edges": round_numbers(edges), "values": counts.tolist()}
    panel = {"title": "", "x": f"code {j + 1}", "y": "observations", **bars}
    return {"kind": "bars", "caption": "The code.", "panels": [panel]}


def describe_axis(values: np.ndarray, j: int, period: float | None) -> dict[str, Any]:
    """Return code j, counted from 0, with ticks at parts of a turn if it is an angle."""
    if period is None:
        return {"name": f"code {j + 1}", **pack_column(values)}
    ticks = [[at, angle_text(at, period)] for at in (0.0, period / 2, period)]
    return {"name": f"code {j + 1} (angle)", **pack_column(values), "ticks": ticks, "limits": [0.0, period]}


def describe_factor(scale: FactorScale) -> dict[str, Any]:
    """Return the values of a factor with its colors and ticks."""
    factor: dict[str, Any] = {"name": scale.factor.name, **pack_column(scale.values)}
    if scale.names:
        names = [name.replace(r"\$", "$") for name in scale.names]
        colors = [to_hex(color) for color in scale.palette]
        return factor | {"names": names, "colors": colors, "ticks": list(enumerate(names)), "spread": True}
    low, high = scale.limits()
    factor |= {"limits": [low, high], "stops": [to_hex(scale.map.cmap(i / (STOPS - 1))) for i in range(STOPS)]}
    if scale.factor.period is not None:
        period = scale.factor.period
        ticks = [[low + share * period, angle_text(low + share * period, period)] for share in (0, 0.5, 1)]
        return factor | {"ticks": ticks}
    if scale.has_names():
        places, texts = scale.named_ticks()
        return factor | {"ticks": [*zip(places, texts, strict=True)], "spread": True}
    return factor


def describe_isometry(run: FinishedRun) -> list[Plot]:
    """Return distances between neighbors in the data and in the codes; nothing where they were not computed."""
    pairs = run.pairs
    if not len(pairs):
        return []
    if len(pairs) > MAX_POINTS:
        pairs = pairs[np.random.default_rng(0).choice(len(pairs), MAX_POINTS, replace=False)]
    limit = float(run.pairs[:, 0].max()) * MARGIN
    upper = max(limit, float(np.quantile(run.pairs[:, 1], UPPER_QUANTILE)) * MARGIN)
    names = ("distance in the data", "distance in the codes (rescaled)")
    limits: Sequence[float] = (limit, upper)
    axes = [
        {"name": name, **pack_column(column.astype(np.float64)), "limits": [0.0, round_number(end)]}
        for name, column, end in zip(names, pairs.T, limits, strict=True)
    ]
    score = run.scores.get("local-isometry")
    title = "pairs of neighbors" if score is None else f"local isometry {score:.3f}"
    panel = {"x": ["codes", 0], "y": ["codes", 1], "title": title, "diagonal": True}
    caption = "Pairs of neighbors. On the line, codes preserve the distance in the data."
    return [{"kind": "scatter", "caption": caption, "panels": [panel], "source": {"codes": axes, "factors": []}}]
