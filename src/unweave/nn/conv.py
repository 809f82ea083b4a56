"""Convolutional encoders and decoders for images of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor, nn

from unweave.utils.errors import InputError

SMALLEST = 4  # an image is not halved below this side
LIKELY_SIDE = 16  # of images; so many channels are fewer


def conv_encoder(
    shape: tuple[int, ...],
    out: int,
    *,
    widths: Sequence[int] = (32, 32, 64, 64),
    hidden: Sequence[int] = (128,),
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """(n, c, h, w) -> (n, out). Each width halves the image by a 4 x 4 convolution of stride 2, as long as its side is
    even and above 4; what is left of the widths are 3 x 3 convolutions of stride 1. Then fully connected layers. Where
    a side cannot be halved that often, the image is padded on the right and below.

    For 64 x 64 this is Table 4 of the intervention paper, for 28 x 28 and widths 64, 128, 128 its Table 6.
    """
    channels, side, sizes = _image(shape, len(widths))
    down, right = sizes[0] - shape[1], sizes[1] - shape[2]
    layers: list[nn.Module] = [nn.ZeroPad2d((0, right, 0, down))] if down or right else []
    for width in widths:
        halves = side % 2 == 0 and side > SMALLEST
        layers += [nn.Conv2d(channels, width, 4, 2, 1) if halves else nn.Conv2d(channels, width, 3, 1, 1), activation()]
        channels, side = width, side // 2 if halves else side
        sizes = tuple(s // 2 for s in sizes) if halves else sizes
    layers.append(nn.Flatten())
    full = [channels * sizes[0] * sizes[1], *hidden]
    for a, b in pairwise(full):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers, nn.Linear(full[-1], out))


def conv_decoder(
    latent_dim: int,
    shape: tuple[int, ...],
    *,
    widths: Sequence[int] = (64, 64, 32, 32),
    hidden: Sequence[int] = (128,),
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """(n, latent_dim) -> (n, c, h, w), logits. Fully connected layers up to a small image of the first width, then as
    many 4 x 4 transposed convolutions of stride 2 as there are widths, fewer where the image is too small for them.
    """
    channels, side, sizes = _image(shape, len(widths))
    doublings = 0
    while doublings < len(widths) and side % 2 == 0 and side > SMALLEST:
        doublings, side = doublings + 1, side // 2
    widths = list(widths)[len(widths) - max(doublings, 1) :]
    start = tuple(s // 2**doublings for s in sizes)
    layers: list[nn.Module] = []
    full = [latent_dim, *hidden, widths[0] * start[0] * start[1]]
    for a, b in pairwise(full):
        layers += [nn.Linear(a, b), activation()]
    layers.append(nn.Unflatten(1, (widths[0], *start)))
    steps = list(pairwise([*widths, channels]))
    for i, (a, b) in enumerate(steps):
        layers.append(nn.ConvTranspose2d(a, b, 4, 2, 1) if doublings else nn.Conv2d(a, b, 3, 1, 1))
        layers += [activation()] if i + 1 < len(steps) else []
    return nn.Sequential(*layers, *([Crop(shape[1:])] if sizes != shape[1:] else []))


class Crop(nn.Module):
    """The upper left part of images."""

    def __init__(self, sides: Sequence[int]) -> None:
        super().__init__()
        self.height, self.width = sides

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h or more, w or more) -> (n, c, h, w)."""
        return x[:, :, : self.height, : self.width]


def _image(shape: tuple[int, ...], most: int) -> tuple[int, int, tuple[int, ...]]:
    """Channels, the side whose parity decides how often to halve, and both sides, padded where that lets them be halved
    as often as their size asks for: at full size, every layer after the first would be many times as expensive.
    """
    if len(shape) != 3:
        raise InputError(f"observations of shape {shape}: convolutions want images, (channels, height, width)")
    channels, *sides = shape
    if min(channels, sides[0]) >= LIKELY_SIDE and sides[1] in (3, 4):
        text = f"observations of shape {shape} look like images whose channels come last"
        raise InputError(f"{text}: bring them to the front, numpy.moveaxis(x, -1, 1)")
    unit = 2 ** min(most, max(0, int(math.log2(max(1, min(sides)) / SMALLEST))))
    sides = [-(-side // unit) * unit for side in sides]
    # The side that can be halved less often decides for both.
    least = min(sides, key=lambda s: (_halvings(s), s))
    return channels, least, tuple(sides)


def _halvings(side: int) -> int:
    return 1 + _halvings(side // 2) if side % 2 == 0 and side > SMALLEST else 0
