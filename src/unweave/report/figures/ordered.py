"""Real observations along each code: images in rows, columns of tables as heat maps."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.data.readers.images import IMAGE_FORMATS
from unweave.experiments.ordered import Ordered, OrderedColumns, OrderedImages, Periods, varying_codes
from unweave.report.figures.scales import angle_text
from unweave.report.figures.style import SMALL_FONT, escape, make_panels
from unweave.utils.errors import plural

CODES_PER_PAGE = 12
IMAGE_WIDTH, MAX_IMAGE_HEIGHT = 0.82, 1.2  # inches
GAP = 0.04  # between images, as a share of their width
MAX_LABEL_LENGTH = 13  # characters of a file name below an image
MAX_COLUMN_LENGTH = 28  # characters of the name of a column
MAX_DEVIATION = 2.0  # standard deviations at the ends of the color map of a table


def draw_ordered(ordered: Ordered, periods: Periods, note: str = "", name: str = "along-codes") -> dict[str, Figure]:
    """Return figures by file name, with at most twelve codes each.

    Args:
        ordered: Observations along the codes.
        periods: Period of each code, or None.
        note: Text below the last figure.
        name: File name, which gets a number if there are several figures.
    """
    starts = range(0, len(ordered.codes), CODES_PER_PAGE)
    figures = {}
    for page, start in enumerate(starts, 1):
        rows = slice(start, start + CODES_PER_PAGE)
        draw = _draw_images if isinstance(ordered, OrderedImages) else _draw_columns
        figure = draw(ordered, periods, rows)  # type: ignore[arg-type]
        figures[name if len(starts) == 1 else f"{name}-{page}"] = figure
    if note:
        figure.supxlabel(note, fontsize=SMALL_FONT + 1)
    return figures


def describe_missing(codes: np.ndarray, ordered: Ordered) -> str:
    """Return which of the codes (n, d) are not shown, and why; '' if all are."""
    varying = varying_codes(codes)
    constant = [str(j + 1) for j in range(codes.shape[1]) if j not in varying]
    notes = []
    if constant:
        notes.append(f"{'Code' if len(constant) == 1 else 'Codes'} {', '.join(constant)}: constant.")
    if len(varying) > len(ordered.codes):
        notes.append(f"Shown: the {len(ordered.codes)} of {plural(len(varying), 'code')} that vary most.")
    return " ".join(notes)


def code_label(j: int, period: float | None) -> str:
    """Return the name of code j, counted from 0."""
    return f"code {j + 1}" if period is None else f"code {j + 1}\n(angle)"


def code_texts(values: np.ndarray, period: float | None) -> list[str]:
    """Return values of one code as text, with two decimals unless the code is much smaller or larger than 1.

    >>> code_texts(np.array([-0.001, 1.5, np.nan]), None)
    ['0.00', '1.50', '']
    """
    is_moderate = 0.05 <= np.nanmax(np.abs(values)) < 1_000
    texts = []
    for value in values.tolist():
        text = f"{value:z.2f}" if is_moderate else f"{value:.2g}"
        texts.append("" if np.isnan(value) else text if period is None else angle_text(value, period))
    return texts


# Images ---------------------------------------------------------------------------------------------------------------


def _draw_images(ordered: OrderedImages, periods: Periods, rows: slice) -> Figure:
    """Return a row of images for each code, with the value of the code and the file name below each image."""
    _, steps = ordered.places.shape
    height, width = ordered.images.shape[1:3]
    scale = min(IMAGE_WIDTH / width, MAX_IMAGE_HEIGHT / height)  # inches per pixel
    text = 0.45 if ordered.names.size else 0.27
    size = {"width": 0.8 + steps * width * scale * (1 + GAP), "height": height * scale + text}
    figure, axes = make_panels(len(ordered.codes[rows]), max_columns=1, **size)
    figure.get_layout_engine().set(h_pad=0.02)  # type: ignore[union-attr, call-arg]
    for i, axis in enumerate(axes, rows.start):
        j = int(ordered.codes[i])
        _draw_strip(axis, [ordered.images[k] if k >= 0 else None for k in ordered.places[i]], (height, width))
        period = periods[j]
        values = ordered.values[i] if period is None else ordered.values[i] % period
        labels = code_texts(values, period)
        if period is not None and labels[-1]:
            labels[-1] += " (again)"
        if ordered.names.size:
            labels = [f"{text}\n{_shorten(name)}" for text, name in zip(labels, ordered.names[i], strict=True)]
        axis.set_xticks(np.arange(steps) + 0.5, labels, fontsize=SMALL_FONT)
        axis.set_yticks([height / width / 2], [code_label(j, period)])
    return figure


def _draw_strip(axis: Axes, images: list[np.ndarray | None], shape: tuple[int, int]) -> None:
    """Draw images side by side, each one unit wide; nothing for None."""
    ratio = shape[0] / shape[1]
    for i, image in enumerate(images):
        if image is not None:
            axis.imshow(image, extent=(i + GAP / 2, i + 1 - GAP / 2, ratio * (1 - GAP), 0), interpolation="none")
    axis.set_xlim(0, len(images))
    axis.set_ylim(ratio, 0)
    axis.set_aspect("equal")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, pad=1)


def _shorten(name: str) -> str:
    """Return the end of an identifier, which differs more often than its beginning; of image files without suffix."""
    path = PurePosixPath(name)
    name = str(path.with_suffix("")) if path.suffix.lower() in IMAGE_FORMATS else name
    return escape(name if len(name) <= MAX_LABEL_LENGTH else "…" + name[1 - MAX_LABEL_LENGTH :])


# Tables ---------------------------------------------------------------------------------------------------------------


def _draw_columns(ordered: OrderedColumns, periods: Periods, rows: slice) -> Figure:
    """Return a heat map for each code: the columns that change most with it, in groups of rows from low to high."""
    names = [[_shorten_column(name) for name in line] for line in ordered.columns[rows]]
    margin = 0.07 * max(len(name) for line in names for name in line)
    height = 0.85 + 0.21 * ordered.columns.shape[1]
    figure, axes = make_panels(len(names), max_columns=2, width=3.1 + margin, height=height)
    for i, axis, labels in zip(range(rows.start, len(ordered.codes)), axes, names, strict=False):
        _draw_heat_map(axis, ordered, i, labels, periods[int(ordered.codes[i])])
    bar = figure.colorbar(axes[0].images[0], ax=axes, location="bottom", shrink=0.6, aspect=40, extend="both")
    bar.set_label("standard deviations from the mean of the column", fontsize=SMALL_FONT + 1)
    bar.ax.tick_params(labelsize=SMALL_FONT + 1)
    return figure


def _draw_heat_map(axis: Axes, ordered: OrderedColumns, i: int, names: list[str], period: float | None) -> None:
    """Draw the columns along one code, with their means in their own units at the right."""
    axis.imshow(ordered.scaled[i], cmap="RdBu_r", vmin=-MAX_DEVIATION, vmax=MAX_DEVIATION, aspect="auto")
    axis.set_yticks(range(len(names)), names, fontsize=SMALL_FONT + 1)
    last = ordered.values.shape[1] - 1
    ticks, texts = [0, last // 2, last], code_texts(ordered.values[i], period)
    axis.set_xticks(ticks, [texts[k] for k in ticks], fontsize=SMALL_FONT + 1)
    axis.set_title(code_label(int(ordered.codes[i]), period).replace("\n", " "))
    right = axis.secondary_yaxis("right")
    right.set_yticks(range(len(names)), [range_text(m, period) for m in ordered.means[i]], fontsize=SMALL_FONT)
    header = "mean at both ends" if period is None else "lowest, highest mean"
    axis.annotate(header, (1, 1), (4, 4), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL_FONT)
    for side in (axis, right):
        side.tick_params(length=0)
        side.spines[:].set_visible(False)


def range_text(means: np.ndarray, period: float | None) -> str:
    """Return the means of a column at both ends of a code, or their range around a circle, in the column's units."""
    means = means[~np.isnan(means)]
    if period is None:
        return f"{means[0]:.3g} → {means[-1]:.3g}"
    return f"{means.min():.3g} … {means.max():.3g}"


def _shorten_column(name: str) -> str:
    return escape(name if len(name) <= MAX_COLUMN_LENGTH else name[: MAX_COLUMN_LENGTH - 1] + "…")
