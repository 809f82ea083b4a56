"""What autoencoders share: two networks, one likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unweave.methods.neural import Neural
from unweave.nn.conv import conv_decoder, conv_encoder
from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError


class Coder(nn.Module):
    """An encoder (n, *shape) -> (n, out) and a decoder (n, latent) -> (n, *shape)."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


def bending(slope: float) -> Callable[[], nn.Module]:
    """Activations with this slope below zero."""
    return partial(nn.LeakyReLU, slope) if slope else nn.ReLU


class Autoencoding(Neural):
    """Abstract: an encoder and a decoder, by convolutions or fully connected."""

    network: Literal["auto", "conv", "mlp"] = "auto"
    """convolutions for images, fully connected layers for anything else, unless you say which"""
    widths: tuple[int, ...] = (32, 32, 64, 64)
    """channels of the encoder's convolutions, each of which halves the image; the decoder has them the other way"""
    hidden: tuple[int, ...] = (256,)
    """fully connected layers between the convolutions and the codes"""
    layers: tuple[int, ...] = (256, 256)
    """hidden layers of a network without convolutions"""
    likelihood: Literal["auto", "bernoulli", "gaussian"] = "auto"
    """of pixels: Bernoulli for images, otherwise Gaussian with variance one, unless you say which"""

    def build(self, shape: tuple[int, ...]) -> nn.Module:
        return self.coder(shape, self.latent_dim)

    def coder(self, shape: tuple[int, ...], out: int, latent: int | None = None, slope: float = 0.0) -> Coder:
        """Encoder with so many outputs, and decoder of so many codes, `latent_dim` unless you say how many.

        `slope` is that of activations below zero.
        """
        latent, bend = self.latent_dim if latent is None else latent, bending(slope)
        if min((*self.widths, *self.hidden, *self.layers), default=1) < 1:
            raise InputError("widths, hidden and layers: a layer needs at least one unit")
        if len(shape) == 2 and self.network != "mlp":  # gray images without an axis for it
            inner = self.coder((1, *shape), out, latent, slope)
            return Coder(
                nn.Sequential(nn.Unflatten(1, (1, shape[0])), inner.encoder),
                nn.Sequential(inner.decoder, nn.Flatten(1, 2)),
            )
        if self.network == "conv" or (self.network == "auto" and len(shape) == 3):
            if not self.widths:
                raise InputError("widths=(): a convolutional network needs at least one convolution")
            encoder = conv_encoder(shape, out, widths=self.widths, hidden=self.hidden, activation=bend)
            backwards: Any = {"widths": self.widths[::-1], "hidden": self.hidden[::-1], "activation": bend}
            return Coder(encoder, conv_decoder(latent, shape, **backwards))
        features = prod(shape)
        encoder = nn.Sequential(nn.Flatten(), mlp(features, *self.layers, out, activation=bend))
        decoder = mlp(latent, *self.layers[::-1], features, activation=bend)
        return Coder(encoder, nn.Sequential(decoder, nn.Unflatten(1, shape)))

    def judge(
        self,
        shape: tuple[int, ...],
        hidden: tuple[int, ...],
        *,
        out: int = 1,
        widths: tuple[int, ...] = (),
        slope: float = 0.0,
    ) -> nn.Module:
        """Numbers for an observation, (n, *shape) -> (n, out), by convolutions as the encoder's, or of other widths."""
        if len(shape) == 2 and self.network != "mlp":
            inner = self.judge((1, *shape), hidden, out=out, widths=widths, slope=slope)
            return nn.Sequential(nn.Unflatten(1, (1, shape[0])), inner)
        if self.network == "conv" or (self.network == "auto" and len(shape) == 3):
            more: Any = {"widths": widths or self.widths, "hidden": hidden, "activation": bending(slope)}
            return conv_encoder(shape, out, **more)
        return nn.Sequential(nn.Flatten(), mlp(prod(shape), *self.layers, out, activation=bending(slope)))

    def mean(self, out: Tensor) -> Tensor:
        """The observation that the decoder's output stands for."""
        return torch.sigmoid(out) if self.bernoulli() else out

    def bernoulli(self) -> bool:
        """Whether pixels are probabilities."""
        return self.likelihood == "bernoulli" or (self.likelihood == "auto" and len(self.shape_) in (2, 3))

    def check_observations(self, x: Tensor) -> None:
        """Probabilities lie between 0 and 1."""
        if self.bernoulli() and (float(x.min()) < 0 or float(x.max()) > 1):
            text = f"values from {float(x.min()):.4g} to {float(x.max()):.4g} cannot be Bernoulli"
            raise InputError(f"{text}: pass bytes, or values in [0, 1], or set likelihood='gaussian'")

    def reconstruction(self, x: Tensor, out: Tensor) -> Tensor:
        """-log p(x | decoder's output) in nats, summed over pixels, (n,); without the Gaussian's constant."""
        if self.bernoulli():
            return F.binary_cross_entropy_with_logits(out, x, reduction="none").flatten(1).sum(1)
        return 0.5 * (out - x).square().flatten(1).sum(1)

    def constant(self) -> float:
        """What `reconstruction` leaves out of -log p(x | decoder's output), in nats."""
        return 0.0 if self.bernoulli() else 0.5 * prod(self.shape_) * math.log(2 * math.pi)

    def decode(self, z: Tensor) -> Tensor:
        return self.mean(self.apply_network(lambda net, part: net.decoder(part), z))
