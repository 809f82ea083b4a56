"""Encoders and decoders, fully connected and convolutional: shapes and layer sizes in, modules out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from torch import Tensor, nn

from unweave.utils.errors import InputError

MIN_SIDE = 4  # images are not halved below this side
MIN_LIKELY_SIDE = 16  # a first axis of this size is rather the height of an image than its channels

NetworkKind = Literal["auto", "conv", "mlp"]


def is_user_network(value: object) -> bool:
    """Return whether a setting is a module of the user, or names a function in a file, 'mine.py:build'."""
    return isinstance(value, nn.Module) or (isinstance(value, str) and ".py:" in value)


class LayerSizes(NamedTuple):
    """Kind and layer sizes of an encoder; a decoder has them in reverse order."""

    network: NetworkKind = "auto"  # "auto": convolutions for images, (h, w) or (c, h, w), otherwise an MLP
    widths: tuple[int, ...] = (32, 32, 64, 64)  # channels of the convolutions
    hidden: tuple[int, ...] = (256,)  # fully connected layers after the convolutions
    layers: tuple[int, ...] = (256, 256)  # hidden layers of an MLP

    def is_convolutional(self, shape: tuple[int, ...]) -> bool:
        """Return whether observations of this shape are encoded by convolutions."""
        return self.network == "conv" or (self.network == "auto" and len(shape) in (2, 3))


class EncoderDecoder(nn.Module):
    """An encoder (n, *shape) -> (n, outputs) and a decoder (n, latent_dim) -> (n, *shape)."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


def build_autoencoder(
    shape: tuple[int, ...], outputs: int, latent_dim: int, sizes: LayerSizes, *, slope: float = 0.0
) -> EncoderDecoder:
    """Build an encoder with `outputs` outputs and a decoder of `latent_dim` codes.

    Args:
        shape: Shape of one observation: (features,), (h, w) or (c, h, w).
        outputs: Outputs of the encoder, e.g. twice `latent_dim` for means and log-variances.
        latent_dim: Inputs of the decoder.
        sizes: Kind and sizes of the layers.
        slope: Slope of the activations below zero; 0 is ReLU.

    Example:
        >>> net = build_autoencoder((1, 16, 16), 4, 2, LayerSizes(widths=(4, 4), hidden=(8,)))
        >>> [type(module).__name__ for module in net.children()]
        ['Chain', 'Chain']
    """
    encoder = build_encoder(shape, outputs, sizes, slope=slope)
    return EncoderDecoder(encoder, build_decoder(latent_dim, shape, sizes, slope=slope))


def build_encoder(shape: tuple[int, ...], outputs: int, sizes: LayerSizes, *, slope: float = 0.0) -> nn.Module:
    """Build a network (n, *shape) -> (n, outputs): an encoder, a classifier's trunk or a discriminator."""
    _check_sizes(sizes)
    if not sizes.is_convolutional(shape):
        return nn.Sequential(nn.Flatten(), mlp(math.prod(shape), *sizes.layers, outputs, activation=_activation(slope)))
    if len(shape) == 2:  # gray images without a channel axis
        inner = build_encoder((1, *shape), outputs, sizes, slope=slope)
        return nn.Sequential(nn.Unflatten(1, (1, shape[0])), inner)
    return conv_encoder(shape, outputs, widths=sizes.widths, hidden=sizes.hidden, activation=_activation(slope))


def build_decoder(latent_dim: int, shape: tuple[int, ...], sizes: LayerSizes, *, slope: float = 0.0) -> nn.Module:
    """Build a network (n, latent_dim) -> (n, *shape) with the layers of the encoder in reverse order."""
    _check_sizes(sizes)
    activation = _activation(slope)
    if not sizes.is_convolutional(shape):
        decoder = mlp(latent_dim, *sizes.layers[::-1], math.prod(shape), activation=activation)
        return nn.Sequential(decoder, nn.Unflatten(1, shape))
    if not sizes.widths:
        raise InputError("widths=(): a convolutional network needs at least one convolution")
    if len(shape) == 2:
        return nn.Sequential(build_decoder(latent_dim, (1, *shape), sizes, slope=slope), nn.Flatten(1, 2))
    widths, hidden = sizes.widths[::-1], sizes.hidden[::-1]
    return conv_decoder(latent_dim, shape, widths=widths, hidden=hidden, activation=activation)


def _check_sizes(sizes: LayerSizes) -> None:
    if min((*sizes.widths, *sizes.hidden, *sizes.layers), default=1) < 1:
        raise InputError("widths, hidden and layers: a layer needs at least one unit")


def _activation(slope: float) -> Callable[[], nn.Module]:
    return partial(nn.LeakyReLU, slope) if slope else nn.ReLU


# Fully connected ------------------------------------------------------------------------------------------------------


def mlp(*widths: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return linear layers of these widths with an activation between them, (n, first) -> (n, last).

    Example:
        >>> mlp(5, 10, 2)
        Sequential(
          (0): Linear(in_features=5, out_features=10, bias=True)
          (1): ReLU()
          (2): Linear(in_features=10, out_features=2, bias=True)
        )
    """
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


# Convolutional, for images of any size --------------------------------------------------------------------------------


class Chain(nn.Sequential):
    """Layers that are always called as a whole, so that one GPU kernel may compute a layer and parts of the next."""


def conv_encoder(
    shape: tuple[int, ...],
    out: int,
    *,
    widths: Sequence[int] = (32, 32, 64, 64),
    hidden: Sequence[int] = (128,),
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """Return a convolutional encoder, (n, c, h, w) -> (n, out).

    Each width halves the image by a 4 x 4 convolution of stride 2, while its sides are even and above 4. The remaining
    widths are 3 x 3 convolutions of stride 1. Fully connected layers follow. An image whose side cannot be halved
    often enough is padded on the right and at the bottom.

    For 64 x 64 this is Table 4 of the intervention paper, for 28 x 28 and widths 64, 128, 128 its Table 6.

    Args:
        shape: (channels, height, width) of the images.
        out: Number of outputs.
        widths: Channels of the convolutions.
        hidden: Widths of the fully connected layers.
        activation: Makes the activation between layers.
    """
    channels, side, sizes = _padded_size(shape, len(widths))
    down, right = sizes[0] - shape[1], sizes[1] - shape[2]
    layers: list[nn.Module] = [nn.ZeroPad2d((0, right, 0, down))] if down or right else []
    for width in widths:
        halves = side % 2 == 0 and side > MIN_SIDE
        layers += [nn.Conv2d(channels, width, 4, 2, 1) if halves else nn.Conv2d(channels, width, 3, 1, 1), activation()]
        channels, side = width, side // 2 if halves else side
        sizes = tuple(s // 2 for s in sizes) if halves else sizes
    layers.append(nn.Flatten())
    full = [channels * sizes[0] * sizes[1], *hidden]
    for a, b in pairwise(full):
        layers += [nn.Linear(a, b), activation()]
    return Chain(*layers, nn.Linear(full[-1], out))


def conv_decoder(
    latent_dim: int,
    shape: tuple[int, ...],
    *,
    widths: Sequence[int] = (64, 64, 32, 32),
    hidden: Sequence[int] = (128,),
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """Return a convolutional decoder, (n, latent_dim) -> (n, c, h, w), without a last activation.

    Fully connected layers make a small image with the first width as channels. Then each width doubles the image by a
    4 x 4 transposed convolution of stride 2; small images have fewer of them. Arguments as in `conv_encoder`.
    """
    channels, side, sizes = _padded_size(shape, len(widths))
    doublings = 0
    while doublings < len(widths) and side % 2 == 0 and side > MIN_SIDE:
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
    return Chain(*layers, *([Crop(shape[1:])] if sizes != shape[1:] else []))


class Crop(nn.Module):
    """Cuts images at the right and the bottom, which undoes the padding of `conv_encoder`."""

    def __init__(self, sides: Sequence[int]) -> None:
        super().__init__()
        self.height, self.width = sides

    def forward(self, x: Tensor) -> Tensor:
        """Crop (n, c, h or more, w or more) to (n, c, h, w)."""
        return x[:, :, : self.height, : self.width]


def _padded_size(shape: tuple[int, ...], max_halvings: int) -> tuple[int, int, tuple[int, ...]]:
    """Return the channels, the side that decides how often to halve, and both sides after padding.

    Sides are padded so that they can be halved often: layers at full size would be many times as expensive.
    """
    if len(shape) != 3:
        raise InputError(f"observations of shape {shape}: convolutions expect images, (channels, height, width)")
    channels, *sides = shape
    if min(channels, sides[0]) >= MIN_LIKELY_SIDE and sides[1] in (3, 4):
        text = f"observations of shape {shape} look like images whose channels come last"
        raise InputError(f"{text}: bring them to the front, numpy.moveaxis(x, -1, 1)")
    unit = 2 ** min(max_halvings, max(0, int(math.log2(max(1, min(sides)) / MIN_SIDE))))
    sides = [-(-side // unit) * unit for side in sides]
    limiting_side = min(sides, key=lambda s: (_halvings(s), s))
    return channels, limiting_side, tuple(sides)


def _halvings(side: int) -> int:
    return 1 + _halvings(side // 2) if side % 2 == 0 and side > MIN_SIDE else 0
