"""What all figures share: size, type, and how they become text for a page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..storage import whole_file

RC: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "unweave",  # the same figure is the same file
    "svg.fonttype": "path",
}


def panels(count: int, *, width: float = 2.95, height: float = 2.8) -> tuple[Figure, list[Axes]]:
    """A row of panels of equal size."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width * count, height), layout="constrained")
        axes = figure.subplots(1, count, squeeze=False)[0]
    return figure, list(axes)


def save(figure: Figure, path: Path) -> None:
    """Into a file, by its ending, which is there whole or not at all; the same figure is the same file."""
    no_date: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with mpl.rc_context(RC), whole_file(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=150, metadata=no_date)


def data_uri(figure: Figure) -> str:
    """The figure as an SVG inside a `data:` address, so that a page needs no other file."""
    buffer = io.BytesIO()
    no_date: dict[str, Any] = {"Date": None}
    with mpl.rc_context(RC):
        figure.savefig(buffer, format="svg", dpi=200, metadata=no_date)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
