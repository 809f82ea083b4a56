"""Layers whose weights are divided by their largest singular value; Miyato et al. (2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROUNDS = 6  # of power iteration: from the same start each time, so that a layer stays a pure function of its weights


def apply_spectral_norm(net: nn.Module) -> Any:
    """The same network, all its linear layers and convolutions normalized."""
    kinds: dict[type, Any] = {nn.Linear: SpectralLinear, nn.Conv2d: SpectralConv}
    every: list[Any] = [module for module in net.modules() if type(module) in kinds]
    for module in every:
        module.__class__ = kinds[type(module)]
        module.register_buffer("start", module.weight.detach().flatten(1).sum(1))
    return net


class SpectralLinear(nn.Linear):
    """x -> W x / sigma(W) + b."""

    start: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, divide_by_spectral_norm(self.weight, self.start), self.bias)


class SpectralConv(nn.Conv2d):
    """The same, the kernel being a matrix, (out, everything else)."""

    start: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, divide_by_spectral_norm(self.weight, self.start), self.bias, self.stride, self.padding)


def divide_by_spectral_norm(weight: Tensor, start: Tensor) -> Tensor:
    """W / sigma(W), of which the gradient takes the singular vectors as they are."""
    with torch.autocast(weight.device.type, enabled=False):  # seven bits are too few for an iteration
        W = weight.flatten(1)
        still, u, v = W.detach(), start, start
        for _ in range(ROUNDS):
            v = F.normalize(still.T @ u, dim=0)
            u = F.normalize(still @ v, dim=0)
        return weight / (u @ W @ v)
