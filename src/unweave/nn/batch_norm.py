"""Batch normalization without running averages, so that the loss stays a pure function; Ioffe and Szegedy (2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

EPS = 1e-5  # added to variances


class BatchNormNetwork(nn.Module):
    """A network with batch normalization after every activation.

    Running averages would make the loss depend on more than weights and batch. So means and variances are those of the
    batch, and after training those of a fixed set of inputs, see `freeze_statistics`.
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
        """Map (n, d) -> (n, ...), normalized by the first `rows` of the batch, or by the frozen statistics."""
        for layer in self.layers:
            x = layer(x, rows) if isinstance(layer, BatchNormLayer) else layer(x)
        return x

    @torch.no_grad()
    def freeze_statistics(self, x: Tensor) -> None:
        """Use the means and variances of these inputs, (n, d), from now on."""
        for layer in self.layers:
            if isinstance(layer, BatchNormLayer):
                layer.mean, layer.var = layer.moments(x)
                x = layer(x, None)
            else:
                x = layer(x)


class BatchNormLayer(nn.Module):
    """Scales every feature to mean 0 and variance 1 over rows and pixels; then applies a learned scale and shift."""

    mean: Tensor
    var: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))

    def forward(self, x: Tensor, rows: int | None) -> Tensor:
        """Normalize (n, features, ...) by its first `rows`, or by the frozen statistics."""
        mean, var = (self.mean, self.var) if rows is None else self.moments(x[:rows])
        mean, var, weight, bias = (v.view(-1, *[1] * (x.ndim - 2)) for v in (mean, var, self.weight, self.bias))
        return (x - mean) * torch.rsqrt(var + EPS) * weight + bias

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of every feature, (features,) each."""
        var, mean = torch.var_mean(x.to(self.weight.dtype), [0, *range(2, x.ndim)], correction=0)
        return mean, var
