"""Read images: single files, and folders whose sub-folders are labels."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
import pandas as pd
from PIL import Image, ImageOps

from unweave.data.rows import RowReader, run_in_threads
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.files import check_exists, check_memory

IMAGE_FORMATS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
DECODING_BYTES = 8  # of a pixel while it is decoded: as it is stored, and as it is returned
IMAGE_ADVICE = "Make it smaller, or let unweave do it: --data.resize 64"
FOLDER_LEVELS = {0: [], 1: ["label"], 2: ["domain", "class"]}  # names of factors by the depth of sub-folders


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder and its sub-folders in natural order (2 before 10); links are followed.

    Raises:
        InputError: If a sub-folder or an image cannot be read, or a link leads back: nothing is left out silently.
    """
    paths = [path for path in files_below(folder) if path.suffix.lower() in IMAGE_FORMATS]
    for path in paths:
        check_exists(path)
    paths = [path for path in paths if path.is_file()]
    if len(paths) == 1:
        raise InputError(f"{folder} has one image in it; at least two are needed")
    if not paths:
        raise InputError(f"{folder} has no images in it ({', '.join(sorted(IMAGE_FORMATS))})")
    return sorted(paths, key=lambda path: _natural_key(str(path.relative_to(folder))))


def files_below(folder: Path) -> list[Path]:
    """Return all files in a folder and its sub-folders, but hidden ones."""

    def refuse(error: OSError) -> None:
        raise InputError(
            f"{error.filename} cannot be read: {error.strerror or error}. Correct it, or move the folder elsewhere"
        ) from error

    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        for name in folders:
            path = Path(place, name)
            if path.is_symlink() and path.resolve() in (Path(place).resolve(), *Path(place).resolve().parents):
                raise InputError(f"{path} is a link to a folder that contains it: remove the link")
        files += [Path(place, name) for name in names if not name.startswith(".")]
    return files


def _natural_key(name: str) -> list[str | int]:
    """Return a sort key that orders digits by value; every second part is a number, so keys are comparable."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", name))]


def read_images(
    folder: Path, max_bytes: float = math.inf, crop: int | None = None, limit: float | None = None
) -> tuple[np.ndarray | ImageRows, pd.DataFrame]:
    """Return images as bytes, (n, channels, h, w), gray if all are, and the names of their sub-folders as factors.

    Images that take more than `max_bytes` together are decoded when they are needed. With `crop`, each is its central
    square, resized to that many pixels.
    """
    paths = image_files(folder)
    labels = folder_labels([path.parent.relative_to(folder).parts for path in paths])
    return read_image_files(paths, max_bytes, crop, limit), labels


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


def read_image_files(
    paths: Sequence[Path], max_bytes: float = math.inf, crop: int | None = None, limit: float | None = None
) -> np.ndarray | ImageRows:
    """Return images of one size, (n, channels, h, w), decoded if they take at most `max_bytes`.

    Raises:
        InputError: If one image takes more than `limit` bytes; None: half of the free memory.
    """
    _, height, width = _read_header(paths[0], limit)
    pixels = height * width if crop is None else crop**2
    allowed = min(max_bytes, math.inf if limit is None else limit)
    if len(paths) * 3 * pixels > allowed:  # as many channels as there may be
        rows = ImageRows(paths, crop, limit)
        if rows.size_in_bytes() > allowed:
            return rows
        check_memory(plural(len(paths), "image"), rows.size_in_bytes(), limit, IMAGE_ADVICE)
    first = decode_image(paths[0], str(paths[0]), crop=crop)
    images = [first]
    for path in paths[1:]:
        image = decode_image(path, str(path), crop=crop, limit=limit)
        if image.shape[1:] != first.shape[1:]:
            raise _sizes_error(paths[0], first.shape[1:], path, image.shape[1:])
        images.append(image)
    channels = max(len(image) for image in images)
    return np.stack([_with_channels(image, channels) for image in images])


def _sizes_error(first: Path, size: tuple[int, ...], path: Path, other: tuple[int, ...]) -> InputError:
    """Return the error for images of two sizes, (height, width) each."""
    (h0, w0), (h, w) = size, other
    return InputError(
        f"images of different sizes: {first} is {w0} x {h0}, {path} is {w} x {h}; resize them to one size, or let "
        "unweave do it: --data.resize 64"
    )


def _with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """Return a gray image among color images with their number of channels, (1 or channels, h, w)."""
    return image if len(image) == channels else np.repeat(image, channels, 0)


@final
class ImageRows(RowReader):
    """Images of one size that are decoded when they are needed, by several threads.

    Sizes are read from the headers, and damage of a PNG from its checksums, before anything is decoded.

    Example:
        >>> from tempfile import mkdtemp
        >>> paths = [Path(mkdtemp()) / f"{i}.png" for i in range(3)]
        >>> for path in paths:
        ...     Image.new("L", (8, 6)).save(path)
        >>> ImageRows(paths).read(np.array([0, 2])).shape
        (2, 1, 6, 8)
    """

    def __init__(self, paths: Sequence[Path], crop: int | None = None, limit: float | None = None) -> None:
        headers = run_in_threads(lambda path: _read_header(path, limit), paths)
        size = headers[0][1:] if crop is None else (crop, crop)
        for path, header in zip(paths, headers, strict=True):
            if crop is None and header[1:] != size:
                raise _sizes_error(paths[0], size, path, header[1:])
        self.paths, self.dtype, self.crop = list(paths), np.dtype(np.uint8), crop
        self.shape = (max(channels for channels, _, _ in headers), *size)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Decode images."""
        unique, inverse = np.unique(rows, return_inverse=True)
        x = np.empty((len(unique), *self.shape), self.dtype)

        def decode(i: int) -> None:
            path = self.paths[unique[i]]
            image = _with_channels(decode_image(path, str(path), crop=self.crop), self.shape[0])
            if image.shape != self.shape:
                raise InputError(f"{path} has changed since the data were opened: it is now of shape {image.shape}")
            x[i] = image

        run_in_threads(decode, range(len(unique)))
        return x[inverse]


def _read_header(path: Path, limit: float | None = None) -> tuple[int, int, int]:
    """Return the channels, height and width of an image from its header; raise an error if it is damaged."""
    with _opened(path, str(path), limit) as file:
        channels = 1 if _is_gray(file.mode) else 3
        width, height = file.size
        if file.format == "PNG":
            file.verify()
    return channels, height, width


def decode_image(
    source: Path | BinaryIO, name: str, *, crop: int | None = None, limit: float | None = None
) -> np.ndarray:
    """Return an image as bytes, (1 or 3, h, w); with `crop`, its central square, resized to that many pixels."""
    with _opened(source, name, limit) as file:
        image = _to_eight_bits(file, name)
    if crop is not None and image.size != (crop, crop):
        image = ImageOps.fit(image, (crop, crop), Image.Resampling.LANCZOS)
    return _to_pixels(image)


def image_to_array(image: Image.Image, name: str) -> np.ndarray:
    """Return an opened image as bytes, (1 or 3, h, w)."""
    return _to_pixels(_to_eight_bits(image, name))


def _to_pixels(image: Image.Image) -> np.ndarray:
    """Return the bytes of a gray or color image, (1 or 3, h, w)."""
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


@contextlib.contextmanager
def _opened(source: Path | BinaryIO, name: str, limit: float | None = None) -> Iterator[Image.Image]:
    """Open a file with a single image; an error inside the block says that it is not readable."""
    try:
        with Image.open(source) as file:
            width, height = file.size
            check_memory(
                f"{name} ({width:,} x {height:,} pixels)", DECODING_BYTES * width * height, limit, IMAGE_ADVICE
            )
            frames = getattr(file, "n_frames", 1)
            if frames > 1:
                raise InputError(f"{name} holds {frames} images: save each as a file of its own")
            yield file
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"{name} has too many pixels ({first_line(error)}): make it smaller") from error
    except Exception as error:  # pillow raises many types for a damaged file
        raise InputError(f"{name} is not a readable image ({error}): remove it or replace it") from error


def _is_gray(mode: str) -> bool:
    """Return whether an image of this mode has one channel, transparency not counted."""
    return mode in ("1", "L", "LA", "F") or mode.startswith("I")


def _to_eight_bits(image: Image.Image, name: str) -> Image.Image:
    """Return a gray or color image with 8 bits per channel; pillow would clip deeper images at 255."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        limit = 1.0 if image.mode == "F" else 65535.0
        if values.min() < 0 or values.max() > limit:
            raise InputError(f"{name} holds values from {values.min():g} to {values.max():g}; expected 0 to {limit:g}")
        return Image.fromarray((values * (255 / limit)).round().astype(np.uint8))
    return image.convert("L" if _is_gray(image.mode) else "RGB")
