"""Factors in their real values: numbers, names or angles as colors with a key, and as ticks of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unweave.data.core import Factor
from unweave.report.figures.style import SMALL_FONT, escape

MAX_CLASSES = 18  # with a color of their own; the rarer classes of a factor with more are gray
MAX_NAME_LENGTH = 20  # characters
LEGEND_ROWS = 10  # classes in a column of a legend
MAX_NAMED_TICKS = 8  # names of an ordered factor beside its color bar
OTHER_COLOR = "#c3cad2"
RAMP = "viridis"


def make_cyclic_map() -> ListedColormap:
    """Return a color map for angles, whose end is its start: all hues in even steps, none close to white.

    Hue goes around the circle of Oklab. Red is darker than green, so that readers who confuse both see a difference.
    """
    hue = np.linspace(0, 2 * math.pi, 257)[:-1]
    lightness, chroma = 0.66 - 0.12 * np.cos(hue - 0.5), 0.12
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    to_lms = np.array(
        [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.707614701],
        ]
    )
    linear = np.clip((to_lms @ np.stack([lightness, a, b])) ** 3, 0, None)
    linear = np.clip(to_rgb @ linear, 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return ListedColormap(rgb.T, "cyclic")


CYCLIC = make_cyclic_map()


def factor_values(factor: Factor, column: np.ndarray) -> np.ndarray:
    """Return the real values of a factor, (n,) -> (n,); names stay 0, 1, ..., angles are moved into one turn."""
    values = factor.numeric_values(torch.from_numpy(column.astype(np.float64))).numpy()
    if factor.period is None:
        return values
    start = start_of_turn(values, factor.period)
    is_shown = (values >= start) & (values <= start + factor.period)
    return np.where(is_shown, values, (values - start) % factor.period + start)


def start_of_turn(values: np.ndarray, period: float) -> float:
    """Return where the shown turn begins: -period / 2 for angles on both sides of 0, e.g. -110 to 120, otherwise 0."""
    is_signed = values.min() < 0 and max(-values.min(), values.max()) <= period / 2
    return -period / 2 if is_signed else 0.0


def class_names(factor: Factor) -> list[str]:
    """Return the names of the values of a discrete factor, at most `MAX_NAME_LENGTH` characters each."""
    values: Sequence[Any] = factor.values or range(factor.size or 0)
    names = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return [escape(n if len(n) <= MAX_NAME_LENGTH else n[: MAX_NAME_LENGTH - 1] + "…") for n in names]


def angle_text(value: float, period: float) -> str:
    """Return an angle as text, in multiples of pi if a full turn is 2 pi.

    >>> angle_text(math.pi / 2, 2 * math.pi), angle_text(0.3, 2 * math.pi), angle_text(270.0, 360.0)
    ('π/2', '0.10π', '270')
    """
    if not math.isclose(period, 2 * math.pi):
        return f"{value:.4g}"
    quarters = {0: "0", 1: "π/2", 2: "π", 3: "3π/2", 4: "2π", -1: "-π/2", -2: "-π"}
    share = value / (math.pi / 2)
    is_quarter = abs(share - round(share)) < 1e-6 and round(share) in quarters
    return quarters[round(share)] if is_quarter else f"{value / math.pi:.2f}π"


def set_turn(axis: Axis, start: float, period: float, *, parts: int = 4, margin: float = 0.04) -> None:
    """Set the ticks of an axis to parts of a full turn, with a margin at the ends as a share of the turn."""
    ticks = [start + period * i / parts for i in range(parts + 1)]
    axis.set_ticks(ticks, labels=[angle_text(tick, period) for tick in ticks])
    axis.set_view_interval(start - margin * period, start + (1 + margin) * period, ignore=True)


def label_code(axis: Axis, j: int, period: float | None) -> None:
    """Label an axis with code j, counted from 0; that of a circular code goes once around."""
    axis.set_label_text(f"code {j + 1}" if period is None else f"code {j + 1} (angle)")
    if period is not None:
        set_turn(axis, 0.0, period, parts=2)


class FactorScale:
    """The values of one factor over n rows: a color for each row with a key, and positions along an axis.

    Classes have a qualitative palette and a legend, angles a cyclic color map, everything else a ramp with a color bar.
    """

    def __init__(self, factor: Factor, column: np.ndarray) -> None:
        self.factor, self.values = factor, factor_values(factor, column)
        self.title = escape(factor.name)
        self.names: list[str] = []  # of classes
        if factor.kind == "nominal":
            self.values, self.names = _merge_rare_classes(column.astype(int), class_names(factor))
            self.palette = _pick_colors(len(self.names))
            if (factor.size or 0) > MAX_CLASSES:
                self.palette[-1] = mpl.colors.to_rgba(OTHER_COLOR)
            self.colors = np.array(self.palette)[self.values.astype(int)]  # (n, 4)
        else:
            self.map = ScalarMappable(Normalize(*self.limits()), CYCLIC if factor.period is not None else RAMP)
            self.colors = self.map.to_rgba(self.values)

    def limits(self) -> tuple[float, float]:
        """Return the lowest and highest shown value; of an angle, both ends of a turn."""
        if self.factor.period is None:
            return float(self.values.min()), float(self.values.max())
        start = start_of_turn(self.values, self.factor.period)
        return start, start + self.factor.period

    def add_key(self, figure: Figure, axes: Axes | Sequence[Axes]) -> None:
        """Add a legend or a color bar with the real values at the right of one panel, or of all."""
        if self.names:
            self._add_legend(figure, axes if isinstance(axes, Axes) else None)
            return
        bar = figure.colorbar(self.map, ax=axes, pad=0.02)
        if self.factor.period is not None:
            set_turn(bar.ax.yaxis, self.limits()[0], self.factor.period, margin=0.0)
        elif self.has_names():
            ticks, names = self.named_ticks()
            bar.ax.yaxis.set_ticks(ticks, labels=names)

    def key_width(self) -> float:
        """Return the width of the key in inches."""
        return 0.6 if not self.names else self._legend_columns() * (0.3 + 0.055 * max(map(len, self.names)))

    def _legend_columns(self) -> int:
        return 1 if len(self.names) <= LEGEND_ROWS else 2

    def _add_legend(self, figure: Figure, axis: Axes | None) -> None:
        dot: Any = {"marker": "o", "linestyle": "", "markersize": 5}
        handles = [Line2D([], [], color=c, label=n, **dot) for n, c in zip(self.names, self.palette, strict=True)]
        text: Any = {
            "fontsize": SMALL_FONT + (len(self.names) <= LEGEND_ROWS),
            "frameon": False,
            "ncols": self._legend_columns(),
        }
        text |= {"labelspacing": 0.3, "handletextpad": 0.2, "columnspacing": 0.8}
        if axis is None:
            figure.legend(handles=handles, loc="outside right center", **text)
        else:
            axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), **text)

    def set_axis(self, axis: Axis) -> None:
        """Set the ticks of an axis along which the values are drawn."""
        if self.names:
            axis.set_ticks(range(len(self.names)), labels=self.names)
        elif self.factor.period is not None:
            set_turn(axis, self.limits()[0], self.factor.period, parts=2)
        elif self.has_names():
            ticks, names = self.named_ticks()
            axis.set_ticks(ticks, labels=names)

    def positions(self) -> np.ndarray:
        """Return the places of the rows along an axis, (n,); rows of one class are spread a little."""
        spread = 0.25 if self.names or self.has_names() else 0.0
        return self.values + np.random.default_rng(0).uniform(-spread, spread, len(self.values))

    def has_names(self) -> bool:
        """Return whether an ordered factor has names instead of numbers."""
        return any(isinstance(value, str) for value in self.factor.values)

    def named_ticks(self) -> tuple[list[int], list[str]]:
        """Return places and texts of the names beside an axis, some of them if there are many."""
        names = class_names(self.factor)
        ticks = np.unique(np.linspace(0, len(names) - 1, min(len(names), MAX_NAMED_TICKS)).round().astype(int))
        return ticks.tolist(), [names[i] for i in ticks]


def _pick_colors(count: int) -> list[Any]:
    """Return colors of at most `MAX_CLASSES` classes; of many, without the grays, which mean other classes."""
    if count <= 10:
        return [mpl.colormaps["tab10"](k) for k in range(count)]
    return [mpl.colormaps["tab20"](k) for k in range(20) if k not in (14, 15)][:count]


def _merge_rare_classes(column: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return class numbers and names in which all but the most frequent classes are one, "other"."""
    if len(names) <= MAX_CLASSES:
        return column.astype(np.float64), names
    counts = np.bincount(column, minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1])
    numbers = np.full(len(names), len(kept))
    numbers[kept] = np.arange(len(kept))
    return numbers[column].astype(np.float64), [*(names[k] for k in kept), f"{len(names) - len(kept)} others"]
