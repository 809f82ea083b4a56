"""Observations ordered along each code: what a code does, shown without a decoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from unweave.utils.errors import InputError

FILE_NAME = "ordered.npz"  # in a run folder
STEPS = 9  # observations along a code; along a circular code the last is the first again
LOWER_QUANTILE, UPPER_QUANTILE = 0.05, 0.95  # of an ordinary code, at the ends of its row
DRAWN_SIZE, STORED_SIZE = 128, 64  # pixels of the longer side of an image, in a figure and in a run folder
MAX_STORED_PIXELS = 400_000  # of all images of a run: about 96 thumbnails of 64 x 64
MAX_STORED_CODES = 48  # codes that a run folder shows, those that vary most
MAX_COLUMNS = 10  # columns of a table shown for a code, those that change most with it
MAX_TABLE_ROWS = 20_000  # rows of a table whose means are computed
IMAGE_DIMENSIONS = (2, 3)  # axes of an observation that is shown as an image

Periods = Sequence[float | None]
"""Period of each code, None for an ordinary number: `Method.code_periods`"""


class OrderedImages(NamedTuple):
    """Images along k codes, s places each."""

    codes: np.ndarray  # (k,): indices of the codes
    values: np.ndarray  # (k, s): values of the code; NaN where the data have no observation
    places: np.ndarray  # (k, s): number of the image; -1 for none
    names: np.ndarray  # (k, s): identifiers of the observations; empty where there are none
    images: np.ndarray  # (m, h, w, 3): bytes


class OrderedColumns(NamedTuple):
    """Means of the columns of a table along k codes, in b groups of rows."""

    codes: np.ndarray  # (k,): indices of the codes
    values: np.ndarray  # (k, b): mean of the code in each group; NaN for an empty one
    columns: np.ndarray  # (k, c): names of the columns that change most with the code, most first
    means: np.ndarray  # (k, c, b): means of these columns, in their own units
    scaled: np.ndarray  # (k, c, b): the same in standard deviations from the mean of the column


Ordered = OrderedImages | OrderedColumns


def order_observations(
    codes: np.ndarray,
    x: np.ndarray,
    periods: Periods,
    *,
    row_names: Sequence[str] | None = None,
    feature_names: Sequence[str] = (),
    max_codes: int | None = None,
    max_pixels: int | None = None,
) -> Ordered | None:
    """Return observations along every code that varies; None if none does.

    Args:
        codes: Codes, (n, d).
        x: Their observations, (n, *shape): images (n, h, w) or (n, channels, h, w), or anything else as a table.
        periods: Period of each code, or None.
        row_names: Identifiers of the observations.
        feature_names: Names of the columns of a table.
        max_codes: Limit for the number of codes; those that vary most are shown.
        max_pixels: Limit for all images together, which are then at most 64 pixels wide and high; otherwise 128.
    """
    shown = varying_codes(codes)
    if max_codes is not None:
        shown = np.sort(shown[np.argsort(-codes[:, shown].std(0), kind="stable")[:max_codes]])
    if not len(shown):
        return None
    if x.ndim - 1 not in IMAGE_DIMENSIONS:
        rows = np.random.default_rng(0).permutation(len(x))[:MAX_TABLE_ROWS]
        return _order_columns(codes[rows], shown, x[rows].reshape(len(rows), -1), periods, feature_names)
    rows = pick_rows(codes, shown, periods)  # (k, s)
    used, index = np.unique(rows[rows >= 0], return_inverse=True)
    places = np.full(rows.shape, -1)
    places[rows >= 0] = index
    values = np.where(rows >= 0, codes[rows, shown[:, None]], np.nan)
    names = np.where(rows >= 0, np.array(row_names)[rows], "") if row_names else np.zeros((0, 0), str)
    size = DRAWN_SIZE if max_pixels is None else min(STORED_SIZE, math.isqrt(max_pixels // len(used)))
    return OrderedImages(shown, values, places, names, shrink(to_bytes(x[used]), size))


def varying_codes(codes: np.ndarray) -> np.ndarray:
    """Return the indices of the codes of (n, d) that are not constant."""
    return np.flatnonzero(np.ptp(codes, 0) > 1e-9 * np.abs(codes).max(0))


# Rows along a code ----------------------------------------------------------------------------------------------------


def pick_rows(codes: np.ndarray, shown: np.ndarray, periods: Periods, steps: int = STEPS) -> np.ndarray:
    """Return rows of (n, d) along each of k codes, (k, steps); -1 where there is none.

    Each place has its own group of rows: those around evenly spaced quantiles of the code, or around evenly spaced
    angles. Among them the row is taken whose other codes are nearest to those of a central observation.
    """
    blocks = [_to_block(column, period) for column, period in zip(codes.T, periods, strict=True)]
    from_medians = [np.square(b).sum(1) for b, period in zip(blocks, periods, strict=True) if period is None]
    center = int(np.argmin(sum(from_medians, np.zeros(len(codes)))))
    distances = np.stack([np.square(block - block[center]).sum(1) for block in blocks], 1)  # (n, d)
    rows = np.full((len(shown), steps), -1)
    for i, j in enumerate(shown.tolist()):
        others = distances.sum(1) - distances[:, j]
        groups, targets = group_rows(codes[:, j], periods[j], steps)
        goals = _to_block(targets, periods[j], like=codes[:, j])
        for place, (group, goal) in enumerate(zip(groups, goals, strict=True)):
            if len(group):
                rows[i, place] = group[np.argmin(others[group] + np.square(blocks[j][group] - goal).sum(1))]
    return rows


def group_rows(values: np.ndarray, period: float | None, steps: int = STEPS) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the rows around each of `steps` places along a code (n,), and the value of the code there, (steps,).

    The places are at evenly spaced quantiles, or at evenly spaced angles from 0 to a full turn, which is 0 again.
    """
    if period is not None:
        sector = np.round((values % period) * (steps - 1) / period).astype(int) % (steps - 1)
        return [np.flatnonzero(sector == i % (steps - 1)) for i in range(steps)], np.linspace(0, period, steps)
    order = np.argsort(values, kind="stable")
    quantiles = np.linspace(LOWER_QUANTILE, UPPER_QUANTILE, steps)
    borders = (quantiles[1:] + quantiles[:-1]) / 2
    place = np.searchsorted(borders, np.arange(len(values)) / max(1, len(values) - 1))
    return [order[place == i] for i in range(steps)], np.quantile(values, quantiles)


def _to_block(values: np.ndarray, period: float | None, like: np.ndarray | None = None) -> np.ndarray:
    """Return a code in units of its deviation from its median, (n, 1), or a circular one on a circle, (n, 2).

    Median and deviation are those of the code `like`, by default of the values themselves.
    """
    if period is not None:
        angle = values * (2 * math.pi / period)
        return np.stack([np.cos(angle), np.sin(angle)], 1)
    like = values if like is None else like
    return ((values - np.median(like)) / (like.std() or 1.0))[:, None]


# Tables ---------------------------------------------------------------------------------------------------------------


def _order_columns(
    codes: np.ndarray, shown: np.ndarray, x: np.ndarray, periods: Periods, names: Sequence[str]
) -> OrderedColumns:
    """Return the columns of (n, columns) that change most along each code, by their means in groups of rows."""
    labels = np.array(names if len(names) == x.shape[1] else [f"column {i}" for i in range(x.shape[1])])
    scaled = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    parts: list[tuple[np.ndarray, ...]] = []
    for j in shown.tolist():
        groups, places = group_rows(codes[:, j], periods[j])
        profile = np.stack([_mean(scaled, rows) for rows in groups], 1)  # (columns, b)
        changes = np.nanmax(profile, 1) - np.nanmin(profile, 1)
        order = np.argsort(-changes, kind="stable")[:MAX_COLUMNS]
        means = np.stack([_mean(x[:, order], rows) for rows in groups], 1)
        values = np.array([_mean(codes[:, [j]], rows)[0] for rows in groups]) if periods[j] is None else places
        parts.append((values, labels[order], means, profile[order]))
    return OrderedColumns(shown, *(np.stack(part) for part in zip(*parts, strict=True)))


def _mean(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean of some rows of (n, columns); NaN for none."""
    return x[rows].mean(0) if len(rows) else np.full(x.shape[1], np.nan)


# Images ---------------------------------------------------------------------------------------------------------------


def to_bytes(x: np.ndarray) -> np.ndarray:
    """Return images (n, h, w) or (n, channels, h, w) as bytes (n, h, w, 3).

    Floats are expected in [0, 1]. If some are not, the lowest becomes black and the highest white.
    """
    x = x[:, None] if x.ndim == 3 else x
    if x.dtype != np.uint8:
        low, high = (0.0, 1.0) if x.min() > -0.01 and x.max() < 1.01 else (float(x.min()), float(x.max()))
        x = (np.clip((x - low) / ((high - low) or 1.0), 0, 1) * 255).round().astype(np.uint8)
    x = x[:, :3] if x.shape[1] >= 3 else np.repeat(x[:, :1], 3, 1)  # two channels have no colors: the first is shown
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def shrink(images: np.ndarray, size: int) -> np.ndarray:
    """Return images (n, h, w, 3) whose longer side has at most `size` pixels."""
    height, width = images.shape[1:3]
    scale = size / max(height, width)
    if scale >= 1:
        return images
    shape = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.stack([np.asarray(Image.fromarray(i).resize(shape, Image.Resampling.LANCZOS)) for i in images])


# Files ----------------------------------------------------------------------------------------------------------------


def write_ordered(folder: Path, ordered: Ordered | None) -> None:
    """Write what a run folder shows along each code; nothing for None."""
    if ordered is not None:
        np.savez_compressed(folder / FILE_NAME, **ordered._asdict())


def read_ordered(folder: Path) -> Ordered | None:
    """Return what a run folder shows along each code; None for a folder of an earlier version."""
    if not (folder / FILE_NAME).is_file():
        return None
    try:
        with np.load(folder / FILE_NAME, allow_pickle=False) as file:
            arrays: dict[str, Any] = dict(file)
        return OrderedImages(**arrays) if "images" in arrays else OrderedColumns(**arrays)
    except Exception as error:  # whatever an altered file can cause
        text = f"{folder / FILE_NAME} is truncated or altered ({type(error).__name__}: {error})"
        raise InputError(f"{text}: delete it, and the report leaves the figure out") from error
