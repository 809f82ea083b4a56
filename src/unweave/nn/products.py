"""Convolutions as matrix products: for stacks of models, whose convolutions libraries compute one group at a time."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PLAIN = (nn.Conv2d, nn.ConvTranspose2d)


def as_products(net: nn.Module) -> nn.Module:
    """A copy whose 4 x 4 convolutions of stride 2, both ways, are products; the same parameters by the same names."""
    net = copy.deepcopy(net)
    for module in net.modules():
        # Of exactly these classes: a convolution that computes its weights is left as it is.
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d) and type(module) in PLAIN and _fits(module):
            module.__class__ = HalvingProduct if isinstance(module, nn.Conv2d) else DoublingProduct
    return net


def _fits(module: nn.Conv2d | nn.ConvTranspose2d) -> bool:
    form = module.kernel_size, module.stride, module.padding, module.dilation, module.groups
    return form == ((4, 4), (2, 2), (1, 1), (1, 1), 1) and module.padding_mode == "zeros"


# A 4 x 4 kernel of stride 2 is a 2 x 2 kernel of stride 1 over blocks of 2 x 2 pixels: row 2 t + r of the kernel is row
# r of block t. Axes: t, u for blocks down and across, r, s for pixels inside a block.


class HalvingProduct(nn.Conv2d):
    """4 x 4, stride 2, padding 1: (n, a, h, w) -> (n, b, h / 2, w / 2)."""

    def forward(self, x: Tensor) -> Tensor:
        b, a = self.weight.shape[:2]
        n, _, h, w = x.shape
        h, w = h // 2, w // 2
        blocks = F.pad(x, (1, 1, 1, 1)).reshape(n, a, h + 1, 2, w + 1, 2).permute(0, 2, 4, 3, 5, 1).flatten(3)
        met = torch.cat([blocks[:, t : t + h, u : u + w] for t in range(2) for u in range(2)], -1)  # (n, h, w, 16 a)
        W = self.weight.reshape(b, a, 2, 2, 2, 2).permute(2, 4, 3, 5, 1, 0).reshape(16 * a, b)  # (t u r s a, b)
        y = met.reshape(-1, 16 * a) @ W
        y = y if self.bias is None else y + self.bias
        return y.reshape(n, h, w, b).permute(0, 3, 1, 2)


class DoublingProduct(nn.ConvTranspose2d):
    """4 x 4, stride 2, padding 1, transposed: (n, a, h, w) -> (n, b, 2 h, 2 w)."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        a, b = self.weight.shape[:2]
        n, _, h, w = x.shape
        W = self.weight.reshape(a, b, 2, 2, 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(a, 16 * b)  # (a, t u r s b)
        y = (x.permute(0, 2, 3, 1).reshape(-1, a) @ W).reshape(n, h, w, 4, 4 * b)
        # Block (i + t, j + u) of the output gets tap (t, u) of pixel (i, j).
        taps = [F.pad(y[:, :, :, 2 * t + u], (0, 0, u, 1 - u, t, 1 - t)) for t in range(2) for u in range(2)]
        blocks = (taps[0] + taps[1]) + (taps[2] + taps[3])  # (n, h + 1, w + 1, 4 b)
        whole = blocks.reshape(n, h + 1, w + 1, 2, 2, b).permute(0, 5, 1, 3, 2, 4)
        out = whole.reshape(n, b, 2 * h + 2, 2 * w + 2)[:, :, 1:-1, 1:-1]
        return out if self.bias is None else out + self.bias[:, None, None]
