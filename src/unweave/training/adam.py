"""Adam and gradient clipping as functions over tensors by name, alike for one model and for a stack of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.utils.errors import InputError


class Adam(NamedTuple):
    """How a group of parameters learns."""

    lr: float | Tensor
    """one number, or one per lane"""
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decay_after: float = 1.0
    """share of the steps after which the rate is a tenth"""

    def at_progress(self, progress: Tensor) -> Adam:
        """With the rate of a moment between 0 and 1."""
        if self.decay_after >= 1:
            return self
        return self._replace(lr=self.lr * torch.where(progress < self.decay_after, 1.0, 0.1))


def assign_optimizers(names: Iterable[str], prefixes: Iterable[str]) -> dict[str, str]:
    """For every parameter the longest prefix that its name has."""
    known = sorted(prefixes, key=len, reverse=True)
    owner = {name: next((prefix for prefix in known if name.startswith(prefix)), None) for name in names}
    left = [name for name, prefix in owner.items() if prefix is None]
    idle = [prefix for prefix in known if prefix not in owner.values()]
    if left or idle:
        what = f"no rate for the parameter {left[0]!r}" if left else f"no parameter begins with {idle[0]!r}"
        raise InputError(f"optimizers() with the prefixes {known}: {what}")
    return {name: str(prefix) for name, prefix in owner.items()}


def adam(
    params: dict[str, Tensor],
    grads: dict[str, Tensor],
    first: dict[str, Tensor],
    second: dict[str, Tensor],
    t: Tensor,
    rates: dict[str, Adam],
    owner: dict[str, str],
) -> None:
    """One step in place; Kingma and Ba (2015), Algorithm 1."""
    for prefix, (lr, (b1, b2), eps, _) in rates.items():
        own = [name for name in params if owner[name] == prefix]
        P, G, M, V = ([tensors[name] for name in own] for tensors in (params, grads, first, second))
        size, scale = lr / (1 - b1**t), (1 - b2**t).rsqrt()
        torch._foreach_lerp_(M, G, 1 - b1)
        torch._foreach_mul_(V, b2)
        torch._foreach_addcmul_(V, G, G, 1 - b2)
        below = torch._foreach_sqrt(V)
        torch._foreach_mul_(below, [_over(scale, p) for p in P])
        torch._foreach_add_(below, eps)
        change = torch._foreach_div(M, below)
        torch._foreach_mul_(change, [_over(size, p) for p in P])
        torch._foreach_sub_(P, change)


def clip_gradients(grads: dict[str, Tensor], most: float, *, lead: int) -> dict[str, Tensor]:
    """Gradients whose joint norm, for each lane of the first `lead` axes, is at most `most`."""
    squares = [g.square().reshape(*g.shape[:lead], -1).sum(-1) for g in grads.values()]
    norm = torch.stack(squares).sum(0).sqrt()
    scale = (most / (norm + 1e-6)).clamp(max=1)
    return {k: g * _over(scale, g) for k, g in grads.items()}


def _over(value: Tensor, like: Tensor) -> Tensor:
    """(lanes?) -> (lanes?, 1, 1, ...), to multiply with a parameter."""
    return value.reshape(value.shape + (1,) * (like.ndim - value.ndim))
