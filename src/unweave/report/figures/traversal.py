"""What codes do to images: traversals, reconstructions, interpolations; and how much each code carries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

from unweave.data.core import as_float
from unweave.methods.base import Method
from unweave.report.figures.sheet import join_images
from unweave.report.figures.style import make_panels
from unweave.utils.errors import InputError
from unweave.utils.storage import atomic_file

STEPS = 9  # images in a row
FRAMES = 24  # of a moving picture, there and back
MOST_CODES = 12  # rows


def draw_traversals(method: Method, X: np.ndarray, *, steps: int = STEPS, center: int = 0) -> Figure:
    """A row for each code, the one that varies most first: it alone runs from its 5 % to its 95 % quantile over X.

    The other codes stay as they are for the observation X[center], which stands at the left.
    """
    return draw_code_traversals(method, method.transform(X), X[center : center + 1], steps=steps, center=center)


def draw_code_traversals(
    method: Method, z: np.ndarray, start: np.ndarray | None = None, *, steps: int = STEPS, center: int = 0
) -> Figure:
    """The same from codes alone (n, d); without the observation itself, what is decoded from its codes stands first."""
    order = np.argsort(-z.std(0), kind="stable")[:MOST_CODES]
    rows = [(_name(j, z), _decoded(method, traverse_code(z, j, center, steps))) for j in order]
    first = _images(start) if start is not None else _decoded(method, z[center : center + 1])
    title = f"{method.name}: one code at a time, 5 % to 95 %"
    return draw_grid([(name, np.concatenate([first, images])) for name, images in rows], title)


def traverse_code(z: np.ndarray, j: int, center: int, steps: int) -> np.ndarray:
    """Codes of one observation with code j running through the range that most observations have, (steps, d)."""
    line = np.repeat(z[center : center + 1], steps, 0)
    low, high = np.quantile(z[:, j], [0.05, 0.95])
    line[:, j] = np.linspace(low, high, steps)
    return line


def save_animation(method: Method, X: np.ndarray, path: str | Path, *, center: int = 0, scale: int = 2) -> Path:
    """A GIF in which the codes that vary most move there and back, side by side, each alone."""
    z = method.transform(X)
    order = np.argsort(-z.std(0), kind="stable")[:MOST_CODES]
    there = [_decoded(method, traverse_code(z, j, center, FRAMES)) for j in order]  # each (frames, c, h, w)
    frames = []
    for i in [*range(FRAMES), *reversed(range(1, FRAMES - 1))]:
        picture = join_images(torch.from_numpy(np.stack([images[i] for images in there])))
        pixels = (picture * 255).round().astype(np.uint8)
        frames.append(Image.fromarray(pixels).resize((pixels.shape[1] * scale, pixels.shape[0] * scale), Image.NEAREST))  # type: ignore[attr-defined]
    path = Path(path)
    with atomic_file(path) as file:
        frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=80, loop=0)
    return path


def draw_reconstructions(method: Method, X: np.ndarray) -> Figure:
    """Observations above, what is decoded from their codes below."""
    return draw_grid([("observed", _images(X)), ("decoded", _decoded(method, method.transform(X)))], "")


def draw_interpolation(method: Method, a: np.ndarray, b: np.ndarray, *, steps: int = STEPS) -> Figure:
    """From one observation to another, in a straight line between their codes; the two themselves at the ends."""
    return draw_grid([("", interpolate(method, a, b, steps=steps))], "ends observed, decoded in between")


def interpolate(method: Method, a: np.ndarray, b: np.ndarray, *, steps: int = STEPS) -> np.ndarray:
    """Both observations, and in between what is decoded from the line between their codes, (steps + 2, c, h, w)."""
    ends = np.stack([a, b])
    z = method.transform(ends)
    images = _decoded(method, np.linspace(z[0], z[1], steps).astype(z.dtype))
    return np.concatenate([_images(ends[:1]), images, _images(ends[1:])])


def draw_kl_per_code(method: Method, X: np.ndarray) -> Figure:
    """Nats that each code of a variational autoencoder carries, largest first; those near zero are not used."""
    nats_of = getattr(method, "kl_per_code", None)
    if nats_of is None:
        raise InputError(f"{type(method).__name__} has no posterior: KL per code is for variational autoencoders")
    x = torch.from_numpy(np.array(X))
    with torch.no_grad():
        nats = nats_of(as_float(x).float()).mean(0).numpy()  # (d,)
    order = np.argsort(-nats)
    figure, (axis,) = make_panels(1, width=1.5 + 0.35 * len(nats))
    axis.bar(range(len(nats)), nats[order])
    axis.set_xticks(range(len(nats)), [f"{j + 1}" for j in order])
    axis.set_xlabel("code")
    axis.set_ylabel("KL to the prior (nats)")
    return figure


def _name(j: int, z: np.ndarray) -> str:
    return f"code {j + 1}\ndev. {z[:, j].std():.2f}"


def _decoded(method: Method, z: np.ndarray) -> np.ndarray:
    return _images(method.inverse_transform(z))


def _images(x: np.ndarray) -> np.ndarray:
    """(n, c, h, w) in [0, 1], from images with or without a channel axis."""
    if x.ndim not in (3, 4):
        raise InputError(f"observations of shape {x.shape[1:]}: only images can be shown")
    x = x[:, None] if x.ndim == 3 else x
    return x.astype(np.float32) / 255 if x.dtype == np.uint8 else x.astype(np.float32)


def draw_grid(rows: list[tuple[str, np.ndarray]], title: str, heads: Sequence[str] = ()) -> Figure:
    """Rows of images with their names at the left; the columns may have names too, below them."""
    across = max(len(images) for _, images in rows)
    figure, (axis,) = make_panels(1, width=across * 0.62 + 1.2, height=len(rows) * 0.66 + 0.4)
    picture = np.concatenate([join_images(torch.from_numpy(images)) for _, images in rows], 0)
    axis.imshow(picture, vmin=0, vmax=1, interpolation="nearest")
    size = picture.shape[0] / len(rows)
    axis.set_yticks([(i + 0.5) * size for i in range(len(rows))], [name for name, _ in rows], fontsize=7)
    side = picture.shape[1] / across
    axis.set_xticks([(i + 0.5) * side for i in range(len(heads))], heads, fontsize=7)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title(title)
    return figure
