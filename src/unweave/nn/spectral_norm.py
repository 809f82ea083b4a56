"""Spectral normalization: layers whose weights are divided by their largest singular value; Miyato et al. (2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

# Power iterations per call. They start from the same vector each time, so that a layer is a pure function of its
# weights; `torch.nn.utils.parametrizations.spectral_norm` keeps the vector of the last call.
ITERATIONS = 6


def apply_spectral_norm(net: nn.Module) -> Any:
    """Return the network with all linear layers and convolutions normalized; parameters keep their names."""
    layer: Any = net
    if type(net) is nn.Linear:
        normalized: Any = skip_init(SpectralLinear, layer.in_features, layer.out_features)  # type: ignore[no-untyped-call]
    elif type(net) is nn.Conv2d:
        settings = layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding
        normalized = skip_init(SpectralConv, *settings)  # type: ignore[no-untyped-call]
    else:
        for name, child in net.named_children():
            setattr(net, name, apply_spectral_norm(child))
        return net
    normalized.weight, normalized.bias = layer.weight, layer.bias
    normalized.register_buffer("start", layer.weight.detach().flatten(1).sum(1))
    return normalized


class SpectralLinear(nn.Linear):
    """Linear layer x -> W x / sigma(W) + b."""

    start: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, divide_by_spectral_norm(self.weight, self.start), self.bias)


class SpectralConv(nn.Conv2d):
    """Convolution with the kernel W / sigma(W), sigma being that of the matrix (out, everything else)."""

    start: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, divide_by_spectral_norm(self.weight, self.start), self.bias, self.stride, self.padding)


def divide_by_spectral_norm(weight: Tensor, start: Tensor) -> Tensor:
    """Return W / sigma(W) by power iteration from `start`, (out,); singular vectors have no gradient.

    The iterations u <- W W^T u are powers of a small matrix, so few products take many of them.
    """
    with torch.autocast(weight.device.type, enabled=False):  # the iteration needs more than 7 bits of fraction
        W = weight.flatten(1)
        fixed = W.detach()
        gram = fixed @ fixed.T
        gram = gram / gram.norm()  # its powers stay representable
        square = gram @ gram
        u = F.normalize(start, dim=0)
        for _ in range((ITERATIONS - 1) // 2):
            u = square @ u
        u = gram @ u if ITERATIONS % 2 == 0 else u
        v = F.normalize(fixed.T @ u, dim=0)
        u = F.normalize(fixed @ v, dim=0)
        return weight / (u @ W @ v)
