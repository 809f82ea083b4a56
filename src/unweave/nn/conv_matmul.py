"""Convolutions as matrix products, for stacks of models: libraries compute grouped convolutions one group at a time."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

from unweave.nn import lane_conv
from unweave.nn.autoencoder import Chain
from unweave.nn.spectral_norm import SpectralConv, divide_by_spectral_norm

CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
HALVING = ((4, 4), (2, 2))  # side and stride of the kernels that become matrix products
SAME_SIZE = ((3, 3), (1, 1))  # of those that only Triton kernels compute


def replace_convs(net: nn.Module, *, use_triton: bool = False) -> nn.Module:
    """Return a copy whose 4 x 4 convolutions of stride 2, transposed or not, are matrix products.

    Parameters and buffers keep their names. With `use_triton`, the products are those of `lane_conv`, in bf16, which
    also compute the activations that follow, and 3 x 3 convolutions of stride 1.
    """
    return _replace(copy.deepcopy(net), use_triton)


def has_replaceable_convs(net: nn.Module) -> bool:
    """Return whether `replace_convs` changes the network."""
    return any(_is_replaceable(module, use_triton=False) for module in net.modules())


def _replace(module: nn.Module, use_triton: bool) -> nn.Module:
    if _is_replaceable(module, use_triton):
        return _make_product(module, use_triton)
    for name, child in module.named_children():
        setattr(module, name, _replace(child, use_triton))
    if use_triton and isinstance(module, Chain):  # intermediate results of other modules may have other readers
        _merge_activations(module)
        _pass_gates(module)
    return module


def _make_product(conv: Any, use_triton: bool) -> nn.Module:
    if isinstance(conv, nn.ConvTranspose2d):
        cls: type[nn.Module] = TransposedConvMatmul
    else:
        cls = SpectralConvMatmul if isinstance(conv, SpectralConv) else StridedConvMatmul
    settings = conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding
    product: Any = skip_init(cls, *settings, bias=conv.bias is not None)  # type: ignore[no-untyped-call]
    product.weight, product.bias, product.use_triton = conv.weight, conv.bias, use_triton
    for name, buffer in conv.named_buffers():
        product.register_buffer(name, buffer)
    return product


def _merge_activations(layers: Chain) -> None:
    """Let convolutions compute the activations that follow them."""
    for i in range(len(layers) - 1):
        conv, activation = layers[i], layers[i + 1]
        if isinstance(conv, PRODUCTS) and isinstance(activation, nn.ReLU | nn.LeakyReLU):
            conv.slope = float(getattr(activation, "negative_slope", 0.0))
            layers[i + 1] = nn.Identity()


def _pass_gates(chain: Chain) -> None:
    """Let a convolution that follows another one apply the derivative of the activation between them."""
    layers = [layer for layer in chain if not isinstance(layer, nn.Identity)]
    for first, second in pairwise(layers):
        if isinstance(first, PRODUCTS) and isinstance(second, PRODUCTS) and first.use_triton and second.use_triton:
            second.input_slope, first.defers_slope = first.slope, True


def _is_replaceable(module: nn.Module, use_triton: bool) -> bool:
    # Only these classes themselves: another subclass may compute its weights.
    if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        return False
    if type(module) not in (nn.Conv2d, nn.ConvTranspose2d, SpectralConv):
        return False
    form = module.kernel_size, module.stride
    is_usual = (module.padding, module.dilation, module.groups, module.output_padding) == ((1, 1), (1, 1), 1, (0, 0))
    is_same_size = use_triton and form == SAME_SIZE and isinstance(module, nn.Conv2d)
    return is_usual and module.padding_mode == "zeros" and (form == HALVING or is_same_size)


# A 4 x 4 kernel of stride 2 is a 2 x 2 kernel of stride 1 over blocks of 2 x 2 pixels: row 2 t + r of the kernel is row
# r of block t. Axes: t, u for blocks down and across, r, s for pixels inside a block. Either the four adjacent blocks
# are gathered and multiplied at once, or every block is multiplied for its four positions and the products are added.
# Both compute the same. The intermediate tensors cause most of the memory traffic, so the smaller ones are chosen.


class StridedConvMatmul(nn.Conv2d):
    """4 x 4 convolution of stride 2 and padding 1: (n, a, h, w) -> (n, b, h / 2, w / 2)."""

    use_triton = False
    slope = 1.0  # of an activation that follows, below zero; 1: there is none
    input_slope = 1.0  # of an activation before, whose derivative this layer applies
    defers_slope = False  # whether the next layer applies the derivative of `slope`

    def normalized_weight(self) -> Tensor:
        """Return the kernel, (b, a, 4, 4)."""
        return self.weight

    def forward(self, x: Tensor) -> Tensor:
        weight = self.normalized_weight()
        if self.use_triton:
            gates = self.slope, self.input_slope, self.defers_slope
            return lane_conv.convolve(x, weight, self.bias, self.stride[0], *gates)
        b, a = weight.shape[:2]
        n, _, h, w = x.shape
        h, w = h // 2, w // 2
        x = F.pad(x, (1, 1, 1, 1))[:, :, : 2 * h + 2, : 2 * w + 2]  # the last row of an odd side is not used
        blocks = x.reshape(n, a, h + 1, 2, w + 1, 2).permute(0, 2, 4, 3, 5, 1).flatten(3)
        W = weight.reshape(b, a, 2, 2, 2, 2)  # (b, a, t, r, u, s)
        if 4 * a <= b:
            neighbors = torch.cat([blocks[:, t : t + h, u : u + w] for t, u in CORNERS], -1)  # (n, h, w, 16 a)
            y = _multiply(neighbors, W.permute(2, 4, 3, 5, 1, 0).reshape(16 * a, b))  # (t u r s a, b)
        else:
            products = _multiply_corners(blocks, W.permute(3, 5, 1, 2, 4, 0).reshape(4 * a, 4 * b))  # (r s a, t u b)
            y = _sum([product[:, t : t + h, u : u + w] for (t, u), product in products])  # (n, h, w, b)
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.permute(0, 3, 1, 2)


class SpectralConvMatmul(StridedConvMatmul):
    """The same with spectral normalization."""

    start: Tensor

    def normalized_weight(self) -> Tensor:
        return divide_by_spectral_norm(self.weight, self.start)


class TransposedConvMatmul(nn.ConvTranspose2d):
    """Transposed 4 x 4 convolution of stride 2 and padding 1: (n, a, h, w) -> (n, b, 2 h, 2 w)."""

    use_triton = False
    slope = input_slope = 1.0  # as above
    defers_slope = False

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        if output_size is not None:
            return super().forward(x, output_size)
        if self.use_triton:
            return lane_conv.upsample(x, self.weight, self.bias, self.slope, self.input_slope, self.defers_slope)
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


PRODUCTS = (StridedConvMatmul, TransposedConvMatmul)


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
