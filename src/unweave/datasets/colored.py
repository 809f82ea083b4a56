"""Colored MNIST in the forms of two papers, painted on the device from the gray images."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Literal, final

import torch
from torch import Generator, Tensor

from unweave.data.augment import affine, shift_hue, warp
from unweave.data.containers import Table
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.datasets.digits import MNIST
from unweave.datasets.shapes3d import HUES
from unweave.utils.errors import InputError, unknown

# Swap+contrast does not name its colors. Ours: six pure hues for digits, and the six hues between them, darker, for
# backgrounds: three for training, three for testing. How hard the test is depends on the palette of the backgrounds:
# which hues are new, their saturation and their brightness. `papers.swap_contrast.palettes` compares these palettes.
DIGIT_COLORS = torch.tensor([colorsys.hsv_to_rgb(k / 360, 1, 1) for k in (0, 60, 120, 180, 240, 300)])
ARRANGEMENTS = {"alternating": (30, 150, 270, 90, 210, 330), "adjacent": (30, 90, 150, 210, 270, 330)}  # hues, degrees
SATURATIONS, VALUES = (100, 60), (35, 45, 55, 65, 75)  # percent
BACKGROUNDS = {"train": (0, 1, 2), "test": (3, 4, 5)}
DEFAULT_PALETTE = "alternating-100-55"
ANGLES = torch.tensor([-75, -65, -45, -22.5, 0, 22.5, 45, 65, 75])  # degrees
ANGLES_BY_SPLIT = {"train": (2, 3, 4, 5, 6), "test": (0, 1, 4, 7, 8)}  # 0, +-22.5, +-45; and 0, +-65, +-75
VALIDATION_ANGLES = {"train": (3, 4, 5), "test": (2, 6)}  # of training, to choose settings by: 0, +-22.5; and +-45
VALIDATION_SHARE = 6  # every sixth training digit, 10,000 of MNIST


def background_colors(palette: str) -> Tensor:
    """Return the colors of six backgrounds, (6, 3), first those of training.

    Args:
        palette: Arrangement of the hues, saturation and value in percent, such as 'alternating-100-55'.
    """
    if palette not in PALETTES:
        raise unknown("palette", palette, PALETTES)
    arrangement, saturation, value = PALETTES[palette]
    hues = ARRANGEMENTS[arrangement]
    return torch.tensor([colorsys.hsv_to_rgb(hue / 360, saturation / 100, value / 100) for hue in hues])


PALETTES = {f"{a}-{s}-{v}": (a, s, v) for a in ARRANGEMENTS for s in SATURATIONS for v in VALUES}


@final
class Painted(FactorData):
    """Gray images with painted factors. A point is a row number and the values of those factors, (1 + extra,)."""

    def __init__(
        self,
        gray: Table,
        extra: dict[Factor, tuple[int, ...]],
        paint: Callable[..., Tensor],
        tables: list[Tensor],
        weights: Tensor | None = None,
    ) -> None:
        self.gray, self.paint, self.shape = gray, paint, (3, *gray.shape[1:])
        self.tables = tables  # arguments of `paint`, held here so that `to` moves them to a device
        self.factors = (*gray.factors, *extra)
        self.allowed = [torch.tensor(values) for values in extra.values()]
        self.weights = weights  # (labels, values): of each value of the first painted factor, by label

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw a row, and an allowed value of each painted factor."""
        row = self.gray.sample(n, rng)
        picks = [torch.randint(len(values), (n,), generator=rng, device=rng.device) for values in self.allowed]
        if self.weights is not None:
            label = self.gray.labels(row)[:, 0].long()
            picks[0] = torch.multinomial(self.weights[label], 1, generator=rng)[:, 0]
        extra = [values[pick] for values, pick in zip(self.allowed, picks, strict=True)]
        return torch.cat([row, torch.stack(extra, 1)], 1)

    def labels(self, points: Tensor) -> Tensor:
        """Return the label of the row and the painted factors."""
        return torch.cat([self.gray.labels(points[..., :1]), points[..., 1:].double()], -1)

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Return the row of `like` if it has the label, otherwise a random row with it, and the painted factors."""
        count = len(self.gray.factors)
        row = self.gray.locate(c[:, :count], rng)
        if like is not None:
            same = (self.gray.labels(like[:, :1]) == c[:, :count]).all(1, keepdim=True)
            row = torch.where(same, like[:, :1], row)
        return torch.cat([row, c[:, count:].long()], 1)

    def levels(self, j: int) -> Tensor:
        """Return the values of factor j; of a painted factor, those allowed in this split."""
        count = len(self.gray.factors)
        return self.gray.levels(j) if j < count else self.allowed[j - count]

    def all_points(self, limit: int) -> Tensor | None:
        """Return every digit with all allowed values, if there are at most `limit`."""
        if len(self.gray) * prod(map(len, self.allowed)) > limit:
            return None
        return torch.cartesian_prod(torch.arange(len(self.gray), device=self.gray.x.device), *self.allowed)

    def groups(self, points: Tensor) -> Tensor | None:
        """Return the row, so that a split keeps all paintings of a digit together."""
        return points[:, 0]

    def render(self, points: Tensor) -> Tensor:
        """Return the painted rows."""
        flat = points.reshape(-1, points.shape[-1])
        painted = self.paint(self.gray.render(flat[:, :1]), flat[:, 1:], *self.tables)
        return painted.reshape(*points.shape[:-1], *self.shape)


def hold_out_nuisances(data: Painted, part: Literal["train", "test"], background: int) -> Painted:
    """Return the training set without a background and +-45 degrees, or other digits with these alone."""
    backgrounds = tuple(b for b in BACKGROUNDS["train"] if (b == background) == (part == "test"))
    is_held_out = torch.arange(len(data.gray)) % VALIDATION_SHARE == VALIDATION_SHARE - 1
    rows = is_held_out if part == "test" else ~is_held_out
    gray = Table(data.gray.x[rows], data.gray.c[rows], data.gray.factors)
    values = (tuple(data.allowed[0].tolist()), backgrounds, VALIDATION_ANGLES[part])
    extra = dict(zip(data.factors[len(gray.factors) :], values, strict=False))
    return Painted(gray, extra, data.paint, data.tables)


def add_hues(data: Painted, count: int) -> Painted:
    """Return the same images in `count` equally spaced rotations of the hue, which are one more factor."""
    hue = Factor("hue", count, "nominal")
    values = (tuple(allowed.tolist()) for allowed in data.allowed)
    extra = dict(zip(data.factors[len(data.gray.factors) :], values, strict=True)) | {hue: tuple(range(count))}
    return Painted(data.gray, extra, partial(_shift_hue, data.paint), [*data.tables, torch.arange(count) / count])


class PaintedMNIST(Dataset):
    """Abstract: colored digits, made from the files of MNIST."""

    page = MNIST.page
    license = MNIST.license
    files = MNIST.files
    optional_settings = ("palette", "clockwise")

    split: Literal["train", "test"] = "train"
    """Training or test set."""

    palette: str = DEFAULT_PALETTE
    """Backgrounds (swap+contrast): new hues alternate with those of training or are adjacent; saturation; value."""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return MNIST(split=self.split).required_files()

    def color_tables(self) -> list[Tensor]:
        """Return the colors of digits and of backgrounds, (6, 3) each."""
        return [DIGIT_COLORS, background_colors(self.palette)]

    def gray(self) -> Table:
        """Return the gray digits."""
        table = MNIST(split=self.split).load()
        assert isinstance(table, Table)
        return table


@final
class ColoredMNIST(PaintedMNIST):
    """Colored digits in the forms of two papers: ten colors, or six colors on changing backgrounds.

    Example:
        >>> ColoredMNIST(form="backgrounds").load().shape  # doctest: +SKIP
        (3, 28, 28)
    """

    name = "colored-mnist"
    paper = "Disentanglement by intervention (Appendix B); swap and contrast (Sec. 4.1)"

    form: Literal["ten-colors", "backgrounds"] = "ten-colors"
    """Ten colors on black, those of 3DShapes (intervention), or 6 digit and 3 background colors (swap+contrast)."""
    strength: float | None = None
    """For ten colors, s in p(color | digit) ~ exp(-(color - digit)^2 / 2 s^2), both in [0, 1]; None: independent."""

    def load(self) -> Painted:
        if self.form == "ten-colors":
            color = Factor("color", 10, "nominal")
            return Painted(self.gray(), {color: tuple(range(10))}, _paint_digit, [HUES], self._color_weights())
        if self.strength is not None:
            raise InputError("strength correlates ten colors with ten digits; leave it out for the form 'backgrounds'")
        return Painted(self.gray(), _color_factors(self.split), _paint_background, self.color_tables())

    def _color_weights(self) -> Tensor | None:
        """Return weights of colors by digit, (10, 10), or None if they are independent."""
        if self.strength is None:
            return None
        if self.strength <= 0:
            raise InputError(f"strength={self.strength}: expected a positive number (0.1 is strong, 1 is weak)")
        k = torch.arange(10) / 9
        return torch.exp(-((k[:, None] - k) ** 2) / (2 * self.strength**2))


@final
class RotationColoredMNIST(PaintedMNIST):
    """Colored digits on backgrounds, rotated by 0, +-22.5, +-45 degrees (training) or 0, +-65, +-75 (test).

    Example:
        >>> RotationColoredMNIST(split="test").load().shape  # doctest: +SKIP
        (3, 28, 28)
    """

    name = "rotation-colored-mnist"
    paper = "Swap and contrast (Sec. 4.1)"

    clockwise: bool = False
    """Whether positive angles are clockwise. The paper's seven methods all find negative angles easier, as they are
    for a CNN if positive angles are clockwise: digits already slant to the right."""

    def load(self) -> Painted:
        angle = Factor("angle", len(ANGLES), "ordinal", values=tuple(ANGLES.tolist()))
        angles = -ANGLES if self.clockwise else ANGLES
        extra = _color_factors(self.split) | {angle: ANGLES_BY_SPLIT[self.split]}
        return Painted(self.gray(), extra, _rotate_and_paint, [*self.color_tables(), angles])


def _color_factors(split: str) -> dict[Factor, tuple[int, ...]]:
    """Return the factors color and background with the values of a split."""
    color, background = Factor("color", 6, "nominal"), Factor("background", 6, "nominal")
    return {color: tuple(range(6)), background: BACKGROUNDS[split]}


def _paint_digit(gray: Tensor, extra: Tensor, hues: Tensor) -> Tensor:
    """Paint digits (n, 1, h, w) in color on black."""
    return gray * hues[extra[:, 0]][..., None, None]


def _paint_background(gray: Tensor, extra: Tensor, inks: Tensor, backgrounds: Tensor) -> Tensor:
    """Paint digits (n, 1, h, w) in color on a colored background."""
    ink, background = inks[extra[:, 0]], backgrounds[extra[:, 1]]  # (n, 3)
    return gray * ink[..., None, None] + (1 - gray) * background[..., None, None]


def _shift_hue(paint: Callable[..., Tensor], gray: Tensor, extra: Tensor, *tables: Tensor) -> Tensor:
    """Paint digits (n, 1, h, w), and rotate the hue of the images by the last factor."""
    *own, turns = tables
    return shift_hue(paint(gray, extra[:, :-1], *own), turns[extra[:, -1]])


def _rotate_and_paint(gray: Tensor, extra: Tensor, inks: Tensor, backgrounds: Tensor, angles: Tensor) -> Tensor:
    """Rotate digits (n, 1, h, w), then paint them on a colored background."""
    angle = angles[extra[:, 2]]
    no_shift = torch.zeros_like(angle)[:, None].expand(-1, 2)
    return _paint_background(warp(gray, affine(angle, no_shift, torch.ones_like(angle))), extra, inks, backgrounds)
