"""Batch normalisation without a memory; Ioffe and Szegedy (2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

TINY = 1e-5  # added to variances


class BatchNormed(nn.Module):
    """A network with batch normalisation behind every activation.

    While it learns, means and variances are those of the batch. Kept averages would make a loss something else than a
    function of weights and batch, so that afterwards (`usually`) they are those of a batch of inputs that stays.
    """

    usual: Tensor

    def __init__(self, net: nn.Module, usual: Tensor) -> None:
        super().__init__()
        self.register_buffer("usual", usual)
        self.layers = nn.ModuleList()
        features = usual.shape[1]
        for layer in (module for module in net.modules() if not list(module.children())):
            self.layers.append(layer)
            features = getattr(layer, "out_features", getattr(layer, "out_channels", features))
            if isinstance(layer, nn.ReLU | nn.LeakyReLU):
                self.layers.append(Normalise(features))

    def forward(self, x: Tensor, *, usually: bool = False) -> Tensor:
        """(n, d) -> (n, ...), by the means and variances of these rows, or of the usual ones."""
        h, rows = (torch.cat([self.usual, x]), len(self.usual)) if usually else (x, len(x))
        for layer in self.layers:
            h = layer(h, rows) if isinstance(layer, Normalise) else layer(h)
        return h[-len(x) :] if usually else h


class Normalise(nn.Module):
    """Mean 0 and variance 1 of every feature, over the first rows and all pixels; then a scale and a shift, learned."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x: Tensor, rows: int) -> Tensor:
        """(n, features, ...) -> the same."""
        over = [0, *range(2, x.ndim)]
        var, mean = torch.var_mean(x[:rows].to(self.weight.dtype), over, correction=0, keepdim=True)
        weight, bias = (v.view(-1, *[1] * (x.ndim - 2)) for v in (self.weight, self.bias))
        return (x - mean) * torch.rsqrt(var + TINY) * weight + bias
