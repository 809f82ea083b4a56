"""What each code changes: attributes of images or columns of a table, regions of an image, classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import circmean, circstd

from unweave.data.attributes import ATTRIBUTES, measure
from unweave.experiments.ordered import IMAGE_DIMENSIONS, LOWER_QUANTILE, UPPER_QUANTILE, Periods
from unweave.methods.base import Method
from unweave.metrics.factors import PreparedFactors
from unweave.metrics.mcc import associations, correlations

STEPS = 5  # values of a code that is moved
MAX_STARTS = 60  # observations whose codes are moved
MAX_DECODED = 2**25  # numbers that are decoded for one code
MAX_COLUMNS = 200  # of a table that are measured
MIN_KNOWN = 0.5  # share of the images that have an attribute, e.g. a hue, from which it is measured
MAX_SPREAD = 0.08  # deviation of vertical positions, from which halves of an image say nothing about a shape
HALVES = ("upper_", "lower_")  # attributes of a half of the image
GRID = 3  # rows and columns of the regions of an image


class Quantity(NamedTuple):
    """Something that a code may change: an attribute of an image, or a column of a table."""

    name: str
    words: str
    family: str
    unit: str
    period: float | None
    deviation: float  # over the data


Quantities = list[Quantity]


class Effects(NamedTuple):
    """What each of d codes does to each of a quantities, to 3 x 3 regions of an image and to k classes."""

    quantities: Quantities
    correlations: np.ndarray  # (d, a): correlation over the data; absolute for angles
    within: np.ndarray  # (a, a): correlations of the quantities, signed; 0 with an angle
    # What moving the codes changes; None for a method without a decoder.
    changes: np.ndarray | None = None  # (d, a): signed change along the code, in deviations of the quantity
    ends: np.ndarray | None = None  # (d, a, 2): means of the quantity at both ends of the code
    strength: np.ndarray | None = None  # (d,): root mean square change of the observation; of the strongest code 1
    regions: np.ndarray | None = None  # (d, 3, 3): shares of the squared change; None for tables
    by_class: np.ndarray | None = None  # (d, k): root mean square change of each class; NaN for an empty one


class Move(NamedTuple):
    """What changes along one code."""

    ends: np.ndarray  # (a, 2)
    squares: np.ndarray  # (m,): mean squared change of each observation
    regions: np.ndarray | None  # (3, 3)


def measure_quantities(x: np.ndarray, codes: np.ndarray, columns: Sequence[str] = ()) -> tuple[Quantities, np.ndarray]:
    """Return what varies in observations (n, *shape), and its values (n, a); NaN where an image does not have it.

    Of a table with more than 200 columns, those that correlate most with the codes (n, d). Halves of images are left
    out where shapes move up and down: what lies in a half is then a matter of the position.
    """
    if not is_measurable(x.shape[1:]):
        return _table_columns(x.reshape(len(x), -1).astype(float), codes, columns)
    values, quantities = measure(x), []
    for name, attribute in ATTRIBUTES.items():
        known = values[name][~np.isnan(values[name])]
        if len(known) < max(2, MIN_KNOWN * len(x)):
            continue
        deviation = spread(known, attribute.period)
        if deviation > attribute.least:
            texts = (attribute.words, attribute.family, attribute.unit)
            quantities.append(Quantity(name, *texts, attribute.period, deviation))
    moves = any(q.name == "vertical_position" and q.deviation > MAX_SPREAD for q in quantities)
    quantities = [q for q in quantities if not (moves and q.name.startswith(HALVES))]
    return quantities, np.stack([values[q.name] for q in quantities], 1) if quantities else np.zeros((len(x), 0))


def _table_columns(x: np.ndarray, codes: np.ndarray, columns: Sequence[str]) -> tuple[Quantities, np.ndarray]:
    deviations = x.std(0)
    kept = np.flatnonzero(deviations > 1e-12 * np.abs(x).max(0))
    if len(kept) > MAX_COLUMNS:
        strongest = np.abs(correlations(codes, x[:, kept])).max(0)
        kept = np.sort(kept[np.argsort(-strongest, kind="stable")[:MAX_COLUMNS]])
    names = [str(columns[j]) if len(columns) else f"column {j + 1}" for j in kept.tolist()]
    quantities = [Quantity(str(j), name, str(j), "", None, deviations[j]) for j, name in zip(kept, names, strict=True)]
    return quantities, x[:, kept]


def is_measurable(shape: Sequence[int]) -> bool:
    """Return whether observations of a shape are images with attributes: of one or three channels, or without any."""
    return len(shape) in IMAGE_DIMENSIONS and (len(shape) == 2 or shape[0] in (1, 3))


def image_levels(x: np.ndarray) -> tuple[float, float] | None:
    """Return the values of black and white in images; None for a table."""
    if not is_measurable(x.shape[1:]):
        return None
    low, high = float(x.min()), float(x.max())
    return (0.0, 1.0) if low > -0.01 and high < 1.01 else (low, high)


def to_unit(x: np.ndarray, levels: tuple[float, float] | None) -> np.ndarray:
    """Return images with black 0 and white 1; a table as it is."""
    return x if levels is None else np.clip((x - levels[0]) / max(levels[1] - levels[0], 1e-12), 0, 1)


def quantity_values(x: np.ndarray, quantities: Quantities) -> np.ndarray:
    """Return quantities of observations, (n, *shape) -> (n, a)."""
    if not is_measurable(x.shape[1:]):
        return x.reshape(len(x), -1)[:, [int(quantity.name) for quantity in quantities]].astype(float)
    values = measure(x, [quantity.name for quantity in quantities])
    return np.stack(list(values.values()), 1)


def spread(values: np.ndarray, period: float | None) -> float:
    """Return the standard deviation of numbers, or of angles, (n,)."""
    return float(values.std() if period is None else circstd(values, high=period))


# Correlations over the data -------------------------------------------------------------------------------------------


def correlate_codes(codes: np.ndarray, values: np.ndarray, periods: Periods, quantities: Quantities) -> np.ndarray:
    """Return the correlation of every code with every quantity, (n, d) and (n, a) -> (d, a); absolute for angles."""
    r = np.zeros((codes.shape[1], len(quantities)))
    ordinary = np.array([period is None for period in periods], bool)
    for j, quantity in enumerate(quantities):
        rows = ~np.isnan(values[:, j])
        c = PreparedFactors(values[rows, j : j + 1], periods=[quantity.period], code_periods=periods)
        signed = correlations(c.c, codes[rows])[0]
        is_signed = ordinary & (quantity.period is None)
        r[:, j] = np.where(is_signed, signed, associations(c, codes[rows])[0])
    return r


def correlate_quantities(values: np.ndarray, quantities: Quantities) -> np.ndarray:
    """Return the correlations of quantities (n, a) that are no angles, (a, a); 0 with an angle."""
    angles = np.array([quantity.period is not None for quantity in quantities], bool)
    filled = np.where(np.isnan(values), np.nanmean(values, 0), values)
    scaled = (filled - filled.mean(0)) / np.array([q.deviation for q in quantities])
    r = scaled.T @ scaled / len(values)
    r[angles] = r[:, angles] = 0
    np.fill_diagonal(r, 1)
    return r


# Changes along codes --------------------------------------------------------------------------------------------------


def measure_effects(
    method: Method,
    x: np.ndarray,
    codes: np.ndarray,
    shown: Sequence[int],
    classes: np.ndarray | None = None,
    columns: Sequence[str] = (),
) -> Effects:
    """Measure what codes do, by their correlation with the data and, for a method with a decoder, by moving them.

    Every code in turn goes from its 5 % to its 95 % quantile (an angle once around), while the others stay those of an
    observation. Changes are averaged over observations, so a code that changes a quantity in either direction,
    depending on the observation, has a small one. For classes, the change is that along the range of the code within
    the class: its share of the whole range times the change along it.

    Args:
        method: A fitted method.
        x: Observations, (n, *shape), in random order.
        codes: Their codes, (n, d).
        shown: Codes to measure.
        classes: Class of each observation, (n,); None for data without classes.
        columns: Names of the columns of a table.
    """
    levels = image_levels(x)
    quantities, values = measure_quantities(to_unit(x, levels), codes[:, shown], columns)
    periods = [method.code_periods()[j] for j in shown]
    r = correlate_codes(codes[:, shown], values, periods, quantities)
    within = correlate_quantities(values, quantities)
    if not method.has_decoder():
        return Effects(quantities, r, within)
    starts = pick_starts(classes, len(x), MAX_DECODED // (STEPS * math.prod(x.shape[1:])))
    scale = None if x.ndim - 1 in IMAGE_DIMENSIONS else x.reshape(len(x), -1).std(0)
    moves = [
        measure_move(
            to_unit(move_code(method, codes, j, starts), levels), quantities, scale, is_angle=period is not None
        )
        for j, period in zip(shown, periods, strict=True)
    ]
    ends, squares = np.stack([move.ends for move in moves]), np.stack([move.squares for move in moves])
    deviations = np.array([quantity.deviation for quantity in quantities])
    return Effects(
        quantities, r, within, (ends[..., 1] - ends[..., 0]) / deviations, ends,
        strength=np.sqrt(squares.mean(1) / max(squares.mean(1).max(), 1e-24)),
        regions=None if scale is not None else np.stack([m.regions for m in moves if m.regions is not None]),
        by_class=None if classes is None else (
            change_by_class(squares, classes[starts], int(classes.max()) + 1)
            * range_shares(codes[:, shown], periods, classes)
        ),
    )  # fmt: skip


def pick_starts(classes: np.ndarray | None, n: int, limit: int) -> np.ndarray:
    """Return the rows of at most 60 observations, as many of each class as possible."""
    limit = max(1, min(MAX_STARTS, limit))
    if classes is None:
        return np.arange(min(n, limit))
    rank = np.empty(n, int)  # of an observation within its class
    for value in np.unique(classes):
        members = np.flatnonzero(classes == value)
        rank[members] = np.arange(len(members))
    return np.argsort(rank, kind="stable")[:limit]


def move_code(method: Method, codes: np.ndarray, j: int, starts: np.ndarray) -> np.ndarray:
    """Return decoded observations with code j at five values, (STEPS, m, *shape)."""
    period = method.code_periods()[j]
    low, high = np.quantile(codes[:, j], [LOWER_QUANTILE, UPPER_QUANTILE]) if period is None else (0.0, period)
    z = np.repeat(codes[starts][None], STEPS, 0)  # (STEPS, m, d)
    z[..., j] = np.linspace(low, high, STEPS)[:, None]
    x = method.inverse_transform(z.reshape(-1, codes.shape[1]))
    return x.reshape(STEPS, len(starts), *x.shape[1:])


def measure_move(line: np.ndarray, quantities: Quantities, scale: np.ndarray | None, *, is_angle: bool) -> Move:
    """Measure what changes along a code.

    Args:
        line: Observations with the code at five values, (STEPS, m, *shape).
        quantities: What is measured of them.
        scale: Deviations of the columns of a table, (features,); None for images.
        is_angle: Whether the code is an angle, which goes once around.
    """
    values = quantity_values(line.reshape(-1, *line.shape[2:]), quantities).reshape(STEPS, -1, len(quantities))
    ends = quantity_ends(values, quantities, is_angle=is_angle)
    square = np.square(np.ptp(line, axis=0)).reshape(line.shape[1], -1)  # (m, features)
    if scale is not None:
        return Move(ends, (square / np.where(scale > 0, scale, 1.0) ** 2).mean(1), None)
    energy = square.mean(0).reshape(-1, *line.shape[-2:]).sum(0)  # (h, w)
    return Move(ends, square.mean(1), region_shares(energy))


def quantity_ends(values: np.ndarray, quantities: Quantities, *, is_angle: bool = False) -> np.ndarray:
    """Return means of quantities at both ends of a code, (STEPS, m, a) -> (a, 2).

    A code that is an angle has no ends: these are then the lowest and the highest mean.
    Quantities that are angles are followed around the circle, so that the second number may exceed a full turn.
    """
    ends = np.zeros((len(quantities), 2))
    for a, quantity in enumerate(quantities):
        known = values[:, ~np.isnan(values[..., a]).any(0), a]  # (STEPS, m): observations that always have it
        if not known.size:
            continue
        if quantity.period is not None:
            start = circmean(known[0], high=quantity.period)
            known = np.unwrap(known, period=quantity.period, axis=0)
            profile = start + (known - known[0]).mean(1)
        else:
            profile = known.mean(1)
        ends[a] = profile[[profile.argmin(), profile.argmax()] if is_angle else [0, -1]]
    return ends


def region_shares(energy: np.ndarray) -> np.ndarray:
    """Return the shares of 3 x 3 regions in the squared change of an image, (h, w) -> (3, 3)."""
    rows = [part.sum(0) for part in np.array_split(energy, GRID, axis=0)]
    shares = np.array([[part.sum() for part in np.array_split(row, GRID)] for row in rows])
    return shares / max(float(shares.sum()), 1e-24)


def change_by_class(squares: np.ndarray, classes: np.ndarray, count: int) -> np.ndarray:
    """Return root mean square changes by class, (d, m) and (m,) -> (d, count); NaN for a class without observations."""
    members = [squares[:, classes == k] for k in range(count)]
    return np.stack([np.sqrt(part.mean(1)) if part.size else np.full(len(part), np.nan) for part in members], 1)


def range_shares(codes: np.ndarray, periods: Periods, classes: np.ndarray) -> np.ndarray:
    """Return the range of each code within each class by its range over all, (n, d) -> (d, classes); 1 for angles."""
    bounds = [LOWER_QUANTILE, UPPER_QUANTILE]
    whole = np.ptp(np.quantile(codes, bounds, axis=0), axis=0)  # (d,)
    shares = np.ones((codes.shape[1], int(classes.max()) + 1))
    for k in np.unique(classes):
        within = np.ptp(np.quantile(codes[classes == k], bounds, axis=0), axis=0)
        shares[:, k] = np.where(whole > 0, within / np.where(whole > 0, whole, 1), 1)
    shares[[period is not None for period in periods]] = 1
    return shares
