"""Affine coupling: invertible blocks whose Jacobian is triangular, and flows made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.nn.mlp import mlp
from unweave.utils.errors import InputError

Clamp = Literal["soft", "steep"]
Volume = Literal["free", "last", "mean"]
Subnet = Callable[[int, int], nn.Sequential]
"""from (channels in, channels out) to a network"""

FEW = 32  # columns that are permuted without an index

# Both bound the log-scale by about two. Their slopes at zero, 0.64 and 2, decide how strongly a random net mixes.
CLAMPS: dict[Clamp, Callable[[Tensor], Tensor]] = {
    "soft": lambda s: 4 / math.pi * torch.atan(s / 2),  # GIN, the authors' script
    "steep": lambda s: 2 * torch.tanh(s),  # GIN, Appendix D
}

# What makes the log-scales of all channels, (n, channels, ...), sum to zero, so that volumes are kept.
VOLUMES: dict[Volume, Callable[[Tensor], Tensor]] = {
    "free": lambda s: s,  # RealNVP
    "last": lambda s: torch.cat([s[:, :-1], -s[:, :-1].sum(1, keepdim=True)], 1),  # GIN, Sec. 4.1
    "mean": lambda s: s - s.mean(1, keepdim=True),  # GIN, the authors' script
}


class AffineCoupling(nn.Module):
    """RealNVP block (Dinh et al., 2016, Eqs. 7-8), both halves in turn, after a fixed permutation of the channels.

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

    # s, t: log-scale and shift of the moving half; log|det J| is the sum of both s

    def _scale_and_shift(self, net: nn.Module, still: Tensor) -> tuple[Tensor, Tensor]:
        s, t = net(still).chunk(2, 1)
        return VOLUMES[self.volume](CLAMPS[self.clamp](s)), t

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels, ...) -> the same, and log|det J|, (n,)."""
        a, b = torch.split(permuted(x, self.order), self.halves, 1)
        s, t = self._scale_and_shift(self.first, b)
        a, log_det = a * s.exp() + t, s.flatten(1).sum(1)
        s, t = self._scale_and_shift(self.second, a)
        b, log_det = b * s.exp() + t, log_det + s.flatten(1).sum(1)
        return torch.cat([a, b], 1), log_det if self.volume == "free" else torch.zeros_like(log_det)

    def inverse(self, y: Tensor) -> Tensor:
        """(n, channels, ...) -> the same, exactly undoing `forward`."""
        a, b = torch.split(y, self.halves, 1)
        s, t = self._scale_and_shift(self.second, a)
        b = (b - t) * (-s).exp()
        s, t = self._scale_and_shift(self.first, b)
        a = (a - t) * (-s).exp()
        return torch.cat([a, b], 1)[:, self.back]


def permuted(x: Tensor, order: Tensor) -> Tensor:
    """x[:, order]; of few columns as sums with ones and zeros, since the gradient of an index takes half of a step."""
    if x.ndim > 2 or x.shape[1] > FEW:
        return x[:, order]
    chosen = order == torch.arange(x.shape[1], device=x.device)[:, None]  # (from, to)
    return (x[:, :, None] * chosen).sum(1)


class Squeeze(nn.Module):
    """Half the height and width, four times the channels: the checkerboard of i-RevNet (Jacobsen et al., 2018)."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, c, h, w) -> (n, 4 c, h / 2, w / 2) and zeros, (n,)."""
        return F.pixel_unshuffle(x, 2), x.new_zeros(len(x))

    def inverse(self, y: Tensor) -> Tensor:
        """(n, 4 c, h, w) -> (n, c, 2 h, 2 w)."""
        return F.pixel_shuffle(y, 2)


class Vector(nn.Module):
    """Images as vectors."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, *shape) -> (n, features) and zeros, (n,)."""
        return x.flatten(1), x.new_zeros(len(x))

    def inverse(self, y: Tensor) -> Tensor:
        """(n, features) -> (n, *shape)."""
        return y.reshape(len(y), *self.shape)


class Flow(nn.Module):
    """Invertible parts one after the other."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, *shape) -> the same or (n, features), and log|det J|, (n,)."""
        log_det = x.new_zeros(len(x))
        for block in self.blocks:
            x, change = block(x)
            log_det = log_det + change
        return x, log_det

    def inverse(self, y: Tensor) -> Tensor:
        """The other way."""
        for block in reversed(self.blocks):
            y = block.inverse(y)  # type: ignore[operator]
        return y


# Networks of the log-scales and shifts -------------------------------------------------------------------------------


def dense(width: int, *, rest: bool = False) -> Subnet:
    """Two hidden layers of a width; with `rest`, the block starts as the identity."""
    return lambda a, b: _rested(mlp(a, width, width, b), rest)


def convolutional(width: int, *, rest: bool = False) -> Subnet:
    """Three 3 x 3 convolutions with a width in between; with `rest`, the block starts as the identity."""

    def make(a: int, b: int) -> nn.Sequential:
        layers = [nn.Conv2d(a, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)]
        return _rested(
            nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), nn.Conv2d(width, b, 3, padding=1)), rest
        )

    return make


def _rested(net: nn.Sequential, rest: bool) -> nn.Sequential:
    if rest:  # a log-scale and a shift of zero, as in the authors' script
        nn.init.zeros_(net[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(net[-1].bias)  # type: ignore[arg-type]
    return net


# Flows ----------------------------------------------------------------------------------------------------------------


def vector_flow(
    features: int, blocks: int, width: int, rng: Generator, *, clamp: Clamp, volume: Volume, rest: bool = True
) -> Flow:
    """Fully connected blocks alone, (n, features) -> (n, features); GIN, Table 2, has eight of width 10."""
    subnet = dense(width, rest=rest)
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
    """(n, c, h, w) -> (n, c h w): halved once for every width, convolutional blocks after each, then dense blocks.

    `blocks` are the convolutional ones of each size and the dense ones; GIN, Table 3, has (4, 2), widths 16 and 32.
    """
    channels, *sides = shape
    unit = 2 ** len(widths)
    if any(side % unit for side in sides):
        size = " x ".join(map(str, sides))
        known = max((k for k in range(len(widths)) if all(side % 2**k == 0 for side in sides)), default=0)
        raise InputError(
            f"images of {size} cannot be halved {len(widths)} times: pad or resize them to multiples of {unit}, "
            f"give conv_widths {known} of its {len(widths)} numbers, or take network='dense'"
        )
    parts: list[nn.Module] = []
    for width in widths:
        channels, sides = 4 * channels, [side // 2 for side in sides]
        net = convolutional(width, rest=True)
        parts.append(Squeeze())
        parts += [AffineCoupling(channels, net, rng, clamp=clamp, volume=volume) for _ in range(blocks[0])]
    features = channels * math.prod(sides)
    parts.append(Vector((channels, *sides)))
    full = vector_flow(features, blocks[1], full_width, rng, clamp=clamp, volume=volume)
    return Flow([*parts, *full.blocks])
