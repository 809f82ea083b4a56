"""Affine coupling blocks, whose Jacobian is triangular, and normalizing flows built from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.nn.autoencoder import Chain, mlp
from unweave.utils.errors import InputError

Clamp = Literal["soft", "steep"]
Volume = Literal["free", "last", "mean"]
Subnet = Callable[[int, int], nn.Sequential]
"""Makes a network from (input channels, output channels)."""

MAX_SUMMED_COLUMNS = 32  # more columns are permuted by an index

# Bounds for the log-scale, about two. The slopes at zero, 0.64 and 2, decide how strongly a random network mixes.
CLAMPS: dict[Clamp, Callable[[Tensor], Tensor]] = {
    "soft": lambda s: 4 / math.pi * torch.atan(s / 2),  # GIN, the authors' script
    "steep": lambda s: 2 * torch.tanh(s),  # GIN, Appendix D
}

# Make the log-scales (n, channels, ...) sum to zero over channels, which preserves the volume; or not.
VOLUMES: dict[Volume, Callable[[Tensor], Tensor]] = {
    "free": lambda s: s,  # RealNVP
    "last": lambda s: torch.cat([s[:, :-1], -s[:, :-1].sum(1, keepdim=True)], 1),  # GIN, Sec. 4.1
    "mean": lambda s: s - s.mean(1, keepdim=True),  # GIN, the authors' script
}


class AffineCoupling(nn.Module):
    """RealNVP block (Dinh et al., 2016, Eqs. 7-8) that transforms both halves in turn, after a fixed permutation.

    Channels are the features of a vector (n, channels) or those of an image (n, channels, h, w). With `volume` other
    than "free" it is the block of GIN, whose Jacobian has determinant one.
    """

    order: Tensor
    back: Tensor

    def __init__(
        self, channels: int, subnet: Subnet, rng: Generator, *, clamp: Clamp = "soft", volume: Volume = "free"
    ) -> None:
        super().__init__()
        a, b = channels // 2, channels - channels // 2
        self.halves = [a, b]
        self.first, self.second = subnet(b, 2 * a), subnet(a, 2 * b)
        self.clamp, self.volume = clamp, volume
        order = torch.randperm(channels, generator=rng)
        self.register_buffer("order", order)
        self.register_buffer("back", order.argsort())

    # s, t: log-scale and shift of the transformed half; log|det J| is the sum of both s

    def _scale_and_shift(self, net: nn.Module, fixed_half: Tensor) -> tuple[Tensor, Tensor]:
        s, t = net(fixed_half).chunk(2, 1)
        return VOLUMES[self.volume](CLAMPS[self.clamp](s)), t

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the transformed (n, channels, ...) and log|det J|, (n,)."""
        a, b = torch.split(permute_channels(x, self.order), self.halves, 1)
        s, t = self._scale_and_shift(self.first, b)
        a, log_det = a * s.exp() + t, s.flatten(1).sum(1)
        s, t = self._scale_and_shift(self.second, a)
        b, log_det = b * s.exp() + t, log_det + s.flatten(1).sum(1)
        return torch.cat([a, b], 1), log_det if self.volume == "free" else torch.zeros_like(log_det)

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x for which `forward` gives y, (n, channels, ...)."""
        a, b = torch.split(y, self.halves, 1)
        s, t = self._scale_and_shift(self.second, a)
        b = (b - t) * (-s).exp()
        s, t = self._scale_and_shift(self.first, b)
        a = (a - t) * (-s).exp()
        return torch.cat([a, b], 1)[:, self.back]


def permute_channels(x: Tensor, order: Tensor) -> Tensor:
    """Return x[:, order]; for few columns as sums with ones and zeros, whose gradient is much faster."""
    if x.ndim > 2 or x.shape[1] > MAX_SUMMED_COLUMNS:
        return x[:, order]
    is_source = order == torch.arange(x.shape[1], device=x.device)[:, None]  # (from, to)
    return (x[:, :, None] * is_source).sum(1)


class Squeeze(nn.Module):
    """Halves height and width, with four times the channels: the checkerboard of i-RevNet (Jacobsen et al., 2018)."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, 4 c, h / 2, w / 2) of images (n, c, h, w), and log|det J| = 0, (n,)."""
        return F.pixel_unshuffle(x, 2), x.new_zeros(len(x))

    def inverse(self, y: Tensor) -> Tensor:
        """Return (n, c, 2 h, 2 w) of (n, 4 c, h, w)."""
        return F.pixel_shuffle(y, 2)


class FlattenImages(nn.Module):
    """Reshapes images to vectors."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, features) of images (n, *shape), and log|det J| = 0, (n,)."""
        return x.flatten(1), x.new_zeros(len(x))

    def inverse(self, y: Tensor) -> Tensor:
        """Return images (n, *shape) of (n, features)."""
        return y.reshape(len(y), *self.shape)


class Flow(nn.Module):
    """A sequence of invertible blocks."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of all blocks for x (n, *shape), and log|det J|, (n,)."""
        log_det = x.new_zeros(len(x))
        for block in self.blocks:
            x, change = block(x)
            log_det = log_det + change
        return x, log_det

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x for which `forward` gives y."""
        for block in reversed(self.blocks):
            y = block.inverse(y)  # type: ignore[operator]
        return y


# Networks for log-scales and shifts -------------------------------------------------------------------------------


def dense_subnet(width: int, *, identity_start: bool = False) -> Subnet:
    """Return a maker of networks with two hidden layers; with `identity_start`, a block starts as the identity."""
    return lambda a, b: _zero_last_layer(mlp(a, width, width, b), identity_start)


def conv_subnet(width: int, *, identity_start: bool = False) -> Subnet:
    """Return a maker of networks with three 3 x 3 convolutions; with `identity_start`, a block starts as identity."""

    def make(a: int, b: int) -> nn.Sequential:
        first, second = nn.Conv2d(a, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        net = Chain(first, nn.ReLU(), second, nn.ReLU(), nn.Conv2d(width, b, 3, padding=1))
        return _zero_last_layer(net, identity_start)

    return make


def _zero_last_layer(net: nn.Sequential, identity_start: bool) -> nn.Sequential:
    if identity_start:  # log-scale and shift are zero, as in the authors' script
        nn.init.zeros_(net[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(net[-1].bias)  # type: ignore[arg-type]
    return net


# Flows ----------------------------------------------------------------------------------------------------------------


def vector_flow(
    features: int, blocks: int, width: int, rng: Generator, *, clamp: Clamp, volume: Volume, identity_start: bool = True
) -> Flow:
    """Return a flow of fully connected blocks, (n, features) -> (n, features); GIN, Table 2: eight of width 10."""
    subnet = dense_subnet(width, identity_start=identity_start)
    return Flow([AffineCoupling(features, subnet, rng, clamp=clamp, volume=volume) for _ in range(blocks)])


def image_flow(
    shape: tuple[int, ...],
    blocks: tuple[int, int],
    widths: Sequence[int],
    rng: Generator,
    *,
    clamp: Clamp,
    volume: Volume,
    full_width: int,
) -> Flow:
    """Return a flow of images, (n, c, h, w) -> (n, c h w); GIN, Table 3: blocks (4, 2), widths 16 and 32.

    Args:
        shape: (c, h, w).
        blocks: Number of convolutional blocks after each halving of the image, and of dense blocks at the end.
        widths: Channels inside the convolutional blocks, one for each halving.
        rng: Generator of the permutations.
        clamp: Bound of the log-scales.
        volume: Whether and how volumes are preserved.
        full_width: Width inside the dense blocks.
    """
    channels, *sides = shape
    unit = 2 ** len(widths)
    if any(side % unit for side in sides):
        size = " x ".join(map(str, sides))
        possible = max((k for k in range(len(widths)) if all(side % 2**k == 0 for side in sides)), default=0)
        raise InputError(
            f"images of {size} cannot be halved {len(widths)} times: pad or resize them to multiples of {unit}, "
            f"set conv_widths to {possible} instead of {len(widths)} numbers, or set network='dense'"
        )
    layers: list[nn.Module] = []
    for width in widths:
        channels, sides = 4 * channels, [side // 2 for side in sides]
        net = conv_subnet(width, identity_start=True)
        layers.append(Squeeze())
        layers += [AffineCoupling(channels, net, rng, clamp=clamp, volume=volume) for _ in range(blocks[0])]
    features = channels * math.prod(sides)
    layers.append(FlattenImages((channels, *sides)))
    dense = vector_flow(features, blocks[1], full_width, rng, clamp=clamp, volume=volume)
    return Flow([*layers, *dense.blocks])
