"""Features of handwriting that some digits of a class have: the crossbar of a 7, and the loop of a 2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave import attributes

Feature = Callable[[np.ndarray], np.ndarray]
"""Returns which images have a feature, (n, 1, h, w) -> (n,)."""

MIN_INK = 0.5  # of a pixel that belongs to a stroke
MIN_BAR = 2.2  # longest run of ink in the middle of a 7 with a crossbar, in units of the stem
MIN_LOOP = 0.004  # share of the image that a loop encloses, three pixels of 28 x 28


def crossbar(images: np.ndarray) -> np.ndarray:
    """Return the longest run of ink in a row of the middle, relative to that of the stem, (n, 1, h, w) -> (n,).

    Rows are counted from the top of the ink. The longest run between 35 and 70 % is compared with the median one
    between 35 and 100 %: about 1 for a plain 7, and 2 or more for one with a crossbar. An image without ink has 1.
    """
    return np.array([_crossbar(image) for image in images.reshape(-1, *images.shape[-2:]) > MIN_INK])


def _crossbar(ink: np.ndarray) -> float:
    rows = np.flatnonzero(ink.any(1))
    if not len(rows):
        return 1.0
    body = ink[rows[0] : rows[-1] + 1]
    lengths = np.array([longest_run(row) for row in body])
    low, high = int(0.35 * len(body)), max(int(0.7 * len(body)), int(0.35 * len(body)) + 1)
    return float(lengths[low:high].max() / max(np.median(lengths[low:]), 1))


def longest_run(row: np.ndarray) -> int:
    """Return the number of pixels of the longest run of ink in a row, (w,)."""
    edges = np.flatnonzero(np.diff(np.pad(row.astype(int), 1)))  # starts and ends of runs in turn
    return int((edges[1::2] - edges[::2]).max(initial=0))


def has_crossbar(images: np.ndarray) -> np.ndarray:
    """Return which digits have a crossbar, (n, 1, h, w) -> (n,)."""
    return crossbar(images) > MIN_BAR


def has_loop(images: np.ndarray) -> np.ndarray:
    """Return which digits enclose an area, (n, 1, h, w) -> (n,)."""
    return np.asarray(attributes.hole_area(np.clip(images, 0, 1))) > MIN_LOOP


# Features by name: the digit that may have it, and who has it.
FEATURES: dict[str, tuple[int, Feature]] = {
    "crossbar of the 7": (7, has_crossbar),
    "loop of the 2": (2, has_loop),
}
