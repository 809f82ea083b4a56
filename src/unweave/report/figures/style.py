"""Size and style of all figures, and how they are saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.utils.atomic import atomic_file

RC: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "unweave",  # equal figures are equal files
    "svg.fonttype": "path",
}
INK, GRAY, BLUE = "#1c2430", "#5a6675", "#0b6bcb"  # colors of the report's page
ROW_PADDING = 0.12  # inches between rows of panels
SMALL_FONT = 7  # points
FILE_DPI = 150
MAX_LABEL_LENGTH = 46  # characters


def make_panels(
    count: int, *, width: float = 2.95, height: float = 2.8, max_columns: int | None = None, margin: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels of equal size, in one row or in rows of at most `max_columns`.

    Args:
        count: Number of panels.
        width: Width of a panel in inches.
        height: Height of a panel in inches.
        max_columns: Panels per row; None for a single row.
        margin: Additional width at the left, for names, in inches.
    """
    columns = count_columns(count, max_columns)
    rows = -(-count // columns)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(margin + width * columns, height * rows), layout="constrained")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    if rows > 1:
        figure.get_layout_engine().set(h_pad=ROW_PADDING)  # type: ignore[union-attr, call-arg]
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def count_columns(count: int, max_columns: int | None) -> int:
    """Return the number of panels per row that makes rows about equally long."""
    rows = -(-count // (max_columns or count))
    return -(-count // rows)


def add_legend(axis: Axes) -> None:
    """Add a legend at the right of the panel."""
    axis.legend(frameon=False, fontsize=SMALL_FONT, loc="center left", bbox_to_anchor=(1.02, 0.5))


def escape(text: str) -> str:
    """Return a user's text such that matplotlib does not read dollar signs as a formula."""
    return text.replace("$", r"\$")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure atomically, in the format of the suffix; equal figures give equal files."""
    no_date: dict[str, Any] = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with mpl.rc_context(RC), atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=FILE_DPI, metadata=no_date)


def shorten(label: str) -> str:
    """Return a label of at most `MAX_LABEL_LENGTH` characters."""
    return label if len(label) <= MAX_LABEL_LENGTH else label[: MAX_LABEL_LENGTH - 1] + "…"
