"""Convolutions of stacks of models on a GPU: convolution, bias and activation of all models in one Triton kernel.

`convolve` and `upsample` are written for one model. `vmap` maps them over the lanes of a stack, and they can be
differentiated any number of times. Images between two layers stay in one layout, channels last, so nothing is copied.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

PRECISION = torch.bfloat16  # of images and products; sums are in float32
TARGET_PROGRAMS = 528  # of a kernel, to fill the device: four for each of the 132 multiprocessors of an H200
STAGES = 3  # blocks that are loaded while others are multiplied
MAX_WARP_BLOCK = 2**13  # numbers of a result block for four warps; larger ones need eight, for their registers
GRADIENT_ROWS = 64  # pixels of a block, when the gradient of a weight is summed over pixels
MIN_PART_ROWS = 256  # pixels that a program sums at least, when a gradient is split over programs


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
        return run_convolve(image, weight, bias, stride, slope)

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
        return run_upsample(image, weight, bias, height, width, slope)

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
        return run_weight_gradient(image, gradient, side, stride)

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
# torch makes matrices of the weights, so that the compiler can join that with other operations; it leaves kernels alone.


def run_convolve(image: Tensor, weight: Tensor, bias: Tensor | None, stride: int, slope: float) -> Tensor:
    """Convolve images of every lane, (lanes?, n, H, W, a) -> (lanes?, n, h, w, b)."""
    matrix = weight.movedim((-4, -3), (-1, -2)).flatten(-4, -2)  # (side side a, b)
    side = weight.shape[-1]
    return convolve_lanes(image.contiguous(), matrix.to(image.dtype).contiguous(), bias, side, stride, slope)


def run_upsample(image: Tensor, weight: Tensor, bias: Tensor | None, height: int, width: int, slope: float) -> Tensor:
    """Apply the transposed convolution of every lane, (lanes?, n, h, w, a) -> (lanes?, n, height, width, b)."""
    a, b = weight.shape[-4:-2]
    taps = weight.reshape(-1, a, b, 2, 2, 2, 2).flip(3, 5)  # a block depends on the pixels before it first
    matrix = taps.permute(0, 3, 5, 1, 4, 6, 2).reshape(*weight.shape[:-4], 4 * a, 4 * b).to(image.dtype)
    return upsample_lanes(image.contiguous(), matrix.contiguous(), bias, height, width, slope)


def run_weight_gradient(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
    """Return the gradient of the weight of every lane, (lanes?, b, a, side, side), in float32."""
    sums = weight_gradient_lanes(image.contiguous(), gradient.contiguous(), side, stride)
    shape = *image.shape[:-4], side, side, image.shape[-1], gradient.shape[-1]
    return sums.sum(0).reshape(shape).movedim((-1, -2), (-4, -3)).contiguous()


@custom_op("unweave::convolve_lanes", mutates_args=())
def convolve_lanes(
    image: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None, side: int, stride: int, slope: float
) -> torch.Tensor:
    """Launch `convolve_kernel`; the matrix is (lanes?, side side a, b)."""
    from unweave.nn.lane_conv_kernels import convolve_kernel

    out = _empty_convolved(image, matrix, bias, side, stride, slope)
    (n, H, W, a), (h, w, b), lanes = image.shape[-4:], out.shape[-3:], _count_lanes(image)
    rows = n * h * w
    block_m, block_n = _blocks(rows, b, lanes)
    convolve_kernel[(-(-rows // block_m), -(-b // block_n), lanes)](
        image, matrix, matrix if bias is None else bias.contiguous(), out, rows, H, W, h, w,
        A=a, B=b, SIDE=side, STRIDE=stride, SLOPE=slope, HAS_BIAS=bias is not None,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=_power_of_two(side * side * a, 64), **_launch(block_m, block_n, a),
    )  # fmt: skip
    return out


@convolve_lanes.register_fake
def _empty_convolved(
    image: Tensor, matrix: Tensor, bias: Tensor | None, side: int, stride: int, slope: float
) -> Tensor:
    *first, H, W, _ = image.shape
    return image.new_empty(*first, H // stride, W // stride, matrix.shape[-1])


@custom_op("unweave::upsample_lanes", mutates_args=())
def upsample_lanes(
    image: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None, height: int, width: int, slope: float
) -> torch.Tensor:
    """Launch `upsample_kernel`; the matrix is (lanes?, 4 a, 4 b)."""
    from unweave.nn.lane_conv_kernels import upsample_kernel

    out = _empty_upsampled(image, matrix, bias, height, width, slope)
    (n, h, w, a), b, lanes = image.shape[-4:], out.shape[-1], _count_lanes(image)
    rows = n * (h + 1) * (w + 1)
    block_m, block_n = _blocks(rows, 4 * b, lanes)
    upsample_kernel[(-(-rows // block_m), -(-4 * b // block_n), lanes)](
        image, matrix, matrix if bias is None else bias.contiguous(), out, rows, height, width, h, w,
        A=a, B=b, SLOPE=slope, HAS_BIAS=bias is not None,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=_power_of_two(4 * a, 64), **_launch(block_m, block_n, a),
    )  # fmt: skip
    return out


@upsample_lanes.register_fake
def _empty_upsampled(
    image: Tensor, matrix: Tensor, bias: Tensor | None, height: int, width: int, slope: float
) -> Tensor:
    return image.new_empty(*image.shape[:-3], height, width, matrix.shape[-1] // 4)


@custom_op("unweave::weight_gradient_lanes", mutates_args=())
def weight_gradient_lanes(image: torch.Tensor, gradient: torch.Tensor, side: int, stride: int) -> torch.Tensor:
    """Launch `weight_gradient_kernel`; return sums over parts of the pixels, (parts, lanes, side side a, b)."""
    from unweave.nn.lane_conv_kernels import weight_gradient_kernel

    out = _empty_sums(image, gradient, side, stride)
    (_, H, W, a), (n, h, w, b), lanes = image.shape[-4:], gradient.shape[-4:], _count_lanes(image)
    block_k, block_n, part = _gradient_blocks(image, gradient, side)
    tiles = -(-side * side * a // block_k) * -(-b // block_n)
    weight_gradient_kernel[(tiles, len(out), lanes)](
        image, gradient, out, n * h * w, H, W, h, w, lanes,
        A=a, B=b, SIDE=side, STRIDE=stride, PART=part, BLOCK_M=GRADIENT_ROWS, BLOCK_N=block_n, BLOCK_K=block_k,
        **_launch(block_k, block_n, a),
    )  # fmt: skip
    return out


@weight_gradient_lanes.register_fake
def _empty_sums(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
    (n, h, w, b), part = gradient.shape[-4:], _gradient_blocks(image, gradient, side)[2]
    shape = -(-n * h * w // part), _count_lanes(image), side * side * image.shape[-1], b
    return image.new_empty(shape, dtype=torch.float32)


# Sizes of blocks ------------------------------------------------------------------------------------------------------


def _count_lanes(image: Tensor) -> int:
    return image.shape[0] if image.ndim == 5 else 1


def _power_of_two(size: int, largest: int) -> int:
    """Return the size of a block: a power of two from 16, the least of a product, to `largest`."""
    return max(16, min(largest, 1 << (size - 1).bit_length()))


def _blocks(rows: int, columns: int, lanes: int) -> tuple[int, int]:
    """Return the sides of the blocks of a product, smaller ones where large ones would not fill the device."""
    block_n = _power_of_two(columns, 128)
    column_blocks = -(-columns // block_n)
    is_filled = -(-rows // 128) * column_blocks * lanes >= TARGET_PROGRAMS // 2
    return 128 if is_filled else 64, block_n


def _gradient_blocks(image: Tensor, gradient: Tensor, side: int) -> tuple[int, int, int]:
    """Return the sides of the blocks of a weight's gradient, and the pixels that a program sums over."""
    (n, h, w, b), columns = gradient.shape[-4:], side * side * image.shape[-1]
    block_k, block_n = _power_of_two(columns, 128), _power_of_two(b, 64)
    programs = -(-columns // block_k) * -(-b // block_n) * _count_lanes(image)
    parts = max(1, min(TARGET_PROGRAMS // programs, n * h * w // MIN_PART_ROWS))
    return block_k, block_n, -(-n * h * w // (GRADIENT_ROWS * parts)) * GRADIENT_ROWS


def _launch(height: int, width: int, channels: int) -> dict[str, int]:
    """Return how to launch a kernel whose programs compute blocks of height x width from images with `channels`."""
    is_small = height * width <= MAX_WARP_BLOCK and channels % 8 == 0  # fewer channels are loaded one by one
    return {"num_warps": 4 if is_small else 8, "num_stages": STAGES}
