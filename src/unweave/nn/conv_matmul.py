"""Convolutions as matrix products, for stacks of models: libraries compute grouped convolutions one group at a time."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


def replace_convs(net: nn.Module) -> nn.Module:
    """Return a copy whose 4 x 4 convolutions of stride 2, transposed or not, are matrix products.

    Parameters keep their names.
    """
    return _replace(copy.deepcopy(net))


def has_replaceable_convs(net: nn.Module) -> bool:
    """Return whether `replace_convs` changes the network."""
    return any(_is_replaceable(module) for module in net.modules())


def _replace(module: nn.Module) -> nn.Module:
    if not _is_replaceable(module):
        for name, child in module.named_children():
            setattr(module, name, _replace(child))
        return module
    conv: Any = module
    cls = StridedConvMatmul if isinstance(module, nn.Conv2d) else TransposedConvMatmul
    product = skip_init(cls, conv.in_channels, conv.out_channels, 4, 2, 1, bias=conv.bias is not None)  # type: ignore[no-untyped-call]
    product.weight, product.bias = conv.weight, conv.bias
    return product


def _is_replaceable(module: nn.Module) -> bool:
    # Only these classes themselves: a subclass may compute its weights.
    if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d) or type(module) not in (nn.Conv2d, nn.ConvTranspose2d):
        return False
    form = module.kernel_size, module.stride, module.padding, module.dilation, module.groups, module.output_padding
    return form == ((4, 4), (2, 2), (1, 1), (1, 1), 1, (0, 0)) and module.padding_mode == "zeros"


# A 4 x 4 kernel of stride 2 is a 2 x 2 kernel of stride 1 over blocks of 2 x 2 pixels: row 2 t + r of the kernel is row
# r of block t. Axes: t, u for blocks down and across, r, s for pixels inside a block. Either the four adjacent blocks
# are gathered and multiplied at once, or every block is multiplied for its four positions and the products are added.
# Both compute the same. The intermediate tensors cause most of the memory traffic, so the smaller ones are chosen.


class StridedConvMatmul(nn.Conv2d):
    """4 x 4 convolution of stride 2 and padding 1: (n, a, h, w) -> (n, b, h / 2, w / 2)."""

    def forward(self, x: Tensor) -> Tensor:
        b, a = self.weight.shape[:2]
        n, _, h, w = x.shape
        h, w = h // 2, w // 2
        x = F.pad(x, (1, 1, 1, 1))[:, :, : 2 * h + 2, : 2 * w + 2]  # the last row of an odd side is not used
        blocks = x.reshape(n, a, h + 1, 2, w + 1, 2).permute(0, 2, 4, 3, 5, 1).flatten(3)
        W = self.weight.reshape(b, a, 2, 2, 2, 2)  # (b, a, t, r, u, s)
        if 4 * a <= b:
            neighbors = torch.cat([blocks[:, t : t + h, u : u + w] for t, u in CORNERS], -1)  # (n, h, w, 16 a)
            y = _multiply(neighbors, W.permute(2, 4, 3, 5, 1, 0).reshape(16 * a, b))  # (t u r s a, b)
        else:
            products = _multiply_corners(blocks, W.permute(3, 5, 1, 2, 4, 0).reshape(4 * a, 4 * b))  # (r s a, t u b)
            y = _sum([product[:, t : t + h, u : u + w] for (t, u), product in products])  # (n, h, w, b)
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.permute(0, 3, 1, 2)


class TransposedConvMatmul(nn.ConvTranspose2d):
    """Transposed 4 x 4 convolution of stride 2 and padding 1: (n, a, h, w) -> (n, b, 2 h, 2 w)."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        if output_size is not None:
            return super().forward(x, output_size)
        a, b = self.weight.shape[:2]
        n, _, h, w = x.shape
        x = x.permute(0, 2, 3, 1)
        W = self.weight.reshape(a, b, 2, 2, 2, 2)  # (a, b, t, r, u, s)
        # Block (i + t, j + u) of the output gets tap (t, u) of pixel (i, j).
        if a <= 4 * b:
            neighbors = torch.cat([_shift(x, t, u) for t, u in CORNERS], -1)  # (n, h + 1, w + 1, 4 a)
            blocks = _multiply(neighbors, W.permute(2, 4, 0, 3, 5, 1).reshape(4 * a, 4 * b))  # (t u a, r s b)
        else:
            products = _multiply_corners(x, W.permute(0, 2, 4, 3, 5, 1).reshape(a, 16 * b))  # (a, t u r s b)
            blocks = _sum([_shift(product, t, u) for (t, u), product in products])  # (n, h + 1, w + 1, 4 b)
        pixels = blocks.reshape(n, h + 1, w + 1, 2, 2, b).permute(0, 5, 1, 3, 2, 4)
        out = pixels.reshape(n, b, 2 * h + 2, 2 * w + 2)[:, :, 1:-1, 1:-1]
        return out if self.bias is None else out + self.bias.to(out.dtype)[:, None, None]


def _multiply(x: Tensor, W: Tensor) -> Tensor:
    """Multiply (n, h, w, a) by (a, b) as one matrix product, which vmap turns into one batched product of a stack."""
    return (x.reshape(-1, len(W)) @ W).reshape(*x.shape[:-1], W.shape[1])


def _multiply_corners(x: Tensor, W: Tensor) -> list[tuple[tuple[int, int], Tensor]]:
    """Return the product for each corner; the columns of W are ordered by corner first."""
    return list(zip(CORNERS, _multiply(x, W).reshape(*x.shape[:-1], 4, W.shape[1] // 4).unbind(-2), strict=True))


def _shift(x: Tensor, t: int, u: int) -> Tensor:
    """Shift by t rows down and u columns right with zeros, (n, h, w, a) -> (n, h + 1, w + 1, a)."""
    return F.pad(x, (0, 0, u, 1 - u, t, 1 - t))


def _sum(terms: list[Tensor]) -> Tensor:
    return (terms[0] + terms[1]) + (terms[2] + terms[3])
