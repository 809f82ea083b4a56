"""Batch normalization that a pure loss can have; Ioffe and Szegedy (2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

TINY = 1e-5  # added to variances


class BatchNormNetwork(nn.Module):
    """A network with batch normalization behind every activation.

    Averages that are kept while it learns would make a loss something else than a function of weights and batch. So
    means and variances are those of the rows at hand, and later those of some usual inputs: `freeze_statistics`.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        features = 0
        for layer in (module for module in net.modules() if not list(module.children())):
            self.layers.append(layer)
            features = getattr(layer, "out_features", getattr(layer, "out_channels", features))
            if isinstance(layer, nn.ReLU | nn.LeakyReLU):
                self.layers.append(BatchNormLayer(features))

    def forward(self, x: Tensor, rows: int | None = None) -> Tensor:
        """(n, d) -> (n, ...), by the means and variances of the first rows, or by those it has settled on."""
        for layer in self.layers:
            x = layer(x, rows) if isinstance(layer, BatchNormLayer) else layer(x)
        return x

    @torch.no_grad()
    def freeze_statistics(self, x: Tensor) -> None:
        """Means and variances from now on: those of these rows."""
        for layer in self.layers:
            if isinstance(layer, BatchNormLayer):
                layer.mean, layer.var = layer.moments(x)
                x = layer(x, None)
            else:
                x = layer(x)


class BatchNormLayer(nn.Module):
    """Mean 0 and variance 1 of every feature, over rows and pixels; then a scale and a shift, learned."""

    mean: Tensor
    var: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))

    def forward(self, x: Tensor, rows: int | None) -> Tensor:
        """(n, features, ...) -> the same."""
        mean, var = (self.mean, self.var) if rows is None else self.moments(x[:rows])
        mean, var, weight, bias = (v.view(-1, *[1] * (x.ndim - 2)) for v in (mean, var, self.weight, self.bias))
        return (x - mean) * torch.rsqrt(var + TINY) * weight + bias

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Of every feature, (features,)."""
        var, mean = torch.var_mean(x.to(self.weight.dtype), [0, *range(2, x.ndim)], correction=0)
        return mean, var
