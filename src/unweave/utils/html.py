"""HTML for notebooks: escaped text, tables, lists and images, in the colors of the page around them."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    import numpy as np

MAX_TINT = 0.5  # opacity of the strongest tint, so that text stays readable on it
MAX_SETTING_LENGTH = 80  # characters of a value, such as a network
MISSING = "\N{EN DASH}"  # in the cell of a missing number
# Colors are inherited or transparent, so that they suit light and dark pages. Two classes in a selector are stronger
# than the rules for tables of Jupyter and of the documentation's theme.
STYLE = Markup("""<style>
.unweave-html {color: inherit; line-height: 1.45; overflow-x: auto; max-width: 100%; margin: .2em 0 .8em;
 scrollbar-width: thin; scrollbar-color: rgba(128, 128, 128, .6) transparent}
.unweave-html .uw-head {margin: 0 0 .4em}
.unweave-html p {margin: .3em 0}
.unweave-html .uw-soft {opacity: .7}
.unweave-html ul {margin: .3em 0 .6em; padding-left: 1.4em; overflow-wrap: anywhere}
.unweave-html code {color: inherit; background: rgba(128, 128, 128, .14); border: 0; border-radius: 3px;
 padding: .1em .3em; white-space: pre-wrap}
.unweave-html img {max-width: 100%; height: auto; margin: 0; vertical-align: middle; image-rendering: pixelated}
.unweave-html .uw-table {border-collapse: collapse; border: 0; margin: .3em 0 .6em; width: auto; font-size: .95em;
 color: inherit; background: transparent; display: table}
.unweave-html .uw-table tr {background: transparent}
.unweave-html .uw-table th, .unweave-html .uw-table td {border: 0; border-bottom: 1px solid rgba(128, 128, 128, .3);
 padding: .25em .7em; text-align: left; vertical-align: middle; color: inherit; background: transparent;
 max-width: 34em; white-space: normal}
.unweave-html .uw-table td:first-child {white-space: nowrap}
.unweave-html .uw-table th {font-weight: 600; vertical-align: bottom; border-bottom-color: rgba(128, 128, 128, .6)}
.unweave-html .uw-table .uw-number {text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums}
.unweave-html .uw-table th.uw-number {white-space: normal}
.unweave-html .uw-table .uw-best {font-weight: 700; background: rgba(46, 160, 67, .25)}
.unweave-html .uw-table .uw-strong {font-weight: 700}
.unweave-html summary {cursor: pointer}
</style>""")


class Cell(NamedTuple):
    """One cell of a table with its emphasis."""

    content: object
    """Text or number, which is escaped, or `Markup`, which is not."""
    is_number: bool = False
    """Whether a text stands for a number, and is aligned to the right."""
    is_best: bool = False
    """Whether it is the best of its column."""
    is_strong: bool = False
    """Whether it is bold."""
    tint: float = 0.0
    """Strength of the background, from 0 to 1."""


def format_score(value: Any) -> str:
    """Return a score with three digits behind the point.

    >>> format_score(0.98765), format_score(1)
    ('0.988', '1.000')
    """
    return MISSING if is_missing(value) else f"{float(value):.3f}"


def format_value(value: Any) -> str:
    """Return a value as text: floats with at most four significant digits, everything else as it is.

    >>> format_value(0.00051234), format_value(4.0), format_value("auto")
    ('0.0005123', '4', 'auto')
    """
    if is_missing(value):
        return MISSING
    return f"{value:.4g}" if isinstance(value, Real) and not isinstance(value, Integral) else str(value)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or the missing value of pandas."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, Real) and math.isnan(value))


def page(title: str, summary: str, *parts: str) -> str:
    """Return the representation of an object: a title in bold, a summary beside it, and parts in HTML below."""
    head = Markup('<p class="uw-head"><strong>{}</strong> <span>{}</span></p>').format(title, summary)
    return str(Markup('{}<div class="unweave-html">{}{}</div>').format(STYLE, head, join(parts)))


def text(content: str) -> Markup:
    """Return a paragraph of secondary importance."""
    return Markup('<p class="uw-soft">{}</p>').format(content)


def items(texts: Iterable[str]) -> Markup:
    """Return a list of texts; nothing for no texts."""
    lines = join(Markup("<li>{}</li>").format(item) for item in texts)
    return Markup("<ul>{}</ul>").format(lines) if lines else lines


def details(summary: str, body: str) -> Markup:
    """Return HTML that is folded under a line of text."""
    return Markup('<details><summary class="uw-soft">{}</summary>{}</details>').format(summary, body)


def code(content: str) -> Markup:
    """Return text as code."""
    return Markup("<code>{}</code>").format(content)


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; cells are texts, numbers, `Markup` or `Cell`."""
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    aligned = [bool(body) and all(_is_number(row[j]) for row in body) for j in range(len(header))]
    names = [Cell(_breakable(str(name)), is_number=number) for name, number in zip(header, aligned, strict=True)]
    head = join(_tag("th", cell) for cell in names)
    lines = join(Markup("<tr>{}</tr>\n").format(join(_tag("td", cell) for cell in row)) for row in body)
    template = '<table class="uw-table">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table>'
    return Markup(template).format(head, lines)


def settings(thing: Any) -> Markup:
    """Return the fields of a dataclass, a method or a dataset, as a table; values that are not defaults are bold."""
    rows = []
    for field in fields(thing):
        content = repr(getattr(thing, field.name))
        is_changed = content != repr(field.default)
        content = content if len(content) <= MAX_SETTING_LENGTH else f"{content[:MAX_SETTING_LENGTH]} ..."
        rows.append([Cell(field.name, is_strong=is_changed), Cell(content, is_strong=is_changed)])
    return table(["setting", "value"], rows)


def _is_number(cell: Cell) -> bool:
    is_real = isinstance(cell.content, Real) and not isinstance(cell.content, bool)
    return cell.is_number or is_real or is_missing(cell.content)


def _breakable(name: str) -> Markup:
    """Return a name that may continue on the next line behind a point, such as dci[trees].completeness."""
    return escape(name).replace(".", Markup(".<wbr>"))


def _tag(name: str, cell: Cell) -> Markup:
    classes = " ".join(["uw-number"] * _is_number(cell) + ["uw-best"] * cell.is_best + ["uw-strong"] * cell.is_strong)
    tint = MAX_TINT * min(max(cell.tint, 0.0), 1.0)
    style = f' style="background: rgba(47, 129, 247, {tint:.2f})"' if tint > 0 else ""
    start = f"<{name}" + (f' class="{classes}"' if classes else "") + style
    content = cell.content if isinstance(cell.content, Markup) else format_value(cell.content)
    return Markup("{}>{}</{}>").format(Markup(start), content, Markup(name))


def image(pixels: np.ndarray, description: str) -> Markup:
    """Return bytes (h, w), (h, w, 3) or (h, w, 4) as a PNG inside the page."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    # The class keeps the documentation's theme from filtering it in dark mode.
    template = '<img class="dark-light" src="data:image/png;base64,{}" width="{}" alt="{}">'
    return Markup(template).format(data, pixels.shape[1], description)


def join(parts: Iterable[str]) -> Markup:
    """Return parts behind each other; texts that are not `Markup` are escaped."""
    return Markup("").join(escape(part) for part in parts)
