"""Convolutions of stacks of models on a GPU: convolution, bias and activation of all models in one Triton kernel.

`convolve` and `upsample` are written for one model. `vmap` maps them over the lanes of a stack, and they can be
differentiated any number of times. Images between two layers stay in one layout, channels last, so nothing is copied.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor
from torch.library import triton_op, wrap_triton

PRECISION = torch.bfloat16  # of images and products; sums are in float32
TARGET_PROGRAMS = 528  # of a kernel, to fill the device: four for each of the 132 multiprocessors of an H200
STAGES = 3  # blocks that are loaded while others are multiplied
MAX_WARP_BLOCK = 2**13  # numbers of a result block for four warps; larger ones need eight, for their registers
MIN_PARTS_ROWS = 256  # pixels that a program sums at least, when a gradient is split over programs


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
        return convolve_lanes(image, weight, bias, stride, slope)

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
        return upsample_lanes(image, weight, bias, height, width, slope)

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
        return weight_gradient_lanes(image, gradient, side, stride)

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


def _before_activation(gradient: Tensor, out: Tensor, slope: float) -> Tensor:
    """Return the gradient with respect to what the activation was applied to."""
    return gradient if slope == 1 else torch.where(out > 0, gradient, slope * gradient)


def _bias_gradient(gradient: Tensor) -> Tensor:
    return gradient.sum((-4, -3, -2), dtype=torch.float32)


def _image_gradient(gradient: Tensor, weight: Tensor, stride: int, shape: torch.Size) -> Any:
    """Return the gradient of a convolution with respect to its image, (n, h, w, b) -> (n, H, W, a)."""
    if stride == 2:
        return _apply(_Upsample, gradient, weight, None, shape[-3], shape[-2], 1.0)
    return _apply(_Convolve, gradient, weight.flip(-1, -2).transpose(-3, -4), None, 1, 1.0)


# Operators ------------------------------------------------------------------------------------------------------------


@triton_op("unweave::convolve_lanes", mutates_args={})
def convolve_lanes(
    image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: int, slope: float
) -> torch.Tensor:
    """Convolve images of every lane, (lanes?, n, H, W, a) -> (lanes?, n, h, w, b)."""
    return run_convolve(image, weight, bias, stride, slope)


@triton_op("unweave::upsample_lanes", mutates_args={})
def upsample_lanes(
    image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, height: int, width: int, slope: float
) -> torch.Tensor:
    """Apply the transposed convolution of every lane, (lanes?, n, h, w, a) -> (lanes?, n, height, width, b)."""
    return run_upsample(image, weight, bias, height, width, slope)


@triton_op("unweave::weight_gradient_lanes", mutates_args={})
def weight_gradient_lanes(image: torch.Tensor, gradient: torch.Tensor, side: int, stride: int) -> torch.Tensor:
    """Return the gradient of the weight of every lane, (lanes?, b, a, side, side), in float32."""
    return run_weight_gradient(image, gradient, side, stride)


def run_convolve(image: Tensor, weight: Tensor, bias: Tensor | None, stride: int, slope: float) -> Tensor:
    """Launch the kernel of `convolve_lanes`."""
    from unweave.nn.lane_conv_kernels import convolve_kernel

    *lane_axes, n, H, W, a = image.shape
    lanes, (b, side) = _count(lane_axes), (weight.shape[-4], weight.shape[-1])
    h, w = H // stride, W // stride
    matrix = weight.reshape(lanes, b, a, side, side).permute(0, 3, 4, 2, 1).to(image.dtype).contiguous()
    out = image.new_empty(*lane_axes, n, h, w, b)
    rows = n * h * w
    block_m, block_n = _blocks(rows, b, lanes)
    grid = -(-rows // block_m), -(-b // block_n), lanes
    wrap_triton(convolve_kernel)[grid](
        image.contiguous(), matrix, matrix if bias is None else bias.contiguous(), out, rows, H, W, h, w,
        A=a, B=b, SIDE=side, STRIDE=stride, SLOPE=slope, HAS_BIAS=bias is not None,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=_power_of_two(side * side * a, 64), **_launch(block_m, block_n, a),
    )  # fmt: skip
    return out


def run_upsample(image: Tensor, weight: Tensor, bias: Tensor | None, height: int, width: int, slope: float) -> Tensor:
    """Launch the kernel of `upsample_lanes`."""
    from unweave.nn.lane_conv_kernels import upsample_kernel

    *lane_axes, n, h, w, a = image.shape
    lanes, b = _count(lane_axes), weight.shape[-3]
    taps = weight.reshape(lanes, a, b, 2, 2, 2, 2).flip(3, 5)  # a block depends on the pixels before it first
    matrix = taps.permute(0, 3, 5, 1, 4, 6, 2).to(image.dtype).contiguous()
    out = image.new_empty(*lane_axes, n, height, width, b)
    rows = n * (h + 1) * (w + 1)
    block_m, block_n = _blocks(rows, 4 * b, lanes)
    grid = -(-rows // block_m), -(-4 * b // block_n), lanes
    wrap_triton(upsample_kernel)[grid](
        image.contiguous(), matrix, matrix if bias is None else bias.contiguous(), out, rows, height, width, h, w,
        A=a, B=b, SLOPE=slope, HAS_BIAS=bias is not None,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=_power_of_two(4 * a, 64), **_launch(block_m, block_n, a),
    )  # fmt: skip
    return out


def run_weight_gradient(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
    """Launch the kernel of `weight_gradient_lanes`, which sums over parts of the pixels, and sum over the parts."""
    from unweave.nn.lane_conv_kernels import weight_gradient_kernel

    *lane_axes, n, H, W, a = image.shape
    (h, w, b), lanes = gradient.shape[-3:], _count(lane_axes)
    rows, columns = n * h * w, side * side * a
    block_k, block_n = _power_of_two(columns, 128), _power_of_two(b, 64)
    tiles = -(-columns // block_k) * -(-b // block_n)
    parts = max(1, min(TARGET_PROGRAMS // (tiles * lanes), rows // MIN_PARTS_ROWS))
    part = -(-rows // (64 * parts)) * 64
    parts = -(-rows // part)
    sums = image.new_empty((parts, lanes, columns, b), dtype=torch.float32)
    wrap_triton(weight_gradient_kernel)[(tiles, parts, lanes)](
        image.contiguous(), gradient.contiguous(), sums, rows, H, W, h, w, lanes,
        A=a, B=b, SIDE=side, STRIDE=stride, PART=part, BLOCK_M=64, BLOCK_N=block_n, BLOCK_K=block_k,
        **_launch(block_k, block_n, a),
    )  # fmt: skip
    total = sums.sum(0).reshape(*lane_axes, side, side, a, b)
    return total.movedim((-1, -2), (-4, -3)).contiguous()


def _count(lane_axes: list[int]) -> int:
    return lane_axes[0] if lane_axes else 1


def _power_of_two(size: int, largest: int) -> int:
    """Return the size of a block: a power of two from 16, the least of a product, to `largest`."""
    return max(16, min(largest, 1 << (size - 1).bit_length()))


def _blocks(rows: int, columns: int, lanes: int) -> tuple[int, int]:
    """Return the sides of the blocks of a product, smaller ones where large ones would not fill the device."""
    block_n = _power_of_two(columns, 128)
    column_blocks = -(-columns // block_n)
    is_filled = -(-rows // 128) * column_blocks * lanes >= TARGET_PROGRAMS // 2
    return 128 if is_filled else 64, block_n


def _launch(height: int, width: int, channels: int) -> dict[str, int]:
    """Return how to launch a kernel whose programs compute blocks of height x width from images with `channels`."""
    is_small = height * width <= MAX_WARP_BLOCK and channels % 8 == 0  # fewer channels are loaded one by one
    return {"num_warps": 4 if is_small else 8, "num_stages": STAGES}
