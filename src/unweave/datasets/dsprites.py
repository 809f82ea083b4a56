"""dSprites: white squares, ellipses and hearts on black, rendered from their geometry without any file."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Literal, final

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import Factorial, Mixing
from unweave.data.core import Factor
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.arrays import load_array
from unweave.utils.errors import InputError

SHAPES = ("square", "ellipse", "heart")
SIZE = 64  # width and height of an image in pixels
REACH = 15  # largest distance of a sprite from its center in pixels
FACTORS = (
    Factor("shape", 3, "nominal"),
    Factor("scale", 6, "ordinal"),
    Factor("orientation", 40, "circular", period=39),  # 0 and 39 coincide, as in the original
    Factor("x", 32, "ordinal"),
    Factor("y", 32, "ordinal"),
)


@final
class DSprites(Dataset):
    """dSprites (Matthey et al., 2017): all 737,280 images from the published file if it exists, else re-rendered.

    Orientations 0 and 39 are the same angle, as in the published file.

    Example:
        >>> data = DSprites(source="rendered").load()
        >>> len(data), data.shape
        (737280, (1, 64, 64))
    """

    name = "dsprites"
    paper = "Matthey, Higgins, Hassabis and Lerchner (2017)"
    page = "github.com/google-deepmind/dsprites-dataset"
    license = "Apache-2.0"
    files = (
        PublishedFile(
            "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            "git:d98996d3f8ee1550e06b9d4ed78d0beb478910d5",
            "https://raw.githubusercontent.com/google-deepmind/dsprites-dataset/master/"
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
        ),
    )

    source: Literal["auto", "original", "rendered"] = "auto"
    """Published file, our rendering, or the published file if it exists."""

    def load(self) -> Sprites:
        if not self._uses_published_file():
            return Sprites(bit_table(), FACTORS)
        with load_array(self.paths()[0]) as arrays:
            images = np.packbits(arrays["imgs"], axis=-1, bitorder="little")  # (737280, 64, 8) bytes
        return Sprites(torch.from_numpy(images.view(np.int64)[..., 0]), FACTORS)

    def title(self) -> str:
        return "dsprites" if self._uses_published_file() else "dsprites (re-rendered)"

    def _uses_published_file(self) -> bool:
        """Return whether the published file is read."""
        return self.source == "original" or (self.source == "auto" and self.is_available())


@final
class Sprites(Factorial):
    """Binary images with one bit per pixel: 512 bytes per image, 377 MB for all of dSprites."""

    def __init__(self, bits: Tensor, factors: tuple[Factor, ...]) -> None:
        super().__init__(factors, (1, SIZE, SIZE), bits.device)
        self.bits = bits.view(torch.int32)  # (rows, 128): word w of an image holds pixels 32 w to 32 w + 31
        self.places = torch.arange(32, dtype=torch.int32, device=bits.device)

    def rows(self, index: Tensor) -> Tensor:
        words = self.bits.index_select(0, index.reshape(-1))  # (n, 128)
        return (words[..., None] >> self.places & 1).float().reshape(*index.shape, 1, SIZE, SIZE)


@cache
def bit_table() -> Tensor:
    """Return all images, (737280, 64): each row of pixels is a word of 64 bits, the first pixel in the lowest bit."""
    table = torch.zeros(3, 6, 40, 32, 32, SIZE, dtype=torch.int64)  # shape, scale, orientation, x, y, row
    center = 16 + 32 * torch.arange(32, dtype=torch.float64) / 31  # of the sprite at each position, in pixels
    first = center.floor().long() - REACH  # the first row and column that a sprite there can touch
    rows = first[:, None] + torch.arange(2 * REACH + 1)  # (32, 31)
    lines = (rows + 0.5 - center[:, None]).flatten()  # of pixel centers, relative to the sprite's center, (992,)
    for shape, scale, part in product(range(3), range(6), torch.split(torch.arange(40), 4)):
        angles = 2 * math.pi * part.double() / 39
        crossings = find_crossings(
            transform_outline(shape, torch.full((4,), 0.5 + 0.1 * scale), angles), lines
        )  # (4, 992, 4)
        # A pixel is inside where an odd number of crossings lies to its left: exclusive-or of "all pixels before".
        before = (center + crossings[..., None] - 0.5).ceil().nan_to_num(posinf=0).long()  # (4, 992, 4, 32)
        words = (1 << before) - 1
        words = (words[:, :, 0] ^ words[:, :, 1]) ^ (words[:, :, 2] ^ words[:, :, 3])  # (4, 992, 32)
        words = words.reshape(4, 32, -1, 32).permute(0, 3, 1, 2)  # orientation, x, y, row of the window
        for y in range(32):
            table[shape, scale, part, :, y, first[y] : first[y] + 2 * REACH + 1] = words[:, :, y]
    return table.reshape(-1, SIZE)


def outline(shape: int) -> Tensor:
    """Return the closed polygon of a shape at scale 1 around its center, (m, 2), in pixels, y pointing down.

    Fitted so that all frames of the official animation are reproduced to the pixel.
    """
    if shape == 0:
        corner = 9.598
        return torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64) * corner
    if shape == 1:
        t = 2 * math.pi * torch.arange(100, dtype=torch.float64) / 100
        return torch.stack([12.7665 * t.cos(), 7.2162 * t.sin()], 1)
    t = 2 * math.pi * torch.arange(180, dtype=torch.float64) / 180
    y = 1.438 + 0.6622 * (13 * t.cos() - 5 * (2 * t).cos() - 2 * (3 * t).cos() - (4 * t).cos())
    return torch.stack([9.5984 * t.sin() ** 3, -y], 1)


def transform_outline(shape: int, scale: Tensor, angle: Tensor) -> Tensor:
    """Return the polygon of a shape, scaled and rotated by radians, (n,), (n,) -> (n, m, 2)."""
    c, s = angle.cos(), angle.sin()
    rotation = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)  # (n, 2, 2)
    return scale[:, None, None] * (outline(shape).to(angle) @ rotation.mT)


def find_crossings(polygon: Tensor, lines: Tensor) -> Tensor:
    """Return where horizontal lines cross polygons, left to right: (n, m, 2), (l,) or (n, l) -> (n, l, 4), or inf."""
    lines = lines.expand(len(polygon), -1)  # (n, l)
    below = polygon[:, None, :, 1] <= lines[..., None]  # (n, l, m)
    # Only few of all edges are crossed.
    i, j, k = (below != below.roll(-1, 2)).nonzero(as_tuple=True)
    p, q = polygon[i, k], polygon[i, (k + 1) % polygon.shape[1]]  # the crossed edges run from p to q
    x = p[:, 0] + (lines[i, j] - p[:, 1]) / (q[:, 1] - p[:, 1]) * (q[:, 0] - p[:, 0])
    line = i * lines.shape[1] + j
    count = line.bincount(minlength=lines.numel())
    rank = torch.arange(len(line)) - (count.cumsum(0) - count)[line]  # of a crossing on its line
    crossings = torch.full((lines.numel(), 4), torch.inf, dtype=x.dtype)
    crossings[line, rank] = x
    return crossings.sort(-1).values.reshape(*lines.shape, 4)


# Continuous factors ---------------------------------------------------------------------------------------------


@final
class ContinuousSprites(Dataset):
    """The shapes of dSprites with smooth edges and real-valued, uniform factors: scale, angle and position.

    Example:
        >>> ContinuousSprites(vary=("x", "angle"), points=20).load().shape
        (1, 64, 64)
    """

    name = "continuous-sprites"
    loads_fast = True
    paper = "after Matthey, Higgins, Hassabis and Lerchner (2017)"

    shape: Literal["square", "ellipse", "heart"] = "heart"
    """Shape of the sprite."""
    vary: tuple[Literal["scale", "angle", "x", "y"], ...] = ("x", "y")
    """Factors that vary; the others stay at scale 0.75, angle 0 and the center."""
    most_angle: float = 1.5707963
    """Largest angle in radians; a full turn, 6.2832, makes the factor circular."""
    points: int = 3_000
    """Number of images."""
    seed: int = 0
    """Seed of the random sample."""

    def load(self) -> Mixing:
        low = {"scale": 0.5, "angle": 0.0, "x": 0.0, "y": 0.0}
        high = {"scale": 1.0, "angle": self.most_angle, "x": 1.0, "y": 1.0}
        default = {"scale": 0.75, "angle": 0.0, "x": 0.5, "y": 0.5}
        if not self.vary or len(set(self.vary)) != len(self.vary) or not set(self.vary) <= set(low):
            raise InputError(f"vary={self.vary}: expected some of {', '.join(low)}, each once")
        a, b = (torch.tensor([bound[name] for name in self.vary]) for bound in (low, high))

        def prior(n: int, rng: Generator) -> Tensor:
            return a.to(rng.device) + (b - a).to(rng.device) * torch.rand(
                n, len(self.vary), generator=rng, device=rng.device
            )

        def mix(c: Tensor) -> Tensor:  # (..., k) -> (..., 1, 64, 64)
            flat = c.reshape(-1, len(self.vary))
            factors = {name: flat.new_full((len(flat),), value) for name, value in default.items()}
            factors |= {name: flat[:, i] for i, name in enumerate(self.vary)}
            images = render_sprites(SHAPES.index(self.shape), **factors)
            return images.reshape(*c.shape[:-1], 1, SIZE, SIZE)

        circular = self.most_angle > 6.28
        axes = [Factor(n, kind="circular" if n == "angle" and circular else "real") for n in self.vary]
        return Mixing(axes, (1, SIZE, SIZE), prior, mix, points=self.points, seed=self.seed)


def render_sprites(shape: int, scale: Tensor, angle: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Render sprites with smooth edges, (n,) each -> (n, 64, 64): the exact fraction of each pixel that is covered."""
    center = 16 + 32 * torch.stack([x, y], 1)
    parts = torch.split(transform_outline(shape, scale, angle) + center[:, None], 64)  # bounds the memory
    return torch.cat([coverage(polygon) for polygon in parts])


def coverage(polygon: Tensor) -> Tensor:
    """Return the area of each pixel inside closed polygons, (n, m, 2) -> (n, 64, 64), differentiable in the corners.

    By Green's theorem: cut the edges at the rows, and sum over them their signed height times the fraction of the
    pixel to their right. What lies right of two edges of opposite direction cancels.
    """
    n, q = len(polygon), polygon.roll(-1, 1)
    rows = torch.arange(SIZE).to(polygon)
    top, bottom = (side[..., 1, None].clamp(rows, rows + 1) for side in (polygon, q))  # (n, m, 64): each edge, each row
    i, j, row = (top != bottom).nonzero(as_tuple=True)  # only few edges reach into a row
    start, end = polygon[i, j], q[i, j]
    slope = (end[:, 0] - start[:, 0]) / (end[:, 1] - start[:, 1])
    top, bottom = top[i, j, row], bottom[i, j, row]
    # u, v: distance of the right side of each pixel from the edge, at both ends of the piece, (pieces, 64)
    u, v = (rows + 1 - (start[:, 0] + (height - start[:, 1]) * slope)[:, None] for height in (top, bottom))
    steep = (u - v).abs() < 1e-6
    right = torch.where(steep, u.clamp(0, 1), (_ramp(u) - _ramp(v)) / torch.where(steep, 1.0, u - v))
    pieces = (bottom - top)[:, None] * right
    areas = torch.zeros(n * SIZE, SIZE).to(polygon).index_add(0, i * SIZE + row, pieces)
    return areas.reshape(n, SIZE, SIZE).abs().clamp(max=1)  # rounding may give slightly more than 1


def _ramp(u: Tensor) -> Tensor:
    """Return the integral of clamp(u, 0, 1)."""
    inside = u.clamp(0, 1)
    return inside**2 / 2 + (u - 1).clamp(min=0)
