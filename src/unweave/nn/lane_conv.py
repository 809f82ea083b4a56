"""Convolutions of stacks of models on a GPU: convolution, bias and activation of all models in one Triton kernel.

`convolve` and `upsample` are written for one model. `vmap` maps them over the lanes of a stack, and they can be
differentiated any number of times. Images between two layers stay in one layout, channels last, so nothing is copied.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor

from unweave.nn import lane_conv_ops as ops

PRECISION = torch.bfloat16  # of images and products; sums are in float32


def is_available(device: torch.device) -> bool:
    """Return whether these kernels run on a device: a GPU with bf16 products, and Triton."""
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, slope: float) -> Tensor:
    """Return `act(conv(x) + bias)`, (n, a, h, w) -> (n, b, ...), in bf16; `slope` is that of `act` below zero.

    Args:
        x: Images.
        weight: (b, a, 4, 4) for stride 2, (b, a, 3, 3) for stride 1; the padding is 1.
        bias: (b,) or None.
        stride: 1 or 2.
        slope: 0 is ReLU, 1 no activation.
    """
    image = x.permute(0, 2, 3, 1).to(PRECISION)
    return _apply(_Convolve, image, weight, bias, stride, slope).permute(0, 3, 1, 2)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def upsample(x: Tensor, weight: Tensor, bias: Tensor | None, slope: float) -> Tensor:
    """Return `act(conv_transpose(x) + bias)`, (n, a, h, w) -> (n, b, 2 h, 2 w), in bf16; the weight is (a, b, 4, 4)."""
    image = x.permute(0, 2, 3, 1).to(PRECISION)
    size = 2 * image.shape[1], 2 * image.shape[2]
    return _apply(_Upsample, image, weight, bias, *size, slope).permute(0, 3, 1, 2)


# Derivatives ----------------------------------------------------------------------------------------------------------
# A convolution, the transposed one and the gradient of the weight are the derivatives of one trilinear form. So each of
# the three operators has the two others as derivatives. Images are (lanes?, n, height, width, channels) from here on.


class _Convolve(torch.autograd.Function):
    """(n, H, W, a) -> (n, h, w, b)."""

    @staticmethod
    def forward(image: Tensor, weight: Tensor, bias: Tensor | None, stride: int, slope: float) -> Tensor:
        return ops.run_convolve(image, weight, bias, stride, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, weight, bias, ctx.stride, ctx.slope = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(image, weight, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, weight, out = ctx.saved_tensors
        gradient = _before_activation(gradient, out, ctx.slope)
        d_image = _image_gradient(gradient, weight, ctx.stride, image.shape)
        d_weight = _apply(_WeightGradient, image, gradient, weight.shape[-1], ctx.stride)
        return d_image, d_weight, _bias_gradient(gradient) if ctx.has_bias else None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_Convolve, *_lanes_first(info, in_dims, args)), 0


class _Upsample(torch.autograd.Function):
    """(n, h, w, a) -> (n, height, width, b); the weight is (a, b, 4, 4)."""

    @staticmethod
    def forward(image: Tensor, weight: Tensor, bias: Tensor | None, height: int, width: int, slope: float) -> Tensor:
        return ops.run_upsample(image, weight, bias, height, width, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, weight, bias, _, _, ctx.slope = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(image, weight, output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, weight, out = ctx.saved_tensors
        gradient = _before_activation(gradient, out, ctx.slope)
        d_image = _apply(_Convolve, gradient, weight, None, 2, 1.0)
        d_weight = _apply(_WeightGradient, gradient, image, 4, 2)
        return d_image, d_weight, _bias_gradient(gradient) if ctx.has_bias else None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_Upsample, *_lanes_first(info, in_dims, args)), 0


class _WeightGradient(torch.autograd.Function):
    """(n, H, W, a) and (n, h, w, b) -> (b, a, side, side)."""

    @staticmethod
    def forward(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
        return ops.run_weight_gradient(image, gradient, side, stride)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, gradient, _, ctx.stride = inputs
        ctx.save_for_backward(image, gradient)

    @staticmethod
    def backward(ctx: Any, d_weight: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, gradient = ctx.saved_tensors
        d_image = _image_gradient(gradient, d_weight, ctx.stride, image.shape)
        return d_image, _apply(_Convolve, image, d_weight, None, ctx.stride, 1.0), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_WeightGradient, *_lanes_first(info, in_dims, args)), 0


class _Gate(torch.autograd.Function):
    """Gradient before an activation, from that after it and the results, (n, h, w, b)."""

    @staticmethod
    def forward(gradient: Tensor, out: Tensor, slope: float) -> Tensor:
        return ops.gate_lanes(gradient, out, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, out, ctx.slope = inputs
        ctx.save_for_backward(out)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        return _apply(_Gate, gradient, *ctx.saved_tensors, ctx.slope), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_Gate, *_lanes_first(info, in_dims, args)), 0


def _apply(function: Any, *args: Any) -> Any:
    """Apply a `torch.autograd.Function`, which has no types."""
    return function.apply(*args)


def _lanes_first(info: Any, in_dims: tuple[Any, ...], args: tuple[Any, ...]) -> list[Any]:
    """Return the arguments with the lanes as first axis of every tensor."""
    return [
        (arg.expand(info.batch_size, *arg.shape) if axis is None else arg.movedim(axis, 0))
        if isinstance(arg, Tensor)
        else arg
        for arg, axis in zip(args, in_dims, strict=True)
    ]


def _before_activation(gradient: Tensor, out: Tensor, slope: float) -> Any:
    """Return the gradient with respect to what the activation was applied to."""
    return gradient if slope == 1 else _apply(_Gate, gradient, out, slope)


def _bias_gradient(gradient: Tensor) -> Tensor:
    return gradient.sum((-4, -3, -2), dtype=torch.float32)


def _image_gradient(gradient: Tensor, weight: Tensor, stride: int, shape: torch.Size) -> Any:
    """Return the gradient of a convolution with respect to its image, (n, h, w, b) -> (n, H, W, a)."""
    if stride == 2:
        return _apply(_Upsample, gradient, weight, None, shape[-3], shape[-2], 1.0)
    return _apply(_Convolve, gradient, weight.flip(-1, -2).transpose(-3, -4), None, 1, 1.0)
