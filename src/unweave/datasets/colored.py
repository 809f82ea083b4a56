"""Digits in color: the colored MNIST of two papers, painted on the device from the gray images."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from math import prod
from typing import Literal, final

import torch
from torch import Generator, Tensor

from unweave.data.augment import affine, warp
from unweave.data.containers import Table
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.data.downloads import PublishedFile
from unweave.datasets.digits import MNIST
from unweave.datasets.shapes3d import HUES
from unweave.utils.errors import InputError

# Swap+contrast does not name its colors. Ours: six pure hues for digits, and the six hues between them, darker, for
# backgrounds, three of these for training and three for the test. How dark decides how hard the test is: at 0.45 a
# plain network does not mind new backgrounds, at 0.6 it fails; at 0.55 it is about as right as the paper's.
INKS = torch.tensor([colorsys.hsv_to_rgb(k / 360, 1, 1) for k in (0, 60, 120, 180, 240, 300)])
PAPERS = torch.tensor([colorsys.hsv_to_rgb(k / 360, 1, 0.55) for k in (30, 150, 270, 90, 210, 330)])
BACKGROUNDS = {"train": (0, 1, 2), "test": (3, 4, 5)}
ANGLES = torch.tensor([-75, -65, -45, -22.5, 0, 22.5, 45, 65, 75])  # degrees
TURNS = {"train": (2, 3, 4, 5, 6), "test": (0, 1, 4, 7, 8)}  # 0, +-22.5, +-45; and 0, +-65, +-75


@final
class Painted(FactorData):
    """Gray images with painted factors: a point is a row and the values of those factors, (1 + extra,)."""

    def __init__(
        self,
        gray: Table,
        extra: dict[Factor, tuple[int, ...]],
        paint: Callable[..., Tensor],
        tables: list[Tensor],
        given_label: Tensor | None = None,
    ) -> None:
        self.gray, self.paint, self.shape = gray, paint, (3, *gray.shape[1:])
        self.tables = tables  # that values are looked up in, held so that they move to a device with the rest
        self.factors = (*gray.factors, *extra)
        self.allowed = [torch.tensor(values) for values in extra.values()]
        self.given_label = given_label  # (labels, values): how likely each value of the first extra factor is

    def sample(self, n: int, rng: Generator) -> Tensor:
        """A row, and for each painted factor one of its allowed values."""
        row = self.gray.sample(n, rng)
        picks = [torch.randint(len(values), (n,), generator=rng, device=rng.device) for values in self.allowed]
        if self.given_label is not None:
            label = self.gray.labels(row)[:, 0].long()
            picks[0] = torch.multinomial(self.given_label[label], 1, generator=rng)[:, 0]
        extra = [values[pick] for values, pick in zip(self.allowed, picks, strict=True)]
        return torch.cat([row, torch.stack(extra, 1)], 1)

    def labels(self, points: Tensor) -> Tensor:
        """The row's label, then the painted factors."""
        return torch.cat([self.gray.labels(points[..., :1]), points[..., 1:].double()], -1)

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """The row of `like` where it has the label, else a random one that has, painted as expected."""
        own = len(self.gray.factors)
        row = self.gray.locate(c[:, :own], rng)
        if like is not None:
            same = (self.gray.labels(like[:, :1]) == c[:, :own]).all(1, keepdim=True)
            row = torch.where(same, like[:, :1], row)
        return torch.cat([row, c[:, own:].long()], 1)

    def levels(self, j: int) -> Tensor:
        """Of a painted factor, the values allowed in this part of the data."""
        own = len(self.gray.factors)
        return self.gray.levels(j) if j < own else self.allowed[j - own]

    def all_points(self, limit: int) -> Tensor | None:
        """Every digit in every allowed painting, where these are few enough."""
        if len(self.gray) * prod(map(len, self.allowed)) > limit:
            return None
        return torch.cartesian_prod(torch.arange(len(self.gray), device=self.gray.x.device), *self.allowed)

    def groups(self, points: Tensor) -> Tensor | None:
        """A digit is either trained on or tested on, whatever its color."""
        return points[:, 0]

    def render(self, points: Tensor) -> Tensor:
        """Paint the rows."""
        flat = points.reshape(-1, points.shape[-1])
        painted = self.paint(self.gray.render(flat[:, :1]), flat[:, 1:], *self.tables)
        return painted.reshape(*points.shape[:-1], *self.shape)


class PaintedMNIST(Dataset):
    """Abstract. What the colored digits share: MNIST's files."""

    page = MNIST.page
    license = MNIST.license
    files = MNIST.files

    split: Literal["train", "test"] = "train"
    """which part"""

    def required_files(self) -> tuple[PublishedFile, ...]:
        return MNIST(split=self.split).required_files()

    def gray(self) -> Table:
        """The digits to paint."""
        table = MNIST(split=self.split).load()
        assert isinstance(table, Table)
        return table


@final
class ColoredMNIST(PaintedMNIST):
    """Colored digits, in the forms of two papers: ten colors, or six colors on changing backgrounds."""

    name = "colored-mnist"
    paper = "Disentanglement by intervention (Appendix B); swap and contrast (Sec. 4.1)"

    form: Literal["ten-colors", "backgrounds"] = "ten-colors"
    """ten colors on black, those of 3DShapes (intervention); or 6 digit and 3 background colors (swap+contrast)"""
    strength: float | None = None
    """ten colors: ties color to digit, p(color | digit) ~ exp(-(color - digit)^2 / 2 s^2), both scaled to [0, 1]"""

    def load(self) -> FactorData:
        if self.form == "ten-colors":
            color = Factor("color", 10, "nominal")
            return Painted(self.gray(), {color: tuple(range(10))}, _in_color, [HUES], self._given_digit())
        if self.strength is not None:
            raise InputError("strength ties ten colors to ten digits; the form 'backgrounds' has none")
        return Painted(self.gray(), _inks_and_papers(self.split), _on_background, [INKS, PAPERS])

    def _given_digit(self) -> Tensor | None:
        if self.strength is None:
            return None
        if self.strength <= 0:
            raise InputError(f"strength={self.strength}: expected a positive number (0.1 is strong, 1 is weak)")
        k = torch.arange(10) / 9
        return torch.exp(-((k[:, None] - k) ** 2) / (2 * self.strength**2))


@final
class RotationColoredMNIST(PaintedMNIST):
    """Colored digits on backgrounds, turned by 0, +-22.5, +-45 degrees to train, by 0, +-65, +-75 to test."""

    name = "rotation-colored-mnist"
    paper = "Swap and contrast (Sec. 4.1)"

    def load(self) -> FactorData:
        angle = Factor("angle", len(ANGLES), "ordinal", values=tuple(ANGLES.tolist()))
        extra = _inks_and_papers(self.split) | {angle: TURNS[self.split]}
        return Painted(self.gray(), extra, _turned, [INKS, PAPERS, ANGLES])


def _inks_and_papers(split: str) -> dict[Factor, tuple[int, ...]]:
    color, background = Factor("color", 6, "nominal"), Factor("background", 6, "nominal")
    return {color: tuple(range(6)), background: BACKGROUNDS[split]}


def _in_color(gray: Tensor, extra: Tensor, hues: Tensor) -> Tensor:
    return gray * hues[extra[:, 0]][..., None, None]


def _on_background(gray: Tensor, extra: Tensor, inks: Tensor, papers: Tensor) -> Tensor:
    ink, paper = inks[extra[:, 0]], papers[extra[:, 1]]  # (n, 3)
    return gray * ink[..., None, None] + (1 - gray) * paper[..., None, None]


def _turned(gray: Tensor, extra: Tensor, inks: Tensor, papers: Tensor, angles: Tensor) -> Tensor:
    angle = angles[extra[:, 2]]
    still = torch.zeros_like(angle)[:, None].expand(-1, 2)
    return _on_background(warp(gray, affine(angle, still, torch.ones_like(angle))), extra, inks, papers)
