"""Scatter plots of all codes, colored by each true factor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.data.core import Factor
from unweave.experiments.ordered import Periods, varying_codes
from unweave.report.figures.heatmap import associate
from unweave.report.figures.scales import FactorScale, label_code
from unweave.report.figures.style import BLUE, SMALL_FONT, make_panels

MAX_POINTS = 4_000
MAX_GRID_POINTS = 1_000  # in each panel of a figure with many
MAX_PAIRED_CODES = 5  # of which all pairs are drawn
MAX_COLUMNS = 4  # panels in a row
MAX_GRID_CODES = 24  # of more, those that depend most on the factors are drawn, or that vary most
CODES_PER_PAGE, FACTORS_PER_PAGE = 8, 5  # of a figure with a panel for each code and factor
DOT_SIZE, LARGE_DOT_SIZE = 4, 14  # square points, of many and of few observations
FEW_POINTS = 300
HISTOGRAM_BINS = 30
MAX_LEVEL_NAMES = 14  # characters of all names of classes below an axis that are not rotated


class CodeLayout(NamedTuple):
    """Which codes are drawn against which. One of `planes`, `pairs` and `grid` may be empty."""

    codes: np.ndarray  # (n, d): a sample, angles within one turn
    scales: list[FactorScale]  # of the factors, over the same rows
    planes: list[tuple[int, int]]  # two codes for each factor; without factors, neighboring codes
    pairs: np.ndarray  # codes of which all pairs are drawn
    grid: np.ndarray  # codes that are drawn over each factor; without factors, a code for a histogram
    note: str  # which codes are left out


def arrange_codes(
    codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor], periods: Periods, max_points: int = MAX_POINTS
) -> CodeLayout:
    """Return the panels of all codes that vary; none if no code varies.

    Of two to five codes all pairs are drawn, colored by each factor. Where each factor's color changes along one axis
    only, the codes are disentangled. Of one code and of more than five, each code is drawn against each factor; and
    for each factor the two codes that depend on it most.

    Args:
        codes: Codes, (n, d).
        truth: Values of the factors, (n, k).
        factors: Names and kinds of the factors, k of them.
        periods: Period of each code, or None.
        max_points: Observations in the sample.
    """
    columns = [j for j, factor in enumerate(factors) if not factor.noise]
    if len(codes) > max_points:
        subset = np.random.default_rng(0).choice(len(codes), max_points, replace=False)
        codes, truth = codes[subset], truth[subset]
    shown = varying_codes(codes)
    codes = np.stack([z if p is None else z % p for z, p in zip(codes.T, periods, strict=True)], 1)
    scales = [FactorScale(factors[j], truth[:, j]) for j in columns]
    layout = CodeLayout(codes, scales, [], shown[:0], shown[:0], "")
    if not len(shown) or not scales:
        return _arrange_without_factors(layout, shown)
    if len(shown) == 2:
        return layout._replace(planes=[(shown[0], shown[1])] * len(scales))
    if 2 < len(shown) <= MAX_PAIRED_CODES:
        return layout._replace(pairs=shown)
    if len(shown) == 1:
        return layout._replace(grid=shown)
    own_periods = [periods[j] for j in shown]
    strength = associate(codes[:, shown], truth[:, columns], [factors[j] for j in columns], own_periods)  # (k, d)
    best = [np.sort(shown[np.argsort(-row, kind="stable")[:2]]) for row in strength]
    related = np.sort(shown[np.argsort(-strength.max(0), kind="stable")[:MAX_GRID_CODES]])
    note = f"Shown: the {len(related)} of {len(shown)} codes that depend most on the factors."
    note = note if len(related) < len(shown) else ""
    return layout._replace(planes=[(pair[0], pair[1]) for pair in best], grid=related, note=note)


def _arrange_without_factors(layout: CodeLayout, shown: np.ndarray) -> CodeLayout:
    """Return a histogram of a single code, all pairs of a few, or neighboring codes against each other."""
    if len(shown) <= 1:
        return layout._replace(grid=shown)
    if len(shown) <= MAX_PAIRED_CODES:
        return layout._replace(pairs=shown)
    shown = np.sort(shown[np.argsort(-layout.codes[:, shown].std(0), kind="stable")[:MAX_GRID_CODES]])
    pairs = [(shown[i], shown[i + 1]) for i in range(0, len(shown) - 1, 2)]
    return layout._replace(planes=pairs + ([(shown[-2], shown[-1])] if len(shown) % 2 else []))


def draw_codes(codes: np.ndarray, truth: np.ndarray, factors: Sequence[Factor], periods: Periods) -> dict[str, Figure]:
    """Return scatter plots of all codes that vary, by file name; none if no code varies. See `arrange_codes`."""
    layout = arrange_codes(codes, truth, factors, periods)
    plot, scales = CodePlot(layout.codes, periods), layout.scales
    figures: dict[str, Figure] = {}
    if layout.planes:
        figures["codes"] = plot.draw_planes(layout.planes, scales) if scales else plot.draw_neighbors(layout.planes)
    if len(layout.pairs) and not scales:
        figures["codes"] = plot.draw_pairs(layout.pairs)
    elif len(layout.pairs):
        names = _file_names(scales)
        figures |= {name: plot.draw_pairs(layout.pairs, scale) for name, scale in zip(names, scales, strict=True)}
    if len(layout.grid) and not scales:
        figures["codes"] = plot.draw_histogram(int(layout.grid[0]))
    elif len(layout.grid):
        figures |= _draw_pages(plot, layout.grid, scales)
    if layout.note:
        list(figures.values())[-1].supxlabel(layout.note, fontsize=SMALL_FONT + 1)
    return figures


def _file_names(scales: Sequence[FactorScale]) -> list[str]:
    """Return a file name for each factor; equal ones get numbers."""
    slugs = [re.sub(r"[^\w.-]+", "-", scale.factor.name).strip("-.") or "factor" for scale in scales]
    return [f"codes-by-{slug}" + (f"-{i + 1}" if slugs.count(slug) > 1 else "") for i, slug in enumerate(slugs)]


def _draw_pages(plot: CodePlot, shown: np.ndarray, scales: Sequence[FactorScale]) -> dict[str, Figure]:
    """Return figures with a panel for each code and factor, so many on each that they can be read."""
    pages = [
        (shown[i : i + CODES_PER_PAGE], scales[k : k + FACTORS_PER_PAGE])
        for k in range(0, len(scales), FACTORS_PER_PAGE)
        for i in range(0, len(shown), CODES_PER_PAGE)
    ]
    names = [f"codes-over-factors-{i + 1}" if len(pages) > 1 else "codes-over-factors" for i in range(len(pages))]
    return {name: plot.draw_by_factor(*page) for name, page in zip(names, pages, strict=True)}


class CodePlot:
    """Codes (n, d) with their periods, and the kinds of scatter plots of them."""

    def __init__(self, codes: np.ndarray, periods: Periods) -> None:
        self.codes, self.periods = codes, periods
        self.dot = LARGE_DOT_SIZE if len(codes) <= FEW_POINTS else DOT_SIZE

    def scatter(self, axis: Axes, i: int, j: int, colors: Any = BLUE) -> None:
        """Draw code j over code i."""
        axis.scatter(self.codes[:, i], self.codes[:, j], s=self.dot, c=colors, linewidths=0, rasterized=True)
        label_code(axis.xaxis, i, self.periods[i])
        label_code(axis.yaxis, j, self.periods[j])

    def draw_planes(self, pairs: Sequence[tuple[int, int]], scales: Sequence[FactorScale]) -> Figure:
        """Return one panel per factor, with two codes as axes and the factor as color."""
        width = 2.5 + max(scale.key_width() for scale in scales)
        figure, axes = make_panels(len(scales), width=width, max_columns=MAX_COLUMNS)
        for axis, (i, j), scale in zip(axes, pairs, scales, strict=True):
            self.scatter(axis, i, j, scale.colors)
            axis.set_title(f"colored by {scale.title}")
            scale.add_key(figure, axis)
        return figure

    def draw_pairs(self, shown: np.ndarray, scale: FactorScale | None = None) -> Figure:
        """Return a panel for each pair of codes, below the diagonal of a square."""
        count = len(shown) - 1
        key = 0.0 if scale is None else scale.key_width()
        figure, axes = make_panels(count**2, width=1.9, height=1.8, max_columns=count, margin=key)
        used = []
        for place, axis in enumerate(axes):
            row, column = divmod(place, count)
            if column > row:
                axis.remove()
                continue
            self.scatter(axis, shown[column], shown[row + 1], BLUE if scale is None else scale.colors)
            axis.label_outer()
            used.append(axis)
        if scale is not None:
            figure.suptitle(f"all pairs of codes, colored by {scale.title}")
            scale.add_key(figure, used)
        return figure

    def draw_by_factor(self, shown: np.ndarray, scales: Sequence[FactorScale]) -> Figure:
        """Return a panel for each code and each factor: the code over the real values of the factor."""
        count = len(scales)
        height = 1.35 if len(shown) > 1 else 1.9  # a single row must have room for its label
        figure, axes = make_panels(count * len(shown), width=1.9, height=height, max_columns=count, margin=0.4)
        few = slice(MAX_GRID_POINTS)
        for place, axis in enumerate(axes):
            row, column = divmod(place, count)
            j, scale = shown[row], scales[column]
            values = self.codes[few, j]
            axis.scatter(scale.positions()[few], values, s=self.dot, c=scale.colors[few], linewidths=0, rasterized=True)
            scale.set_axis(axis.xaxis)
            label_code(axis.yaxis, j, self.periods[j])
            axis.set_xlabel(scale.title)
            axis.tick_params(labelsize=SMALL_FONT)
            if sum(map(len, scale.names)) > MAX_LEVEL_NAMES:
                axis.tick_params(axis="x", rotation=45)
            axis.label_outer()
        return figure

    def draw_histogram(self, j: int) -> Figure:
        """Return a histogram of code j."""
        figure, (axis,) = make_panels(1)
        axis.hist(self.codes[:, j], bins=HISTOGRAM_BINS, color=BLUE)
        label_code(axis.xaxis, j, self.periods[j])
        axis.set_ylabel("observations")
        return figure

    def draw_neighbors(self, pairs: Sequence[tuple[int, int]]) -> Figure:
        """Return one panel for each pair of codes, without colors."""
        figure, axes = make_panels(len(pairs), width=2.3, height=2.1, max_columns=MAX_COLUMNS)
        for axis, (i, j) in zip(axes, pairs, strict=True):
            self.scatter(axis, i, j)
        return figure
