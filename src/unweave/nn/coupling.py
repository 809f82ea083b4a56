"""Affine coupling: invertible blocks whose Jacobian is triangular."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from .mlp import mlp

Clamp = Literal["soft", "steep"]

# Both bound the log-scale by about two. Their slopes at zero, 0.64 and 2, decide how strongly a random net mixes.
CLAMPS: dict[Clamp, Callable[[Tensor], Tensor]] = {
    "soft": lambda s: 4 / math.pi * torch.atan(s / 2),  # GIN, the authors' script
    "steep": lambda s: 2 * torch.tanh(s),  # GIN, Appendix D
}


class AffineCoupling(nn.Module):
    """RealNVP block (Dinh et al., 2016, Eqs. 7-8), both halves in turn, after a fixed permutation of the inputs."""

    order: Tensor
    back: Tensor

    def __init__(self, features: int, width: int, clamp: Clamp, rng: Generator) -> None:
        super().__init__()
        a, b = features // 2, features - features // 2
        self.halves = [a, b]
        self.first, self.second = mlp(b, width, width, 2 * a), mlp(a, width, width, 2 * b)
        self.clamp = CLAMPS[clamp]
        order = torch.randperm(features, generator=rng)
        self.register_buffer("order", order)
        self.register_buffer("back", order.argsort())

    # s, t: log-scale and shift of the moving half; log|det J| is the sum of both s

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, features) -> (n, features) and log|det J|, (n,)."""
        a, b = torch.split(x[:, self.order], self.halves, 1)
        s, t = self.first(b).chunk(2, 1)
        s = self.clamp(s)
        a, log_det = a * s.exp() + t, s.sum(1)
        s, t = self.second(a).chunk(2, 1)
        s = self.clamp(s)
        b, log_det = b * s.exp() + t, log_det + s.sum(1)
        return torch.cat([a, b], 1), log_det

    def inverse(self, y: Tensor) -> Tensor:
        """(n, features) -> (n, features), exactly undoing `forward`."""
        a, b = torch.split(y, self.halves, 1)
        s, t = self.second(a).chunk(2, 1)
        b = (b - t) * (-self.clamp(s)).exp()
        s, t = self.first(b).chunk(2, 1)
        a = (a - t) * (-self.clamp(s)).exp()
        return torch.cat([a, b], 1)[:, self.back]


class Flow(nn.Module):
    """Blocks one after the other."""

    def __init__(self, blocks: list[AffineCoupling]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, features) -> (n, features) and log|det J|, (n,)."""
        log_det = x.new_zeros(len(x))
        for block in self.blocks:
            x, change = block(x)
            log_det = log_det + change
        return x, log_det

    def inverse(self, y: Tensor) -> Tensor:
        """(n, features) -> (n, features)."""
        for block in reversed(self.blocks):
            y = block.inverse(y)  # type: ignore[operator]
        return y
