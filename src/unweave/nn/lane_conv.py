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
def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int,
    slope: float,
    input_slope: float = 1.0,
    defers_slope: bool = False,
) -> Tensor:
    """Return `act(conv(x) + bias)`, (n, a, h, w) -> (n, b, ...), in bf16; `slope` is that of `act` below zero.

    Args:
        x: Images.
        weight: (b, a, 4, 4) for stride 2, (b, a, 3, 3) for stride 1; the padding is 1.
        bias: (b,) or None.
        stride: 1 or 2.
        slope: 0 is ReLU, 1 no activation.
        input_slope: Slope of the activation that produced `x`. The gradient returned for `x` includes its derivative.
            Nothing else may read `x`.
        defers_slope: Whether the next layer applies the derivative of `act`, so that this one must not.
    """
    image = x.permute(0, 2, 3, 1).to(PRECISION)
    return _apply(_Convolve, image, weight, bias, None, stride, slope, input_slope, defers_slope).permute(0, 3, 1, 2)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def upsample(
    x: Tensor, weight: Tensor, bias: Tensor | None, slope: float, input_slope: float = 1.0, defers_slope: bool = False
) -> Tensor:
    """Return `act(conv_transpose(x) + bias)`, (n, a, h, w) -> (n, b, 2 h, 2 w), in bf16; the weight is (a, b, 4, 4).

    Arguments as in `convolve`.
    """
    image = x.permute(0, 2, 3, 1).to(PRECISION)
    size = 2 * image.shape[1], 2 * image.shape[2]
    return _apply(_Upsample, image, weight, bias, None, size, slope, input_slope, defers_slope).permute(0, 3, 1, 2)


# Derivatives ----------------------------------------------------------------------------------------------------------
# A convolution, the transposed one and the gradient of the weight are the derivatives of one trilinear form. So each of
# the three operators has the two others as derivatives. Images are (lanes?, n, height, width, channels) from here on.
#
# Between two layers, the gradient of an image is computed by the later one and multiplied by the derivative of the
# activation of the earlier one. A kernel does both: its `gate` is the image, whose signs are those of the activation.


class _Convolve(torch.autograd.Function):
    """(n, H, W, a) -> (n, h, w, b); with a gate, (n, h, w, b), the result is multiplied by `slope` where it is <= 0."""

    @staticmethod
    def forward(
        image: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None,
        stride: int, slope: float, input_slope: float, defers_slope: bool,
    ) -> Tensor:  # fmt: skip
        return ops.run_convolve(image, weight, bias, gate, stride, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, weight, bias, gate, ctx.stride, ctx.slope, ctx.input_slope, ctx.defers_slope = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(image, weight, output if gate is None else gate)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, weight, signs = ctx.saved_tensors
        gradient = _before_activation(ctx, gradient, signs)
        gate = None if ctx.input_slope == 1 else image
        d_image = _image_gradient(gradient, weight, gate, ctx.stride, image.shape, ctx.input_slope)
        d_weight = _apply(_WeightGradient, image, gradient, weight.shape[-1], ctx.stride, ctx.input_slope, 1.0)
        return d_image, d_weight, _bias_gradient(gradient) if ctx.has_bias else None, None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_Convolve, *_lanes_first(info, in_dims, args)), 0


class _Upsample(torch.autograd.Function):
    """(n, h, w, a) -> (n, *size, b); the weight is (a, b, 4, 4), a gate as in `_Convolve`."""

    @staticmethod
    def forward(
        image: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None,
        size: tuple[int, int], slope: float, input_slope: float, defers_slope: bool,
    ) -> Tensor:  # fmt: skip
        return ops.run_upsample(image, weight, bias, gate, *size, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, weight, bias, gate, _, ctx.slope, ctx.input_slope, ctx.defers_slope = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(image, weight, output if gate is None else gate)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, weight, signs = ctx.saved_tensors
        gradient = _before_activation(ctx, gradient, signs)
        gate = None if ctx.input_slope == 1 else image
        d_image = _apply(_Convolve, gradient, weight, None, gate, 2, ctx.input_slope, 1.0, False)
        d_weight = _apply(_WeightGradient, gradient, image, 4, 2, 1.0, ctx.input_slope)
        return d_image, d_weight, _bias_gradient(gradient) if ctx.has_bias else None, None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        return _apply(_Upsample, *_lanes_first(info, in_dims, args)), 0


class _WeightGradient(torch.autograd.Function):
    """(n, H, W, a) and (n, h, w, b) -> (b, a, side, side); slopes of the activations that made the two, or 1."""

    @staticmethod
    def forward(
        image: Tensor, gradient: Tensor, side: int, stride: int, image_slope: float, gradient_slope: float
    ) -> Tensor:
        return ops.run_weight_gradient(image, gradient, side, stride)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        image, gradient, _, ctx.stride, ctx.image_slope, ctx.gradient_slope = inputs
        ctx.save_for_backward(image, gradient)

    @staticmethod
    def backward(ctx: Any, d_weight: Tensor) -> Any:  # type: ignore[override, unused-ignore]
        image, gradient = ctx.saved_tensors
        gates = (None if slope == 1 else x for slope, x in ((ctx.image_slope, image), (ctx.gradient_slope, gradient)))
        image_gate, gradient_gate = gates
        d_image = _image_gradient(gradient, d_weight, image_gate, ctx.stride, image.shape, ctx.image_slope)
        d_gradient = _apply(_Convolve, image, d_weight, None, gradient_gate, ctx.stride, ctx.gradient_slope, 1.0, False)
        return d_image, d_gradient, None, None, None, None

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


def _before_activation(ctx: Any, gradient: Tensor, signs: Tensor) -> Any:
    """Return the gradient with respect to what the activation, or the gate, was applied to."""
    return gradient if ctx.slope == 1 or ctx.defers_slope else _apply(_Gate, gradient, signs, ctx.slope)


def _bias_gradient(gradient: Tensor) -> Tensor:
    return gradient.sum((-4, -3, -2), dtype=torch.float32)


def _image_gradient(
    gradient: Tensor, weight: Tensor, gate: Tensor | None, stride: int, shape: torch.Size, slope: float
) -> Any:
    """Return the gradient of a convolution with respect to its image, (n, h, w, b) -> (n, H, W, a)."""
    if stride == 2:
        return _apply(_Upsample, gradient, weight, None, gate, tuple(shape[-3:-1]), slope, 1.0, False)
    turned = weight.flip(-1, -2).transpose(-3, -4)
    return _apply(_Convolve, gradient, turned, None, gate, 1, slope, 1.0, False)
