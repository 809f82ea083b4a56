"""Representations of data and datasets: one line of text, and for notebooks HTML with a few observations."""

from __future__ import annotations

import time
import warnings
from inspect import getdoc
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from unweave.data.containers import Paired
from unweave.data.core import Factor, FactorData, IndexedData
from unweave.utils import html
from unweave.utils.errors import InputError, first_line, list_names, plural

if TYPE_CHECKING:
    from markupsafe import Markup

    from unweave.data.dataset import Dataset

MAX_TILES, COLUMNS = 24, 12  # of a contact sheet
MAX_ROWS, MAX_COLUMNS = 5, 8  # of a table
MAX_FACTORS = 12  # that are listed
VARIATIONS = 6  # images in which one factor changes
RANGE_SAMPLES = 500  # points that determine the range of a continuous factor
MAX_ELEMENTS = 2**24  # numbers that are rendered for a contact sheet
MAX_SECONDS = 0.3  # after which no further observation is rendered
SIDE, SMALL_SIDE, GAP = 64, 36, 3  # pixels


def data_text(data: FactorData) -> str:
    """Return kind, number and shape of the observations, and the factors."""
    columns = f" ({list_names(data.feature_names)})" if data.feature_names else ""
    factors = f"factors: {list_names([f.summary() for f in data.factors])}" if data.factors else "no factors"
    return f"<{_kind(data)}: {data.count_text()} of shape {data.shape}{columns}; {factors}>"


def data_html(data: FactorData) -> str:
    """Return a contact sheet or the first rows, the factors and the notes; takes a fraction of a second."""
    text = f"{data.count_text()} of shape {data.shape}"
    notes = html.details(plural(len(data.notes), "note"), html.items(data.notes)) if data.notes else ""
    return html.page(_kind(data), text, preview_html(data), notes)


def preview_html(data: FactorData) -> Markup:
    """Return a few observations and the factors, or why they cannot be shown: a representation raises no error."""
    deadline = time.perf_counter() + MAX_SECONDS
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            rng = Generator(_device(data)).manual_seed(0)
            shown = _sheet_html(data, rng, deadline) if is_image(data) else _rows_html(data, rng)
            return html.join([shown, _factors_html(data, rng, deadline)])
    except Exception as error:  # whatever a user's renderer or a removed file can cause
        return html.text(f"No preview: {type(error).__name__}: {first_line(error)}")


def dataset_html(dataset: Dataset) -> str:
    """Return summary, settings and files of a recipe, and observations if `load` takes milliseconds."""
    parts = [
        html.text((getdoc(type(dataset)) or "").partition("\n")[0]),
        html.settings(dataset),
        html.items(_sources(dataset)),
    ]
    return html.page(type(dataset).__name__, dataset.title(), *parts, _load_html(dataset))


# Parts ----------------------------------------------------------------------------------------------------------------


def _kind(data: FactorData) -> str:
    origin = vars(data).get("data")
    return type(data).__name__ + (f" of {type(origin).__name__}" if isinstance(origin, FactorData) else "")


def is_image(data: FactorData) -> bool:
    """Return whether observations have rows and columns of pixels."""
    return len(data.shape) in (2, 3)


def _sheet_html(data: FactorData, rng: Generator, deadline: float) -> Markup:
    """Return a contact sheet; of pairs with the partners below each other."""
    limit, columns = max(1, min(MAX_TILES, MAX_ELEMENTS // max(1, prod(data.shape)))), COLUMNS
    if isinstance(data, Paired):
        first = _spread(len(data.changed), max(1, min(COLUMNS, limit // 2)))[:, None].to(data.x.device)
        points, columns = torch.cat([first, data.partner(first)[0]]), len(first)
    else:
        points = _some_points(data, limit, rng)
    x = _render_until(data, points, deadline)
    low, high = float(x.min()), float(x.max())
    notes = ["pairs, one above the other"] if isinstance(data, Paired) else []
    notes += [f"first of {data.shape[0]} channels"] if len(data.shape) == 3 and data.shape[0] not in (1, 3) else []
    notes += [f"brightness from {low:.3g} to {high:.3g}"] if low < 0 or high > 1 else []
    picture = html.image(join_tiles(make_tiles(x, SIDE), columns), f"{len(x)} observations")
    return html.join([picture, html.text(", ".join(notes)) if notes else ""])


def _rows_html(data: FactorData, rng: Generator) -> Markup:
    """Return the first rows of a table with their factors."""
    if len(data.shape) != 1:
        return html.text("Observations of this shape are not shown.")
    points = data.all_points(MAX_ROWS)
    points = data.sample(MAX_ROWS, rng) if points is None else points[:MAX_ROWS]
    x, c = data.render(points)[:, :MAX_COLUMNS].tolist(), data.labels(points).tolist()
    names = list(data.feature_names or (f"x{i}" for i in range(data.shape[0])))
    more = [f"… {len(names) - MAX_COLUMNS} more"] if len(names) > MAX_COLUMNS else []
    factors = data.factors[:MAX_COLUMNS]
    has_numbers = points.shape[-1] == 1 and not points.is_floating_point()
    labels = [_row_name(data, int(row)) for row in points[:, 0]] if has_numbers else range(len(points))
    header = [data.row_key, *names[:MAX_COLUMNS], *more, *(f"{factor.name} (factor)" for factor in factors)]
    rows = [
        [label, *values, *("" for _ in more), *map(_level_text, factors, levels)]
        for label, values, levels in zip(labels, x, c, strict=True)
    ]
    return html.table(header, rows)


def _row_name(data: FactorData, row: int) -> object:
    return data.row_names[row] if data.row_names else row


def _level_text(factor: Factor, value: float) -> object:
    if factor.size is None:
        return float(value)
    return factor.values[int(value)] if factor.values else int(value)


def _factors_html(data: FactorData, rng: Generator, deadline: float) -> Markup:
    """Return names, kinds and ranges of the factors, with images in which only one of them changes."""
    if not data.factors:
        return html.text("No factors.")
    c = data.labels(_some_points(data, RANGE_SAMPLES, rng)).double()
    rows, start = [], _some_points(data, 1, rng) if _can_vary(data) else None
    for j, factor in enumerate(data.factors[:MAX_FACTORS]):
        kind = ("continuous" if factor.kind == "real" else factor.kind) + ", noise" * factor.noise
        strip = "" if start is None else _strip_html(data, start, j, rng, deadline)
        rows.append([factor.name, kind, _range_text(factor, c[:, j]), strip])
    header = ["factor", "kind", "values", "only this factor changes"]
    if not any(row[3] for row in rows):
        header, rows = header[:3], [row[:3] for row in rows]
    more = len(data.factors) - MAX_FACTORS
    return html.join([html.table(header, rows), html.text(f"and {plural(more, 'more factor')}") if more > 0 else ""])


def _range_text(factor: Factor, c: Tensor) -> str:
    """Return the values of a factor in words; those of a continuous one in a sample."""
    if factor.size is None:
        text = f"about {float(c.min()):.3g} to {float(c.max()):.3g}"
    elif any(isinstance(value, str) for value in factor.values):
        text = f"{plural(factor.size, 'value')}: {list_names(factor.values)}"
    else:
        numbers = [float(value) for value in factor.values] or [0, factor.size - 1]
        text = f"{plural(factor.size, 'value')}, {min(numbers):.4g} to {max(numbers):.4g}"
    return text + (f", period {factor.period:.4g}" if factor.period not in (None, factor.size) else "")


def _strip_html(data: FactorData, start: Tensor, j: int, rng: Generator, deadline: float) -> Markup | str:
    """Return images in which one factor changes; nothing where there are none, or they take too long."""
    count = min(VARIATIONS, data.factors[j].size or VARIATIONS)
    points = None if time.perf_counter() > deadline else vary_factor(data, start, j, count, rng)
    x = torch.zeros(0) if points is None else _render_until(data, points, deadline)
    if len(x) < count:
        return ""
    return html.image(join_tiles(make_tiles(x, SMALL_SIDE), VARIATIONS), f"{data.factors[j].name} changes")


def _sources(dataset: Dataset) -> list[str]:
    """Return paper and files of a recipe, and whether the files exist."""
    facts = {"Paper": dataset.paper, "Page": dataset.page, "License": dataset.license}
    states = {file.file: "available" if file.find() else "not in the data folders" for file in dataset.required_files()}
    lines = [f"Published file: {name} ({state})" for name, state in states.items()] or ["Needs no published files"]
    return [*(f"{name}: {value}" for name, value in facts.items() if value), *lines]


def _load_html(dataset: Dataset) -> Markup:
    """Return observations if loading takes milliseconds, otherwise how to get them."""
    if not dataset.loads_fast:
        return html.text(html.join(["To see observations, show ", html.code("dataset.load()"), "."]))
    try:
        data = dataset.load()
    except Exception as error:  # such as settings that do not go together
        return html.text(f"No preview: {type(error).__name__}: {first_line(error)}")
    return html.join([html.text(f"{data.count_text()} of shape {data.shape}"), preview_html(data)])


# Points ---------------------------------------------------------------------------------------------------------------


def _device(data: FactorData) -> torch.device | str:
    """Return the device of the tensors of the data, on which a generator must be, too."""
    for value in vars(data).values():
        if isinstance(value, Tensor):
            return value.device
        if isinstance(value, FactorData):
            return _device(value)
    return "cpu"


def _spread(count: int, n: int) -> Tensor:
    """Return at most n row numbers, evenly spaced over all of them."""
    return torch.linspace(0, count - 1, min(n, count), dtype=torch.float64).round().long()


def _some_points(data: FactorData, n: int, rng: Generator) -> Tensor:
    """Return at most n points: evenly spaced ones of a finite sample, otherwise random ones."""
    points = data.all_points(n)
    return data.sample(n, rng) if points is None else points[_spread(len(points), n).to(points.device)]


def _can_vary(data: FactorData) -> bool:
    """Return whether images with one factor changed are cheap: small, and located without an index of all rows."""
    is_small = MAX_TILES * prod(data.shape) <= MAX_ELEMENTS
    origin = vars(data).get("data")
    is_indexed = isinstance(data, IndexedData) or (isinstance(origin, FactorData) and not _can_vary(origin))
    return is_image(data) and is_small and not is_indexed


def vary_factor(data: FactorData, start: Tensor, j: int, count: int, rng: Generator) -> Tensor | None:
    """Return points like the starting point, (1, p) -> (count, p), with factor j over its range.

    None if the data lack some of these combinations.
    """
    c = data.labels(start).repeat(count, 1).double()
    if data.factors[j].size is not None:
        levels = data.levels(j)
        c[:, j] = levels[torch.linspace(0, len(levels) - 1, count).round().long()].to(c)
    else:
        values = data.labels(data.sample(RANGE_SAMPLES, rng))[:, j].double()
        c[:, j] = torch.linspace(float(values.min()), float(values.max()), count)
    try:
        return data.locate(c.to(data.labels(start).dtype), rng)
    except InputError:
        return None  # a table lacks some of these combinations


# Pixels ---------------------------------------------------------------------------------------------------------------


def _render_until(data: FactorData, points: Tensor, deadline: float) -> Tensor:
    """Render points, at least one, in parts that double, until the deadline."""
    parts: list[Tensor] = []
    done = 0
    while done < len(points) and (not done or time.perf_counter() < deadline):
        part = points[done : done + max(1, done)]
        parts.append(data.render(part).detach().float().cpu())
        done += len(part)
    return torch.cat(parts)


def make_tiles(x: Tensor, side: int) -> np.ndarray:
    """Return images (n, h, w) or (n, channels, h, w) as bytes (n, h', w', 4) with at most `side` pixels, or enlarged.

    Values outside of [0, 1] are scaled to it. Of channels that are not colors the first is shown.
    """
    x = torch.nan_to_num(x[:, None] if x.ndim == 3 else x)
    x = x if x.shape[1] == 3 else x[:, :1].expand(-1, 3, -1, -1)
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 1.0)
    longest = max(x.shape[-2:])
    if longest > side:
        x = F.interpolate(x, [max(1, round(length * side / longest)) for length in x.shape[-2:]], mode="area")
    else:
        x = x.repeat_interleave(side // longest, -1).repeat_interleave(side // longest, -2)
    x = F.pad((x - low) / (high - low), (0, 0, 0, 0, 0, 1), value=1.0)  # opaque
    return (255 * x).round().byte().permute(0, 2, 3, 1).numpy()


def join_tiles(tiles: np.ndarray, columns: int) -> np.ndarray:
    """Return tiles (n, h, w, 4) in rows as one image, transparent where there is no tile."""
    n, h, w, channels = tiles.shape
    rows = ceil(n / columns)
    sheet: Any = np.zeros((rows * columns, h + GAP, w + GAP, channels), np.uint8)
    sheet[:n, :h, :w] = tiles
    sheet = sheet.reshape(rows, columns, h + GAP, w + GAP, channels).swapaxes(1, 2)
    image: np.ndarray = sheet.reshape(rows * (h + GAP), columns * (w + GAP), channels)[:-GAP, :-GAP]
    return image
