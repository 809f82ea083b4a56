"""Read images: single files, and folders whose sub-folders are labels."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
from PIL import Image, ImageOps, UnidentifiedImageError

from unweave.utils.errors import InputError

IMAGE_FORMATS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
FOLDER_LEVELS = {0: [], 1: ["label"], 2: ["domain", "class"]}  # names of factors by the depth of sub-folders


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder and its sub-folders in natural order (2 before 10)."""
    paths = [path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_FORMATS and path.is_file()]
    paths = [path for path in paths if not path.name.startswith(".")]
    if len(paths) == 1:
        raise InputError(f"{folder} has one image in it; at least two are needed")
    if not paths and not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"{folder} cannot be read: you lack the permission")
    if not paths:
        raise InputError(f"{folder} has no images in it ({', '.join(sorted(IMAGE_FORMATS))})")
    return sorted(paths, key=lambda path: _natural_key(str(path.relative_to(folder))))


def _natural_key(name: str) -> list[str | int]:
    """Return a sort key that orders digits by value; every second part is a number, so keys are comparable."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", name))]


def read_images(folder: Path) -> tuple[np.ndarray, pd.DataFrame]:
    """Return images as bytes, (n, channels, h, w), gray if all are, and the names of their sub-folders as factors."""
    paths = image_files(folder)
    return read_image_files(paths), folder_labels([path.parent.relative_to(folder).parts for path in paths])


def folder_labels(folders: list[tuple[str, ...]]) -> pd.DataFrame:
    """Return the sub-folders of images as factors.

    One level is called `label`, two are `domain` and `class`, more are numbered. Images at different depths have one
    factor `label`: the whole path. A level that is the same for all images is left out.
    """
    depths = {len(parts) for parts in folders}
    if len(depths) > 1:
        return pd.DataFrame({"label": ["/".join(parts) or "." for parts in folders]})
    names = FOLDER_LEVELS.get(depth := depths.pop(), [f"folder{i + 1}" for i in range(depth)])
    levels = {name: [parts[i] for parts in folders] for i, name in enumerate(names)}
    varying = {name: values for name, values in levels.items() if len(set(values)) > 1}
    if len(varying) == 1:
        return pd.DataFrame({"label": next(iter(varying.values()))})
    return pd.DataFrame(varying, index=range(len(folders)))


def read_image_files(paths: list[Path]) -> np.ndarray:
    """Return images of one size as bytes, (n, channels, h, w), gray if all are."""
    first = decode_image(paths[0], str(paths[0]))
    images = [first]
    for path in paths[1:]:
        image = decode_image(path, str(path))
        if image.shape[1:] != first.shape[1:]:
            (h, w), (h0, w0) = image.shape[1:], first.shape[1:]
            raise InputError(
                f"images of different sizes: {paths[0]} is {w0} x {h0}, {path} is {w} x {h}; resize them to one size"
            )
        images.append(image)
    channels = max(len(image) for image in images)
    return np.stack([image if len(image) == channels else np.repeat(image, channels, 0) for image in images])


def decode_image(source: Path | BinaryIO, name: str, *, crop: int | None = None) -> np.ndarray:
    """Return an image as bytes, (1 or 3, h, w); with `crop`, its central square, resized to that many pixels."""
    try:
        with Image.open(source) as file:
            frames = getattr(file, "n_frames", 1)
            if frames > 1:
                raise InputError(f"{name} holds {frames} images: save each as a file of its own")
            image = _to_eight_bits(file, name)
    except InputError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{name} is not a readable image ({error}): remove it or replace it") from error
    if crop is not None and image.size != (crop, crop):
        image = ImageOps.fit(image, (crop, crop), Image.Resampling.LANCZOS)
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _to_eight_bits(image: Image.Image, name: str) -> Image.Image:
    """Return a gray or color image with 8 bits per channel; pillow would clip deeper images at 255."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        limit = 1.0 if image.mode == "F" else 65535.0
        if values.min() < 0 or values.max() > limit:
            raise InputError(f"{name} holds values from {values.min():g} to {values.max():g}; expected 0 to {limit:g}")
        return Image.fromarray((values * (255 / limit)).round().astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
