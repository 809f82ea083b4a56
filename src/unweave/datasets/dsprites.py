"""dSprites: white squares, ellipses and hearts on black, rendered from their geometry; no file is needed."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Literal, final

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import Factorial, Mixing
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.data.readers.arrays import load_array
from unweave.utils.errors import InputError

SHAPES = ("square", "ellipse", "heart")
SIZE = 64  # pixels
REACH = 15  # no sprite reaches further from its center, in pixels
FACTORS = (
    Factor("shape", 3, "nominal"),
    Factor("scale", 6, "ordinal"),
    Factor("orientation", 40, "circular"),
    Factor("x", 32, "ordinal"),
    Factor("y", 32, "ordinal"),
)


@final
class DSprites(Dataset):
    """dSprites (Matthey et al., 2017): all 737,280 images, the original file where it is found, else re-rendered.

    Note that orientation 0 and 39 are the same angle, in the original too.
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
    """the original file, our rendering of it, or the original where it is found"""

    def load(self) -> FactorData:
        if not self._original():
            return Sprites(bit_table(), FACTORS)
        with load_array(self.paths()[0]) as arrays:
            images = np.packbits(arrays["imgs"], axis=-1, bitorder="little")  # (737280, 64, 8) bytes
        return Sprites(torch.from_numpy(images.view(np.int64)[..., 0]), FACTORS)

    def title(self) -> str:
        return "dsprites" if self._original() else "dsprites (re-rendered)"

    def _original(self) -> bool:
        return self.source == "original" or (self.source == "auto" and self.is_available())


@final
class Sprites(Factorial):
    """Binary images with one bit a pixel: 512 bytes an image, 377 MB for all of dSprites."""

    def __init__(self, bits: Tensor, factors: tuple[Factor, ...]) -> None:
        super().__init__(factors, (1, SIZE, SIZE), bits.device)
        self.bits = bits.view(torch.int32)  # (rows, 128): word w of an image holds pixels 32 w to 32 w + 31
        self.places = torch.arange(32, dtype=torch.int32, device=bits.device)

    def rows(self, index: Tensor) -> Tensor:
        words = self.bits.index_select(0, index.reshape(-1))  # (n, 128)
        return (words[..., None] >> self.places & 1).float().reshape(*index.shape, 1, SIZE, SIZE)


@cache
def bit_table() -> Tensor:
    """Every image, (737280, 64) words of 64 pixels: the columns of a row are the bits of a word, lowest first."""
    table = torch.zeros(3, 6, 40, 32, 32, SIZE, dtype=torch.int64)  # shape, scale, orientation, x, y, row
    center = 16 + 32 * torch.arange(32, dtype=torch.float64) / 31  # of the sprite, for each position, in pixels
    first = center.floor().long() - REACH  # the first row and column that a sprite there can touch
    rows = first[:, None] + torch.arange(2 * REACH + 1)  # (32, 31)
    lines = (rows + 0.5 - center[:, None]).flatten()  # heights of pixel centers above the sprite's own, (992,)
    for shape, scale, part in product(range(3), range(6), torch.split(torch.arange(40), 4)):
        angles = 2 * math.pi * part.double() / 39
        crossings = cross(placed(shape, torch.full((4,), 0.5 + 0.1 * scale), angles), lines)  # (4, 992, 4)
        # A pixel is inside where an odd number of crossings lies to its left: exclusive-or of "all pixels before".
        before = (center + crossings[..., None] - 0.5).ceil().nan_to_num(posinf=0).long()  # (4, 992, 4, 32)
        words = (1 << before) - 1
        words = (words[:, :, 0] ^ words[:, :, 1]) ^ (words[:, :, 2] ^ words[:, :, 3])  # (4, 992, 32)
        words = words.reshape(4, 32, -1, 32).permute(0, 3, 1, 2)  # orientation, x, y, row of the window
        for y in range(32):
            table[shape, scale, part, :, y, first[y] : first[y] + 2 * REACH + 1] = words[:, :, y]
    return table.reshape(-1, SIZE)


def outline(shape: int) -> Tensor:
    """The closed polygon of a shape at scale 1 around its center, (m, 2), in pixels, y downwards.

    Fitted so that all frames of the official animation come out to the pixel.
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


def placed(shape: int, scale: Tensor, angle: Tensor) -> Tensor:
    """A shape scaled and turned, (n,), (n,) -> (n, m, 2)."""
    c, s = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)  # (n, 2, 2)
    return scale[:, None, None] * (outline(shape).to(angle) @ turn.mT)


def cross(polygon: Tensor, lines: Tensor) -> Tensor:
    """Where lines cross polygons, from left to right: (n, m, 2), (l,) or (n, l) -> (n, l, 4), inf where they do not."""
    lines = lines.expand(len(polygon), -1)  # (n, l)
    below = polygon[:, None, :, 1] <= lines[..., None]  # (n, l, m)
    # Few of all the edges are crossed, and only those are looked at.
    i, j, k = (below != below.roll(-1, 2)).nonzero(as_tuple=True)
    p, q = polygon[i, k], polygon[i, (k + 1) % polygon.shape[1]]  # the crossed edges run from p to q
    x = p[:, 0] + (lines[i, j] - p[:, 1]) / (q[:, 1] - p[:, 1]) * (q[:, 0] - p[:, 0])
    line = i * lines.shape[1] + j
    count = line.bincount(minlength=lines.numel())
    rank = torch.arange(len(line)) - (count.cumsum(0) - count)[line]  # of a crossing on its line
    found = torch.full((lines.numel(), 4), torch.inf, dtype=x.dtype)
    found[line, rank] = x
    return found.sort(-1).values.reshape(*lines.shape, 4)


# Continuous factors ---------------------------------------------------------------------------------------------


@final
class ContinuousSprites(Dataset):
    """The shapes of dSprites at any scale, angle and position, with smooth edges: all factors real-valued, uniform."""

    name = "continuous-sprites"
    paper = "after Matthey, Higgins, Hassabis and Lerchner (2017)"

    shape: Literal["square", "ellipse", "heart"] = "heart"
    """which sprite"""
    vary: tuple[Literal["scale", "angle", "x", "y"], ...] = ("x", "y")
    """the factors that vary; the others stay at scale 0.75, angle 0 and the middle"""
    most_angle: float = 1.5707963
    """angles are uniform from 0 to this, in radians; a full turn, 6.2832, makes the factor circular"""
    points: int = 3_000
    """number of images"""
    seed: int = 0
    """the same seed gives the same images"""

    def load(self) -> FactorData:
        low = {"scale": 0.5, "angle": 0.0, "x": 0.0, "y": 0.0}
        high = {"scale": 1.0, "angle": self.most_angle, "x": 1.0, "y": 1.0}
        rest = {"scale": 0.75, "angle": 0.0, "x": 0.5, "y": 0.5}
        if not self.vary or len(set(self.vary)) != len(self.vary) or not set(self.vary) <= set(low):
            raise InputError(f"vary={self.vary}: expected some of {', '.join(low)}, each once")
        a, b = (torch.tensor([bound[name] for name in self.vary]) for bound in (low, high))

        def prior(n: int, rng: Generator) -> Tensor:
            return a.to(rng.device) + (b - a).to(rng.device) * torch.rand(
                n, len(self.vary), generator=rng, device=rng.device
            )

        def mix(c: Tensor) -> Tensor:  # (..., k) -> (..., 1, 64, 64)
            flat = c.reshape(-1, len(self.vary))
            given = {name: flat.new_full((len(flat),), value) for name, value in rest.items()}
            given |= {name: flat[:, i] for i, name in enumerate(self.vary)}
            images = draw(SHAPES.index(self.shape), given["scale"], given["angle"], given["x"], given["y"])
            return images.reshape(*c.shape[:-1], 1, SIZE, SIZE)

        circular = self.most_angle > 6.28
        factors = [Factor(n, kind="circular" if n == "angle" and circular else "real") for n in self.vary]
        return Mixing(factors, (1, SIZE, SIZE), prior, mix, points=self.points, seed=self.seed)


def draw(shape: int, scale: Tensor, angle: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Sprites with smooth edges, (n,) each -> (n, 64, 64): the share of each pixel that the sprite covers, exactly."""
    center = 16 + 32 * torch.stack([x, y], 1)
    parts = torch.split(placed(shape, scale, angle) + center[:, None], 64)  # bounds the memory
    return torch.cat([coverage(polygon) for polygon in parts])


def coverage(polygon: Tensor) -> Tensor:
    """The area of each pixel inside closed polygons, (n, m, 2) -> (n, 64, 64), differentiable in the corners.

    By Green's theorem: the sum over the edges, cut at the rows, of their height times the share of the pixel that lies
    to their right; heights have signs, so that what lies right of two edges cancels.
    """
    n, q = len(polygon), polygon.roll(-1, 1)
    rows = torch.arange(SIZE).to(polygon)
    top, bottom = (side[..., 1, None].clamp(rows, rows + 1) for side in (polygon, q))  # (n, m, 64): each edge, each row
    i, j, row = (top != bottom).nonzero(as_tuple=True)  # few of all the edges reach into a row
    start, end = polygon[i, j], q[i, j]
    slope = (end[:, 0] - start[:, 0]) / (end[:, 1] - start[:, 1])
    top, bottom = top[i, j, row], bottom[i, j, row]
    # u: how far the right side of each pixel lies from the edge, at both ends of the piece, (pieces, 64)
    u, v = (rows + 1 - (start[:, 0] + (height - start[:, 1]) * slope)[:, None] for height in (top, bottom))
    steep = (u - v).abs() < 1e-6
    right = torch.where(steep, u.clamp(0, 1), (_ramp(u) - _ramp(v)) / torch.where(steep, 1.0, u - v))
    pieces = (bottom - top)[:, None] * right
    areas = torch.zeros(n * SIZE, SIZE).to(polygon).index_add(0, i * SIZE + row, pieces)
    return areas.reshape(n, SIZE, SIZE).abs().clamp(max=1)  # sums of pieces round to a little more


def _ramp(u: Tensor) -> Tensor:
    """The integral of clamp(u, 0, 1)."""
    inside = u.clamp(0, 1)
    return inside**2 / 2 + (u - 1).clamp(min=0)
