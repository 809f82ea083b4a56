"""Decoded images: traversals, reconstructions, interpolations; and the KL divergence of each code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

from unweave.data.core import as_float
from unweave.methods.base import Method
from unweave.methods.encoding import to_scaled
from unweave.report.figures.sheet import join_images
from unweave.report.figures.style import SMALL_FONT, make_panels
from unweave.utils.atomic import atomic_file
from unweave.utils.errors import InputError

STEPS = 9  # images in a row
FRAMES = 24  # of an animation from one end of the range to the other
FRAME_MILLISECONDS = 80
MAX_CODES = 12  # rows of a traversal
LOWER_QUANTILE, UPPER_QUANTILE = 0.05, 0.95  # range of a traversed code


def draw_traversals(method: Method, X: np.ndarray, *, steps: int = STEPS, center: int = 0) -> Figure:
    """Return one row per code, largest deviation first, with the code between its 5 % and 95 % quantiles over X.

    The other codes are fixed to those of the observation X[center], which is shown at the left.
    """
    return draw_code_traversals(method, method.transform(X), X[center : center + 1], steps=steps, center=center)


def draw_code_traversals(
    method: Method, z: np.ndarray, start: np.ndarray | None = None, *, steps: int = STEPS, center: int = 0
) -> Figure:
    """Return traversals from codes (n, d); without the observation `start`, its reconstruction is shown at the left."""
    title = f"{method.name}: one code at a time, from its 5 % to its 95 % quantile"
    title += f" ({MAX_CODES} of {z.shape[1]} codes)" if z.shape[1] > MAX_CODES else ""
    first = _to_images(start) if start is not None else None
    rows = decode_traversals(method, z, first, steps=steps, center=center)
    return draw_grid([(f"code {j + 1}\nstd. {z[:, j].std():.2f}", images) for j, images in rows], title)


def decode_traversals(
    method: Method, z: np.ndarray, first: np.ndarray | None = None, *, steps: int = STEPS, center: int = 0
) -> list[tuple[int, np.ndarray]]:
    """Return a code and its images for each row, (steps + 1, c, h, w) in [0, 1], largest deviation first.

    The first image is `first`, (1, c, h, w), by default the decoded observation `center`.
    """
    order = np.argsort(-z.std(0), kind="stable")[:MAX_CODES]
    first = _decode(method, z[center : center + 1]) if first is None else first
    return [(int(j), np.concatenate([first, _decode(method, traverse_code(z, j, center, steps))])) for j in order]


def traverse_code(z: np.ndarray, j: int, center: int, steps: int) -> np.ndarray:
    """Return the codes of one observation with code j between its 5 % and 95 % quantiles, (steps, d)."""
    line = np.repeat(z[center : center + 1], steps, 0)
    low, high = np.quantile(z[:, j], [LOWER_QUANTILE, UPPER_QUANTILE])
    line[:, j] = np.linspace(low, high, steps)
    return line


def save_animation(method: Method, X: np.ndarray, path: str | Path, *, center: int = 0, scale: int = 2) -> Path:
    """Write a GIF of traversals side by side, forward and back; return its path."""
    z = method.transform(X)
    order = np.argsort(-z.std(0), kind="stable")[:MAX_CODES]
    forward = [_decode(method, traverse_code(z, j, center, FRAMES)) for j in order]  # each (frames, c, h, w)
    frames = []
    for i in [*range(FRAMES), *reversed(range(1, FRAMES - 1))]:
        picture = join_images(torch.from_numpy(np.stack([images[i] for images in forward])))
        pixels = (picture * 255).round().astype(np.uint8)
        frames.append(Image.fromarray(pixels).resize((pixels.shape[1] * scale, pixels.shape[0] * scale), Image.NEAREST))  # type: ignore[attr-defined]
    path = Path(path)
    with atomic_file(path) as file:
        frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=FRAME_MILLISECONDS, loop=0)
    return path


def draw_reconstructions(method: Method, X: np.ndarray) -> Figure:
    """Return observations in the first row and their reconstructions in the second."""
    return draw_grid([("observed", _to_images(X)), ("reconstructed", _decode(method, method.transform(X)))], "")


def draw_interpolation(method: Method, a: np.ndarray, b: np.ndarray, *, steps: int = STEPS) -> Figure:
    """Return images decoded on the straight line between the codes of two observations, which are at the ends."""
    return draw_grid(
        [("", interpolate(method, a, b, steps=steps))],
        "interpolation between the codes of two observations (left and right)",
    )


def interpolate(method: Method, a: np.ndarray, b: np.ndarray, *, steps: int = STEPS) -> np.ndarray:
    """Return both observations and, between them, images decoded from the line between their codes.

    Shape: (steps + 2, c, h, w), in [0, 1].
    """
    ends = np.stack([a, b])
    z = method.transform(ends)
    images = _decode(method, np.linspace(z[0], z[1], steps).astype(z.dtype))
    return np.concatenate([_to_images(ends[:1]), images, _to_images(ends[1:])])


def draw_kl_per_code(method: Any, X: np.ndarray) -> Figure:
    """Return the KL divergence of each code of a variational autoencoder in nats, largest first; near 0 is unused."""
    if "kl" not in method.figures():
        text = f"{type(method).__name__} has no posterior with a fixed prior"
        raise InputError(f"{text}: KL per code is for variational autoencoders")
    x = torch.from_numpy(np.array(X))
    with torch.no_grad():
        nats = method.kl_per_code(to_scaled(method, as_float(x)).float()).mean(0).numpy()  # (d,)
    order = np.argsort(-nats)
    figure, (axis,) = make_panels(1, width=1.5 + 0.35 * len(nats))
    axis.bar(range(len(nats)), nats[order])
    axis.set_xticks(range(len(nats)), [f"{j + 1}" for j in order])
    axis.set_xlabel("code")
    axis.set_ylabel("KL divergence to the prior (nats)")
    return figure


def _decode(method: Method, z: np.ndarray) -> np.ndarray:
    return _to_images(method.inverse_transform(z))


def _to_images(x: np.ndarray) -> np.ndarray:
    """Return images (n, c, h, w) in [0, 1], from images with or without a channel axis."""
    if x.ndim not in (3, 4):
        raise InputError(f"observations of shape {x.shape[1:]}: only images can be shown")
    x = x[:, None] if x.ndim == 3 else x
    return x.astype(np.float32) / 255 if x.dtype == np.uint8 else x.astype(np.float32)


def draw_grid(rows: list[tuple[str, np.ndarray]], title: str, column_names: Sequence[str] = ()) -> Figure:
    """Return rows of images with their names at the left, and optional names below the columns."""
    columns = max(len(images) for _, images in rows)
    picture = np.concatenate([join_images(torch.from_numpy(images)) for _, images in rows], 0)
    ratio = (picture.shape[0] / len(rows)) / (picture.shape[1] / columns)  # height of an image by its width
    figure, (axis,) = make_panels(1, width=columns * 0.62 + 1.2, height=len(rows) * 0.66 * ratio + 0.4)
    axis.imshow(picture, vmin=0, vmax=1, interpolation="none")
    size = picture.shape[0] / len(rows)
    axis.set_yticks([(i + 0.5) * size for i in range(len(rows))], [name for name, _ in rows], fontsize=SMALL_FONT)
    side = picture.shape[1] / columns
    axis.set_xticks([(i + 0.5) * side for i in range(len(column_names))], column_names, fontsize=SMALL_FONT)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title(title)
    return figure
