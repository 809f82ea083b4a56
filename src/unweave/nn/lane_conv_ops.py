"""Operators of `lane_conv`: matrices of weights by torch, kernels by Triton, and the sizes of their blocks.

torch makes the matrices, so that the compiler can join that with other operations. It does not look into the kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import custom_op

TARGET_PROGRAMS = 528  # of a kernel, to fill the device: four for each of the 132 multiprocessors of an H200
STAGES = 3  # blocks that are loaded while others are multiplied
MAX_WARP_BLOCK = 2**13  # numbers of a result block for four warps; larger ones need eight, for their registers
GRADIENT_ROWS = 64  # pixels of a block, when the gradient of a weight is summed over pixels
MIN_PART_ROWS = 256  # pixels that a program sums at least, when a gradient is split over programs


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


@custom_op("unweave::gate_lanes", mutates_args=())
def gate_lanes(gradient: torch.Tensor, out: torch.Tensor, slope: float) -> torch.Tensor:
    """Return the gradient before an activation whose results are `out`; once for all that read it."""
    return torch.ops.aten.leaky_relu_backward(gradient.contiguous(), out, slope, True)


@gate_lanes.register_fake
def _empty_gated(gradient: Tensor, out: Tensor, slope: float) -> Tensor:
    return torch.empty_like(out)


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
