"""Settings of encoders and decoders that methods share, and the likelihood of decoded observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from unweave.nn.autoencoder import LayerSizes, NetworkKind
from unweave.utils.errors import InputError

# Mixins stand beside `Neural` in the bases of a method, not above it, which keeps classes flat. For the type checker
# they are subclasses of it, since they use what it provides.
if TYPE_CHECKING:
    from unweave.methods.neural import Neural
else:
    Neural = object


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderMixin(Neural):
    """Settings of an encoder of images or vectors; mix into a `Neural` method."""

    network: NetworkKind = "auto"
    """Convolutions for images and fully connected layers for vectors ('auto'), or always one of them."""
    widths: tuple[int, ...] = (32, 32, 64, 64)
    """Channels of the encoder's convolutions, each of which halves the image; reversed in a decoder."""
    hidden: tuple[int, ...] = (256,)
    """Fully connected layers between the convolutions and the codes."""
    layers: tuple[int, ...] = (256, 256)
    """Hidden layers of a network without convolutions."""

    def layer_sizes(self) -> LayerSizes:
        """Return the sizes that `unweave.nn.autoencoder` builds networks from."""
        return LayerSizes(self.network, self.widths, self.hidden, self.layers)


@dataclass(kw_only=True, eq=False, repr=False)
class AutoencoderMixin(EncoderMixin):
    """Settings of an encoder and a decoder, and p(x | z); mix into a `Neural` method with `net.decoder`."""

    likelihood: Literal["auto", "bernoulli", "gaussian"] = "auto"
    """Likelihood of pixels: Bernoulli for images, Gaussian with variance one for vectors ('auto'), or one of them."""

    def is_bernoulli(self) -> bool:
        """Return whether p(x | z) is Bernoulli, so that decoder outputs are logits."""
        return self.likelihood == "bernoulli" or (self.likelihood == "auto" and len(self.shape_) in (2, 3))

    def check_observations(self, x: Tensor) -> None:
        """Raise an error where a Bernoulli likelihood meets values outside of [0, 1]."""
        if self.is_bernoulli() and (float(x.min()) < 0 or float(x.max()) > 1):
            text = f"values from {float(x.min()):.4g} to {float(x.max()):.4g} cannot be Bernoulli"
            scaled = "scale='none' (--data.scale none), " if "column_scaling_" in vars(self) else ""
            raise InputError(f"{text}: pass bytes, or {scaled}values in [0, 1], or set likelihood='gaussian'")

    def decoder_mean(self, out: Tensor) -> Tensor:
        """Return E[x | z] from the output of the decoder, (n, *shape)."""
        return torch.sigmoid(out) if self.is_bernoulli() else out

    def reconstruction_loss(self, x: Tensor, out: Tensor) -> Tensor:
        """Return -log p(x | z) in nats, summed over pixels, (n,); without the constant of the Gaussian."""
        if self.is_bernoulli():
            return F.binary_cross_entropy_with_logits(out, x, reduction="none").flatten(1).sum(1)
        return 0.5 * (out - x).square().flatten(1).sum(1)

    def likelihood_constant(self) -> float:
        """Return what `reconstruction_loss` leaves out of -log p(x | z), in nats."""
        return 0.0 if self.is_bernoulli() else 0.5 * prod(self.shape_) * math.log(2 * math.pi)

    def decode(self, z: Tensor) -> Tensor:
        return self.decoder_mean(self.apply_network(lambda net, rows: net.decoder(rows), z))
