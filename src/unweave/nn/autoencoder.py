"""Encoders and decoders for images and vectors: shapes and layer sizes in, modules out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Literal, NamedTuple

from torch import nn

from unweave.nn.conv import conv_decoder, conv_encoder
from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError

NetworkKind = Literal["auto", "conv", "mlp"]


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
        ['Sequential', 'Sequential']
    """
    encoder = build_encoder(shape, outputs, sizes, slope=slope)
    return EncoderDecoder(encoder, build_decoder(latent_dim, shape, sizes, slope=slope))


def build_encoder(shape: tuple[int, ...], outputs: int, sizes: LayerSizes, *, slope: float = 0.0) -> nn.Module:
    """Build a network (n, *shape) -> (n, outputs): an encoder, a classifier's trunk or a discriminator."""
    _check_sizes(sizes)
    if not sizes.is_convolutional(shape):
        return nn.Sequential(nn.Flatten(), mlp(prod(shape), *sizes.layers, outputs, activation=_activation(slope)))
    if len(shape) == 2:  # gray images without a channel axis
        inner = build_encoder((1, *shape), outputs, sizes, slope=slope)
        return nn.Sequential(nn.Unflatten(1, (1, shape[0])), inner)
    return conv_encoder(shape, outputs, widths=sizes.widths, hidden=sizes.hidden, activation=_activation(slope))


def build_decoder(latent_dim: int, shape: tuple[int, ...], sizes: LayerSizes, *, slope: float = 0.0) -> nn.Module:
    """Build a network (n, latent_dim) -> (n, *shape) with the layers of the encoder in reverse order."""
    _check_sizes(sizes)
    activation = _activation(slope)
    if not sizes.is_convolutional(shape):
        decoder = mlp(latent_dim, *sizes.layers[::-1], prod(shape), activation=activation)
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
