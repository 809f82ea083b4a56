"""Triton kernel of Adam for stacks of models: every number is read and written once."""

from __future__ import annotations

from collections.abc import Sequence

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
from torch import Tensor
from triton import language as tl

BLOCK = 1_024  # numbers that a program updates


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def adam_kernel(
    param: tl.tensor, grad: tl.tensor, first: tl.tensor, second: tl.tensor, step_size: tl.tensor, scale: tl.tensor,
    size: tl.tensor, rate1: tl.tensor, rate2: tl.tensor, eps: tl.tensor, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Update a parameter and its moments, (lanes, size) each; `step_size` is (lanes,), `scale` one number.

    The rates are 1 - beta_1 and 1 - beta_2, computed in double precision.
    """
    lane = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, is_inside = lane.to(tl.int64) * size + i, i < size
    g = tl.load(grad + place, mask=is_inside)
    m, v = tl.load(first + place, mask=is_inside), tl.load(second + place, mask=is_inside)
    p = tl.load(param + place, mask=is_inside)
    m += rate1 * (g - m)
    v += rate2 * (g * g - v)
    p -= tl.load(step_size + lane) * m / (tl.sqrt(v) * tl.load(scale) + eps)
    tl.store(first + place, m, mask=is_inside)
    tl.store(second + place, v, mask=is_inside)
    tl.store(param + place, p, mask=is_inside)


def launch_adam(
    P: Sequence[Tensor],
    G: Sequence[Tensor],
    M: Sequence[Tensor],
    V: Sequence[Tensor],
    step_size: Tensor,
    scale: Tensor,
    betas: Sequence[float],
    eps: float,
) -> None:
    """Update parameters and moments in place, (lanes, ...) each and contiguous; `step_size` is (lanes,), or ()."""
    lanes, (b1, b2) = step_size.numel(), betas
    for p, g, m, v in zip(P, G, M, V, strict=True):
        size = p.numel() // lanes
        grid = -(-size // BLOCK), lanes
        adam_kernel[grid](p, g, m, v, step_size, scale, size, 1 - b1, 1 - b2, eps, BLOCK=BLOCK)
