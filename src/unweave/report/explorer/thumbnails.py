"""Thumbnails of many images as a few sheets, each one picture in a `data:` URI."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
from PIL import Image

from unweave.experiments.ordered import shrink, to_bytes

MAX_SIDE = 64  # pixels of the longer side
MAX_PIXELS = 8_000_000  # of all thumbnails, which a phone can hold in memory
TILES_PER_SHEET = 1_024
MAX_BYTES = 1_500_000  # of all sheets without loss; larger ones are written as JPEG
JPEG_QUALITY = 80


def pack_thumbnails(x: np.ndarray) -> dict[str, Any]:
    """Return sheets of thumbnails, row by row in the order of the images.

    Args:
        x: Images, (n, h, w) or (n, channels, h, w).

    Returns:
        The sheets as URIs, width and height of a tile in pixels, tiles per row and per sheet.
    """
    side = min(MAX_SIDE, math.isqrt(MAX_PIXELS // len(x)))
    images = shrink(to_bytes(x), side)
    per_sheet = min(TILES_PER_SHEET, len(images))
    columns = math.ceil(math.sqrt(per_sheet))
    sheets = [_join(images[start : start + per_sheet], columns) for start in range(0, len(images), per_sheet)]
    files, kind = [_encode(sheet, "PNG") for sheet in sheets], "png"
    if sum(map(len, files)) > MAX_BYTES:
        files, kind = [_encode(sheet, "JPEG", quality=JPEG_QUALITY) for sheet in sheets], "jpeg"
    return {
        "sheets": [f"data:image/{kind};base64,{base64.b64encode(file).decode()}" for file in files],
        "width": images.shape[2],
        "height": images.shape[1],
        "columns": columns,
        "perSheet": per_sheet,
    }


def _join(images: np.ndarray, columns: int) -> Image.Image:
    """Return images (n, h, w, 3) side by side in rows; in gray where they have no color."""
    n, height, width, _ = images.shape
    rows = math.ceil(n / columns)
    sheet = np.zeros((rows * columns, height, width, 3), np.uint8)
    sheet[:n] = images
    joined = sheet.reshape(rows, columns, height, width, 3).transpose(0, 2, 1, 3, 4)
    picture = Image.fromarray(joined.reshape(rows * height, columns * width, 3))
    is_gray = bool((images[..., :1] == images).all())
    return picture.convert("L") if is_gray else picture


def _encode(sheet: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    sheet.save(buffer, kind, optimize=True, **options)
    return buffer.getvalue()
