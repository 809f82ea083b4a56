"""Numbers and pictures in a form that makes a page small."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image

DIGITS = 5  # significant digits of plotted numbers; scores of runs keep all
LEVELS = 2**16 - 1  # steps between the lowest and the highest value of a packed column
MAX_COLORS = 256  # of a palette
MAX_PIXEL_ERROR = 6  # of 255: a larger error of a palette could be seen
MAX_IMAGE_SIZE = 96  # pixels of the longer side of an image, which is at most 80 pixels wide on the page


def round_number(value: float) -> float | None:
    """Return a number with `DIGITS` significant digits; None for NaN and infinity, which JSON does not have.

    >>> round_number(0.123456789), round_number(float("nan"))
    (0.12346, None)
    """
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def round_numbers(values: Iterable[float]) -> list[float | None]:
    """Return numbers with `DIGITS` significant digits, None for those that are not finite."""
    return [round_number(float(value)) for value in values]


def pack_column(values: np.ndarray) -> dict[str, Any]:
    """Return numbers (n,) as 16-bit steps between their lowest and highest value, in base64."""
    low, high = float(values.min()), float(values.max())
    steps = (values - low) * (LEVELS / (high - low)) if high > low else np.zeros(len(values))
    data = base64.b64encode(steps.round().astype("<u2").tobytes()).decode()
    return {"low": low, "high": high, "data": data}


def encode_image(pixels: np.ndarray) -> str:
    """Return an image (h, w, 3) or (h, w) of bytes as a small PNG in a `data:` URI."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((MAX_IMAGE_SIZE, MAX_IMAGE_SIZE))
    buffer = io.BytesIO()
    reduce_colors(image).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def reduce_colors(image: Image.Image) -> Image.Image:
    """Return a gray image, one with a palette if no pixel changes by more than `MAX_PIXEL_ERROR`, or the same."""
    if image.mode == "L":
        return image
    pixels = np.asarray(image.convert("RGB")).astype(int)
    if (pixels == pixels[..., :1]).all():
        return Image.fromarray(pixels[..., 0].astype(np.uint8))
    palette = image.convert("RGB").quantize(MAX_COLORS, dither=Image.Dither.NONE)
    error = np.abs(np.asarray(palette.convert("RGB")).astype(int) - pixels).max()
    return palette if error <= MAX_PIXEL_ERROR else image
