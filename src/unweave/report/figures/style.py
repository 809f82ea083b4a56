"""What all figures share: size, type, and how they become text for a page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.utils.storage import atomic_file

RC: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "unweave",  # the same figure is the same file
    "svg.fonttype": "path",
}


def make_panels(
    count: int, *, width: float = 2.95, height: float = 2.8, across: int | None = None, beside: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Panels of equal size in a row, or in several of at most `across`; `beside`: room for names at the left."""
    columns = count_columns(count, across)
    lines = -(-count // columns)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(beside + width * columns, height * lines), layout="constrained")
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    if lines > 1:
        figure.get_layout_engine().set(h_pad=0.12)  # type: ignore[union-attr, call-arg]
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def count_columns(count: int, across: int | None) -> int:
    """How many panels stand in a row, so that rows are about equally long."""
    lines = -(-count // (across or count))
    return -(-count // lines)


def add_legend(axis: Axes) -> None:
    """The names of the lines, at the right of the panel."""
    axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))


def save_figure(figure: Figure, path: Path) -> None:
    """Into a file, by its ending, which is there whole or not at all; the same figure is the same file."""
    no_date: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with mpl.rc_context(RC), atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=150, metadata=no_date)


def to_data_uri(figure: Figure) -> str:
    """The figure as an SVG inside a `data:` address, so that a page needs no other file."""
    buffer = io.BytesIO()
    no_date: dict[str, Any] = {"Date": None}
    with mpl.rc_context(RC):
        figure.savefig(buffer, format="svg", dpi=200, metadata=no_date)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
