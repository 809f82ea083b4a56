"""Settings of encoders and decoders that methods share, and the likelihood of decoded observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unweave.methods.user_networks import UserModules, call_network_function
from unweave.nn.adapters import adapt_decoder, adapt_encoder
from unweave.nn.autoencoder import (
    EncoderDecoder,
    LayerSizes,
    NetworkKind,
    build_decoder,
    build_encoder,
    is_user_network,
)
from unweave.utils.errors import InputError
from unweave.utils.validation import TextPattern

NetworkFile = Annotated[str, TextPattern(r".+\.py:\w+", "mine.py:build")]
"""A function in a file of the user."""

# Mixins stand beside `Neural` in the bases of a method, not above it, which keeps classes flat. For the type checker
# they are subclasses of it, since they use what it provides.
if TYPE_CHECKING:
    from unweave.methods.neural import Neural
else:
    Neural = object


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderMixin(Neural):
    """Settings of an encoder of images or vectors; mix into a `Neural` method."""

    network: NetworkKind | NetworkFile = "auto"
    """Convolutions for images and fully connected layers for vectors ('auto'), or always one of them.
    Your own: 'mine.py:build', a function build(shape, latent_dim) that returns an encoder and a decoder."""
    widths: tuple[int, ...] = (32, 32, 64, 64)
    """Channels of the encoder's convolutions, each of which halves the image; reversed in a decoder."""
    hidden: tuple[int, ...] = (256,)
    """Fully connected layers between the convolutions and the codes."""
    layers: tuple[int, ...] = (256, 256)
    """Hidden layers of a network without convolutions."""
    encoder: nn.Module | None = None
    """Your own encoder, a module (n, *shape) -> (n, m) with any m; its weights are new for every seed."""
    keep_weights: bool = False
    """Whether to start from the weights of your own modules, encoder and decoder, as they are."""

    def layer_sizes(self) -> LayerSizes:
        """Return the sizes that `unweave.nn.autoencoder` builds networks from."""
        kind = cast(NetworkKind, "auto" if is_user_network(self.network) else self.network)
        return LayerSizes(kind, self.widths, self.hidden, self.layers)

    def make_encoder(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        """Build the encoder (n, *shape) -> (n, outputs): the user's, or the one of these settings."""
        own, _ = self.user_modules(shape, self.latent_dim)
        return self.adapt_or_build_encoder(own, shape, outputs)

    def adapt_or_build_encoder(self, own: nn.Module | None, shape: tuple[int, ...], outputs: int) -> nn.Module:
        """Return an encoder made of the user's module, or of these settings if there is none."""
        if own is None:
            return build_encoder(shape, outputs, self.layer_sizes())
        encoder = adapt_encoder(own, shape, outputs, reset=self.resets_weights())
        notes: list[str] = getattr(self, "diagnosis_", [])
        if isinstance(encoder.head, nn.Linear):
            text = f"Your encoder has {encoder.head.in_features} features, and {self.name} needs {outputs} outputs"
            note = f"{text}: a linear layer was appended."
            self.diagnosis_ = [*notes, *([note] if note not in notes else [])]
        return encoder

    def user_modules(self, shape: tuple[int, ...], codes: int) -> UserModules:
        """Return encoder and decoder of the user, who may have given a function of shape and inputs of the decoder."""
        given = self.encoder, getattr(self, "decoder", None)
        if is_user_network(self.network):
            if given != (None, None) or self.keep_weights:
                text = f"network={self.network!r} beside encoder=, decoder= or keep_weights=True"
                raise InputError(f"{text}: a function brings its own modules and weights; leave the others out")
            return call_network_function(self, shape, codes)
        if self.keep_weights and given == (None, None):
            raise InputError("keep_weights=True keeps the weights of your own networks: pass encoder= or decoder=")
        return given

    def resets_weights(self) -> bool:
        """Return whether the user's modules get new weights; those of a function are new in every call."""
        return not self.keep_weights and not is_user_network(self.network)


@dataclass(kw_only=True, eq=False, repr=False)
class AutoencoderMixin(EncoderMixin):
    """Settings of an encoder and a decoder, and p(x | z); mix into a `Neural` method with `net.decoder`."""

    likelihood: Literal["auto", "bernoulli", "gaussian"] = "auto"
    """Likelihood of pixels: Bernoulli for images, Gaussian with variance one for vectors ('auto'), or one of them."""
    decoder: nn.Module | None = None
    """Your own decoder, a module (n, latent_dim) -> (n, *shape); its outputs are means, or logits of images."""

    def make_autoencoder(self, shape: tuple[int, ...], outputs: int, codes: int) -> EncoderDecoder:
        """Build an encoder (n, *shape) -> (n, outputs) and a decoder (n, codes) -> (n, *shape)."""
        own_encoder, own_decoder = self.user_modules(shape, codes)
        encoder = self.adapt_or_build_encoder(own_encoder, shape, outputs)
        if own_decoder is None:
            return EncoderDecoder(encoder, build_decoder(codes, shape, self.layer_sizes()))
        return EncoderDecoder(encoder, adapt_decoder(own_decoder, codes, shape, reset=self.resets_weights()))

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
