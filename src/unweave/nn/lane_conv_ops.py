"""Operators of `lane_conv`: matrices of weights by torch, kernels by Triton, and the sizes of their blocks.

torch makes the matrices, so that the compiler can join that with other operations. It does not look into the kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.library import custom_op

TARGET_PROGRAMS = 528  # of a kernel, to fill the device: four for each of the 132 multiprocessors of an H200
STAGES = 3  # blocks that are loaded while others are multiplied
MAX_WARP_BLOCK = 2**13  # numbers of a result block for four warps; larger ones need eight, for their registers
MIN_PART_ROWS = 256  # pixels that a program sums at least, when a gradient is split over programs


def run_convolve(
    image: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None, stride: int, slope: float
) -> Tensor:
    """Convolve images of every lane, (lanes?, n, H, W, a) -> (lanes?, n, h, w, b); a gate has the result's shape."""
    matrix = weight.movedim((-4, -3), (-1, -2)).flatten(-4, -2)  # (side side a, b)
    matrix, side = matrix.to(image.dtype).contiguous(), weight.shape[-1]
    return convolve_lanes(image.contiguous(), matrix, bias, _contiguous(gate), side, stride, slope)


def run_upsample(
    image: Tensor, weight: Tensor, bias: Tensor | None, gate: Tensor | None, height: int, width: int, slope: float
) -> Tensor:
    """Apply the transposed convolution of every lane, (lanes?, n, h, w, a) -> (lanes?, n, height, width, b)."""
    a, b = weight.shape[-4:-2]
    taps = weight.reshape(-1, a, b, 2, 2, 2, 2).flip(3, 5)  # a block depends on the pixels before it first
    matrix = taps.permute(0, 3, 5, 1, 4, 6, 2).reshape(*weight.shape[:-4], 4 * a, 4 * b).to(image.dtype)
    return upsample_lanes(image.contiguous(), matrix.contiguous(), bias, _contiguous(gate), height, width, slope)


def _contiguous(gate: Tensor | None) -> Tensor | None:
    return None if gate is None else gate.contiguous()


def run_weight_gradient(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
    """Return the gradient of the weight of every lane, (lanes?, b, a, side, side), in float32."""
    sums = weight_gradient_lanes(image.contiguous(), gradient.contiguous(), side, stride)
    shape = *image.shape[:-4], side, side, image.shape[-1], gradient.shape[-1]
    return sums.sum(0).reshape(shape).movedim((-1, -2), (-4, -3)).contiguous()


@custom_op("unweave::convolve_lanes", mutates_args=())
def convolve_lanes(
    image: torch.Tensor,
    matrix: torch.Tensor,
    bias: torch.Tensor | None,
    gate: torch.Tensor | None,
    side: int,
    stride: int,
    slope: float,
) -> torch.Tensor:
    """Launch `convolve_kernel`; the matrix is (lanes?, side side a, b)."""
    from unweave.nn.lane_conv_kernels import convolve_kernel

    out = _empty_convolved(image, matrix, bias, gate, side, stride, slope)
    (n, H, W, a), (h, w, b), lanes = image.shape[-4:], out.shape[-3:], _count_lanes(image)
    rows = n * h * w
    blocks = product_blocks(rows, b, side * side * a, lanes)
    convolve_kernel[(-(-rows // blocks.m), -(-b // blocks.n), lanes)](
        image, matrix, matrix if bias is None else bias.contiguous(), matrix if gate is None else gate, out,
        rows, H, W, h, w, A=a, B=b, SIDE=side, STRIDE=stride, SLOPE=slope,
        HAS_BIAS=bias is not None, HAS_GATE=gate is not None, **blocks.launch_settings(),
    )  # fmt: skip
    return out


@convolve_lanes.register_fake
def _empty_convolved(
    image: Tensor, matrix: Tensor, bias: Tensor | None, gate: Tensor | None, side: int, stride: int, slope: float
) -> Tensor:
    *first, H, W, _ = image.shape
    return image.new_empty(*first, H // stride, W // stride, matrix.shape[-1])


@custom_op("unweave::upsample_lanes", mutates_args=())
def upsample_lanes(
    image: torch.Tensor,
    matrix: torch.Tensor,
    bias: torch.Tensor | None,
    gate: torch.Tensor | None,
    height: int,
    width: int,
    slope: float,
) -> torch.Tensor:
    """Launch `upsample_kernel`; the matrix is (lanes?, 4 a, 4 b)."""
    from unweave.nn.lane_conv_kernels import upsample_kernel

    out = _empty_upsampled(image, matrix, bias, gate, height, width, slope)
    (n, h, w, a), b, lanes = image.shape[-4:], out.shape[-1], _count_lanes(image)
    rows = n * (h + 1) * (w + 1)
    blocks = product_blocks(rows, 4 * b, 4 * a, lanes)
    upsample_kernel[(-(-rows // blocks.m), -(-4 * b // blocks.n), lanes)](
        image, matrix, matrix if bias is None else bias.contiguous(), matrix if gate is None else gate, out,
        rows, height, width, h, w, A=a, B=b, SLOPE=slope,
        HAS_BIAS=bias is not None, HAS_GATE=gate is not None, **blocks.launch_settings(),
    )  # fmt: skip
    return out


@upsample_lanes.register_fake
def _empty_upsampled(
    image: Tensor, matrix: Tensor, bias: Tensor | None, gate: Tensor | None, height: int, width: int, slope: float
) -> Tensor:
    return image.new_empty(*image.shape[:-3], height, width, matrix.shape[-1] // 4)


@custom_op("unweave::weight_gradient_lanes", mutates_args=())
def weight_gradient_lanes(image: torch.Tensor, gradient: torch.Tensor, side: int, stride: int) -> torch.Tensor:
    """Launch `weight_gradient_kernel`; return sums over parts of the pixels, (parts, lanes, side side a, b)."""
    from unweave.nn.lane_conv_kernels import weight_gradient_kernel

    out = _empty_sums(image, gradient, side, stride)
    (_, H, W, a), (n, h, w, b), lanes = image.shape[-4:], gradient.shape[-4:], _count_lanes(image)
    blocks = gradient_blocks(side * side * a, b)
    weight_gradient_kernel[(blocks.count_tiles(side * side * a, b), len(out), lanes)](
        image, gradient, out, n * h * w, H, W, h, w, lanes,
        A=a, B=b, SIDE=side, STRIDE=stride, PART=_part_rows(image, gradient, side), **blocks.launch_settings(),
    )  # fmt: skip
    return out


@weight_gradient_lanes.register_fake
def _empty_sums(image: Tensor, gradient: Tensor, side: int, stride: int) -> Tensor:
    n, h, w, b = gradient.shape[-4:]
    parts = -(-n * h * w // _part_rows(image, gradient, side))
    shape = parts, _count_lanes(image), side * side * image.shape[-1], b
    return image.new_empty(shape, dtype=torch.float32)


@custom_op("unweave::gate_lanes", mutates_args=())
def gate_lanes(gradient: torch.Tensor, out: torch.Tensor, slope: float) -> torch.Tensor:
    """Return the gradient before an activation whose results are `out`; once for all that read it."""
    return torch.ops.aten.leaky_relu_backward(gradient.contiguous(), out, slope, True)


@gate_lanes.register_fake
def _empty_gated(gradient: Tensor, out: Tensor, slope: float) -> Tensor:
    return torch.empty_like(out)


# Sizes of blocks ------------------------------------------------------------------------------------------------------


class Blocks(NamedTuple):
    """Sides of the blocks of a kernel's products: rows, columns and the inner axis; and how it is launched."""

    m: int
    n: int
    k: int
    warps: int
    stages: int
    """Blocks that are loaded while others are multiplied."""

    def launch_settings(self) -> dict[str, Any]:
        """Return the arguments of a launch."""
        sides = {"BLOCK_M": self.m, "BLOCK_N": self.n, "BLOCK_K": self.k}
        return sides | {"num_warps": self.warps, "num_stages": self.stages}

    def count_tiles(self, inner: int, columns: int) -> int:
        """Return the number of blocks of a weight's gradient."""
        return -(-inner // self.k) * -(-columns // self.n)


def product_blocks(rows: int, columns: int, inner: int, lanes: int) -> Blocks:
    """Return the blocks of `convolve_kernel` and `upsample_kernel`, smaller where large ones leave processors idle.

    The best ones of `benchmarks/lane_conv.py --variants` on an H200.
    """
    if columns <= 16:  # the last layer of a decoder
        return Blocks(64, 16, 16, 4, STAGES)
    if inner <= 16:  # the first layer of an encoder, one channel
        return Blocks(256, 16, 16, 4, STAGES)
    n = _power_of_two(columns, 128)
    programs = -(-rows // 128) * -(-columns // n) * lanes
    if n == 128 and programs < 2 * TARGET_PROGRAMS:
        return Blocks(64, n, _power_of_two(inner, 32), 4, STAGES)
    m = 128 if programs >= TARGET_PROGRAMS // 2 else 64
    return Blocks(m, n, _power_of_two(inner, 64), _count_warps(m * n), STAGES)


def gradient_blocks(inner: int, columns: int) -> Blocks:
    """Return the blocks of `weight_gradient_kernel`, whose sums run over rows."""
    n, k = _power_of_two(columns, 64), _power_of_two(inner, 128)
    m = 128 if inner <= 16 else 64 if columns <= 32 else 32
    return Blocks(m, n, k, _count_warps(k * n), STAGES)


def _part_rows(image: Tensor, gradient: Tensor, side: int) -> int:
    """Return the pixels that a program sums for a weight's gradient, a multiple of a block's rows."""
    (n, h, w, b), inner = gradient.shape[-4:], side * side * image.shape[-1]
    blocks = gradient_blocks(inner, b)
    programs = blocks.count_tiles(inner, b) * _count_lanes(image)
    parts = max(1, min(TARGET_PROGRAMS // programs, n * h * w // MIN_PART_ROWS))
    return -(-n * h * w // (blocks.m * parts)) * blocks.m


def _count_lanes(image: Tensor) -> int:
    return image.shape[0] if image.ndim == 5 else 1


def _power_of_two(size: int, largest: int) -> int:
    """Return the side of a block: a power of two from 16, the least of a product, to `largest`."""
    return max(16, min(largest, 1 << (size - 1).bit_length()))


def _count_warps(results: int) -> int:
    """Return the warps for a block of so many results."""
    return 4 if results <= MAX_WARP_BLOCK else 8
