"""Triton kernels of convolutions for stacks of models; images are (lanes, n, height, width, channels), contiguous.

Every kernel is a matrix product whose left or right operand is gathered from the image while it is loaded. A row of a
square window is a run of `SIDE * channels` consecutive numbers, so the inner axis is (row, column, channel). Columns
are `k // A % SIDE`, not `k % (SIDE * A) // A`: only then does the compiler see that 16 bytes can be moved at once.
"""

from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
from triton import language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def convolve_kernel(
    image: tl.tensor, weight: tl.tensor, bias: tl.tensor, gate: tl.tensor, out: tl.tensor, pixels: tl.tensor,
    H: tl.tensor, W: tl.tensor, h: tl.tensor, w: tl.tensor,
    A: tl.constexpr, B: tl.constexpr, SIDE: tl.constexpr, STRIDE: tl.constexpr, SLOPE: tl.constexpr,
    HAS_BIAS: tl.constexpr, HAS_GATE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    """Compute `act(windows @ weight + bias)`, (n, H, W, A) -> (n, h, w, B) for every lane; pixels = n h w.

    The weight is (lanes, SIDE * SIDE * A, B), the padding 1. With a gate, which has the size of the result, the result
    is multiplied by SLOPE where the gate is not positive.
    """
    lane = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    b = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row, column = STRIDE * ((m // w) % h) - 1, STRIDE * (m % w) - 1
    image += lane * (pixels // (h * w)) * H * W * A
    weight += lane * SIDE * SIDE * A * B
    start = ((m // (w * h)) * H * W + row * W + column) * A
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, SIDE * SIDE * A, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        down, run = k // (SIDE * A), k % (SIDE * A)
        y, x = row[:, None] + down[None, :], column[:, None] + (k // A % SIDE)[None, :]
        is_inside = (m < pixels)[:, None] & (k < SIDE * SIDE * A)[None, :] & (y >= 0) & (y < H) & (x >= 0) & (x < W)
        windows = tl.load(image + start[:, None] + (down * W * A + run)[None, :], mask=is_inside, other=0.0)
        is_weight = (k < SIDE * SIDE * A)[:, None] & (b < B)[None, :]
        total = tl.dot(windows, tl.load(weight + k[:, None] * B + b[None, :], mask=is_weight, other=0.0), total)
    if HAS_BIAS:
        total += tl.load(bias + lane * B + b, mask=b < B, other=0.0)[None, :]
    is_result = (m < pixels)[:, None] & (b < B)[None, :]
    place = lane * pixels * B + m[:, None] * B + b[None, :]
    if HAS_GATE:
        total = tl.where(tl.load(gate + place, mask=is_result, other=0.0) > 0, total, SLOPE * total)
    elif SLOPE != 1.0:
        total = tl.where(total > 0, total, SLOPE * total)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=is_result)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def upsample_kernel(
    image: tl.tensor, weight: tl.tensor, bias: tl.tensor, gate: tl.tensor, out: tl.tensor, blocks: tl.tensor,
    H: tl.tensor, W: tl.tensor, h: tl.tensor, w: tl.tensor,
    A: tl.constexpr, B: tl.constexpr, SLOPE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_GATE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    """Compute a transposed 4 x 4 convolution of stride 2, (n, h, w, A) -> (n, H, W, B) for every lane.

    Block (i, j) of 2 x 2 pixels of the result, which starts at row 2 i - 1, depends on the pixels (i - 1, j - 1) to
    (i, j) of the image. The weight is (lanes, 4 A, 4 B): those pixels and channels, by the pixels of the block and
    channels. blocks = n (h + 1) (w + 1).
    """
    lane = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    b = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    i, j, image_index = (m // (w + 1)) % (h + 1), m % (w + 1), m // ((w + 1) * (h + 1))
    count = (blocks // ((h + 1) * (w + 1))).to(tl.int64)
    image += lane * count * h * w * A
    weight += lane * 16 * A * B
    start = (image_index * h * w + (i - 1) * w + j - 1) * A
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, 4 * A, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        down, run = k // (2 * A), k % (2 * A)
        y, x = (i - 1)[:, None] + down[None, :], (j - 1)[:, None] + (k // A % 2)[None, :]
        is_inside = (m < blocks)[:, None] & (k < 4 * A)[None, :] & (y >= 0) & (y < h) & (x >= 0) & (x < w)
        windows = tl.load(image + start[:, None] + (down * w * A + run)[None, :], mask=is_inside, other=0.0)
        is_weight = (k < 4 * A)[:, None] & (b < 4 * B)[None, :]
        total = tl.dot(windows, tl.load(weight + k[:, None] * 4 * B + b[None, :], mask=is_weight, other=0.0), total)
    if HAS_BIAS:
        total += tl.load(bias + lane * B + b % B, mask=b < 4 * B, other=0.0)[None, :]
    down, run = b // (2 * B), b % (2 * B)
    y, x = (2 * i - 1)[:, None] + down[None, :], (2 * j - 1)[:, None] + (b // B % 2)[None, :]
    is_result = (m < blocks)[:, None] & (b < 4 * B)[None, :] & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    first_pixel = (image_index * H * W + (2 * i - 1) * W + 2 * j - 1) * B
    place = lane * count * H * W * B + first_pixel[:, None] + (down * W * B + run)[None, :]
    if HAS_GATE:
        total = tl.where(tl.load(gate + place, mask=is_result, other=0.0) > 0, total, SLOPE * total)
    elif SLOPE != 1.0:
        total = tl.where(total > 0, total, SLOPE * total)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=is_result)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def weight_gradient_kernel(
    image: tl.tensor, gradient: tl.tensor, out: tl.tensor, pixels: tl.tensor,
    H: tl.tensor, W: tl.tensor, h: tl.tensor, w: tl.tensor, lanes: tl.tensor,
    A: tl.constexpr, B: tl.constexpr, SIDE: tl.constexpr, STRIDE: tl.constexpr,
    PART: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    """Compute `windows.T @ gradient` of (n, H, W, A) and (n, h, w, B) over parts of the pixels, for every lane.

    The result is (parts, lanes, SIDE * SIDE * A, B) in float32. A part has PART pixels, a multiple of BLOCK_M.
    """
    column_blocks = tl.cdiv(B, BLOCK_N)
    k = tl.program_id(0) // column_blocks * BLOCK_K + tl.arange(0, BLOCK_K)
    b = tl.program_id(0) % column_blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    lane = tl.program_id(2).to(tl.int64)
    image += lane * (pixels // (h * w)) * H * W * A
    gradient += lane * pixels * B
    down, run = k // (SIDE * A), k % (SIDE * A)
    total = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    begin = tl.program_id(1) * PART
    for first in range(0, PART, BLOCK_M):
        m = begin + first + tl.arange(0, BLOCK_M)
        is_pixel = m < pixels
        row, column = STRIDE * ((m // w) % h) - 1, STRIDE * (m % w) - 1
        start = ((m // (w * h)) * H * W + row * W + column) * A
        y, x = row[None, :] + down[:, None], column[None, :] + (k // A % SIDE)[:, None]
        is_inside = is_pixel[None, :] & (k < SIDE * SIDE * A)[:, None] & (y >= 0) & (y < H) & (x >= 0) & (x < W)
        windows = tl.load(image + start[None, :] + (down * W * A + run)[:, None], mask=is_inside, other=0.0)
        is_gradient = is_pixel[:, None] & (b < B)[None, :]
        total = tl.dot(windows, tl.load(gradient + m[:, None] * B + b[None, :], mask=is_gradient, other=0.0), total)
    out += (tl.program_id(1) * lanes + lane) * SIDE * SIDE * A * B
    is_result = (k < SIDE * SIDE * A)[:, None] & (b < B)[None, :]
    tl.store(out + k[:, None] * B + b[None, :], total, mask=is_result)
