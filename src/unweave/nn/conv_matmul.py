"""Convolutions as matrix products: for stacks of models, whose convolutions libraries compute one group at a time."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PLAIN = (nn.Conv2d, nn.ConvTranspose2d)
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


def replace_convs(net: nn.Module) -> nn.Module:
    """A copy whose 4 x 4 convolutions of stride 2, both ways, are products; the same parameters by the same names."""
    net = copy.deepcopy(net)
    for module in net.modules():
        if _fits(module):
            module.__class__ = StridedConvMatmul if isinstance(module, nn.Conv2d) else TransposedConvMatmul
    return net


def has_replaceable_convs(net: nn.Module) -> bool:
    """Whether there is such a convolution in it."""
    return any(_fits(module) for module in net.modules())


def _fits(module: nn.Module) -> bool:
    # Of exactly these classes: a convolution that computes its weights is left as it is.
    if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d) or type(module) not in PLAIN:
        return False
    form = module.kernel_size, module.stride, module.padding, module.dilation, module.groups, module.output_padding
    return form == ((4, 4), (2, 2), (1, 1), (1, 1), 1, (0, 0)) and module.padding_mode == "zeros"


# A 4 x 4 kernel of stride 2 is a 2 x 2 kernel of stride 1 over blocks of 2 x 2 pixels: row 2 t + r of the kernel is row
# r of block t. Axes: t, u for blocks down and across, r, s for pixels inside a block. Either the four blocks that meet
# are gathered and multiplied at once, or every block is multiplied for its four places and the products are added.
# Both compute the same; what lies between gather, product and sum is most of the traffic, so the smaller of it decides.


class StridedConvMatmul(nn.Conv2d):
    """4 x 4, stride 2, padding 1: (n, a, h, w) -> (n, b, h / 2, w / 2)."""

    def forward(self, x: Tensor) -> Tensor:
        b, a = self.weight.shape[:2]
        n, _, h, w = x.shape
        h, w = h // 2, w // 2
        x = F.pad(x, (1, 1, 1, 1))[:, :, : 2 * h + 2, : 2 * w + 2]  # of an odd side, the last row meets no kernel
        blocks = x.reshape(n, a, h + 1, 2, w + 1, 2).permute(0, 2, 4, 3, 5, 1).flatten(3)
        W = self.weight.reshape(b, a, 2, 2, 2, 2)  # (b, a, t, r, u, s)
        if 4 * a <= b:
            met = torch.cat([blocks[:, t : t + h, u : u + w] for t, u in CORNERS], -1)  # (n, h, w, 16 a)
            y = _times(met, W.permute(2, 4, 3, 5, 1, 0).reshape(16 * a, b))  # (t u r s a, b)
        else:
            parts = _four(blocks, W.permute(3, 5, 1, 2, 4, 0).reshape(4 * a, 4 * b))  # (r s a, t u b)
            y = _sum([part[:, t : t + h, u : u + w] for (t, u), part in parts])  # (n, h, w, b)
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.permute(0, 3, 1, 2)


class TransposedConvMatmul(nn.ConvTranspose2d):
    """4 x 4, stride 2, padding 1, transposed: (n, a, h, w) -> (n, b, 2 h, 2 w)."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        if output_size is not None:
            return super().forward(x, output_size)
        a, b = self.weight.shape[:2]
        n, _, h, w = x.shape
        x = x.permute(0, 2, 3, 1)
        W = self.weight.reshape(a, b, 2, 2, 2, 2)  # (a, b, t, r, u, s)
        # Block (i + t, j + u) of the output gets tap (t, u) of pixel (i, j).
        if a <= 4 * b:
            met = torch.cat([_moved(x, t, u) for t, u in CORNERS], -1)  # (n, h + 1, w + 1, 4 a)
            blocks = _times(met, W.permute(2, 4, 0, 3, 5, 1).reshape(4 * a, 4 * b))  # (t u a, r s b)
        else:
            parts = _four(x, W.permute(0, 2, 4, 3, 5, 1).reshape(a, 16 * b))  # (a, t u r s b)
            blocks = _sum([_moved(part, t, u) for (t, u), part in parts])  # (n, h + 1, w + 1, 4 b)
        whole = blocks.reshape(n, h + 1, w + 1, 2, 2, b).permute(0, 5, 1, 3, 2, 4)
        out = whole.reshape(n, b, 2 * h + 2, 2 * w + 2)[:, :, 1:-1, 1:-1]
        return out if self.bias is None else out + self.bias.to(out.dtype)[:, None, None]


def _times(x: Tensor, W: Tensor) -> Tensor:
    """(n, h, w, a) times (a, b), as one product of matrices, which a stack makes one of all models."""
    return (x.reshape(-1, len(W)) @ W).reshape(*x.shape[:-1], W.shape[1])


def _four(x: Tensor, W: Tensor) -> list[tuple[tuple[int, int], Tensor]]:
    """The product for each corner: those come first among the columns of W."""
    return list(zip(CORNERS, _times(x, W).reshape(*x.shape[:-1], 4, W.shape[1] // 4).unbind(-2), strict=True))


def _moved(x: Tensor, t: int, u: int) -> Tensor:
    """(n, h, w, a) -> (n, h + 1, w + 1, a), t rows down and u columns across."""
    return F.pad(x, (0, 0, u, 1 - u, t, 1 - t))


def _sum(parts: list[Tensor]) -> Tensor:
    return (parts[0] + parts[1]) + (parts[2] + parts[3])
