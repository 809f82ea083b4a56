"""The state of one model or of a stack of models, and its update: Adam and gradient clipping, by tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import pi
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.library import custom_op

from unweave.utils.errors import InputError

Schedule = Literal["constant", "cosine", "step"]

State = dict[str, Any]
"""Tensors by name in `params`, `buffers`, `first_moments`, `second_moments` and `lane_values`, and in `averages` if the
method has some; and the tensors of `initial_log`.
"""
Tensors = list[Tensor]
MIN_MEAN_SIZE = 2**15  # mean elements per parameter tensor of a pack, from which the Triton kernel is used
HISTORY_ROWS = 1_000  # the history of a longer run holds means over windows of steps


class Adam(NamedTuple):
    """Settings of the Adam optimizer for a group of parameters; Kingma and Ba (2015)."""

    lr: float | Tensor
    """Learning rate: one number, or one per lane."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of the first and the second moment."""
    eps: float = 1e-8
    """Added to the square root of the second moment."""
    decay_after: float = 1.0
    """Share of the steps, in [0, 1], after which the learning rate is divided by ten."""

    def at_progress(self, progress: Tensor, schedule: Schedule = "constant") -> Adam:
        """Return the settings with the learning rate at a progress in [0, 1].

        The rate falls to zero along half a cosine, or is divided by ten after half and again after three quarters.
        """
        lr = self.lr
        if self.decay_after < 1:
            lr = lr * torch.where(progress < self.decay_after, 1.0, 0.1)
        if schedule == "cosine":
            lr = lr * (1 + torch.cos(pi * progress)) / 2
        elif schedule == "step":
            lr = lr * torch.where(progress < 0.5, 1.0, torch.where(progress < 0.75, 0.1, 0.01))
        return self._replace(lr=lr)


def assign_optimizers(names: Iterable[str], prefixes: Iterable[str]) -> dict[str, str]:
    """Return for every parameter the longest prefix of its name.

    Raises:
        InputError: If a parameter has no prefix, or a prefix no parameter.
    """
    longest_first = sorted(prefixes, key=len, reverse=True)
    owners = {name: next((p for p in longest_first if name.startswith(p)), None) for name in names}
    missing = [name for name, prefix in owners.items() if prefix is None]
    unused = [prefix for prefix in longest_first if prefix not in owners.values()]
    if missing or unused:
        problem = f"none fits the parameter {missing[0]!r}" if missing else f"no parameter begins with {unused[0]!r}"
        raise InputError(f"optimizers() has the prefixes {longest_first}: {problem}")
    return {name: str(prefix) for name, prefix in owners.items()}


def adam_step(
    params: dict[str, Tensor],
    grads: dict[str, Tensor],
    first_moments: dict[str, Tensor],
    second_moments: dict[str, Tensor],
    t: Tensor,
    optimizers: dict[str, Adam],
    prefix_of: dict[str, str],
    *,
    use_triton: bool = False,
) -> None:
    """Update parameters and moments in place; Kingma and Ba (2015), Algorithm 1.

    Args:
        t: Number of this step, from 1 on.
        optimizers: Settings by prefix.
        prefix_of: The prefix of every parameter, from `assign_optimizers`.
        use_triton: Whether one kernel may update a parameter of all lanes; the compiler then has much less to do.
    """
    for prefix, (lr, betas, eps, _) in optimizers.items():
        names = [name for name in params if prefix_of[name] == prefix]
        P, G, M, V = ([tensors[name] for name in names] for tensors in (params, grads, first_moments, second_moments))
        b1, b2 = betas
        step_size, scale = lr / (1 - b1**t), (1 - b2**t).rsqrt()
        are_contiguous = all(p.is_contiguous() for p in P)  # and moments, which have their layout
        if use_triton and are_contiguous and sum(p.numel() for p in P) >= MIN_MEAN_SIZE * len(P):
            update_lanes(P, [g.contiguous() for g in G], M, V, step_size, scale, betas, eps)
        else:
            _update_foreach(P, G, M, V, step_size, scale, betas, eps)


def _update_foreach(
    P: Tensors, G: Tensors, M: Tensors, V: Tensors, step_size: Tensor, scale: Tensor, betas: Sequence[float], eps: float
) -> None:
    b1, b2 = betas
    torch._foreach_lerp_(M, G, 1 - b1)
    torch._foreach_mul_(V, b2)
    torch._foreach_addcmul_(V, G, G, 1 - b2)
    denominator = torch._foreach_sqrt(V)
    torch._foreach_mul_(denominator, [_broadcast(scale, p) for p in P])
    torch._foreach_add_(denominator, eps)
    change = torch._foreach_div(M, denominator)
    torch._foreach_mul_(change, [_broadcast(step_size, p) for p in P])
    torch._foreach_sub_(P, change)


@custom_op("unweave::adam_lanes", mutates_args=("P", "M", "V"))
def update_lanes(
    P: Sequence[torch.Tensor],
    G: Sequence[torch.Tensor],
    M: Sequence[torch.Tensor],
    V: Sequence[torch.Tensor],
    step_size: torch.Tensor,
    scale: torch.Tensor,
    betas: Sequence[float],
    eps: float,
) -> None:
    """Update contiguous parameters on a GPU, (lanes?, ...) each; `step_size` is (lanes,), or one number for all."""
    if not P[0].is_cuda:
        return _update_foreach(list(P), list(G), list(M), list(V), step_size, scale, betas, eps)
    from unweave.training.adam_kernel import launch_adam

    return launch_adam(P, G, M, V, step_size.contiguous(), scale, betas, eps)


def update_averages(averages: dict[str, Tensor], params: dict[str, Tensor], t: Tensor, decay: float) -> None:
    """Update the moving averages of parameters in place: a <- d a + (1 - d) p, d = min(decay, (1 + t) / (10 + t)).

    The smaller decay of the first steps lets the average forget the initial weights.
    """
    A, P = [*averages.values()], [params[name] for name in averages]
    share = 1 - ((1 + t) / (10 + t)).clamp(max=decay)
    change = torch._foreach_sub(P, A)
    torch._foreach_mul_(change, share)
    torch._foreach_add_(A, change)


def clip_gradients(grads: dict[str, Tensor], max_norm: float, *, lane_axes: int) -> dict[str, Tensor]:
    """Scale gradients so that their joint norm is at most `max_norm`, for each lane of the first `lane_axes` axes."""
    squares = [g.square().reshape(*g.shape[:lane_axes], -1).sum(-1) for g in grads.values()]
    norm = torch.stack(squares).sum(0).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1)
    return {k: g * _broadcast(scale, g) for k, g in grads.items()}


def _broadcast(value: Tensor, like: Tensor) -> Tensor:
    """Append axes of size one, (lanes?) -> (lanes?, 1, 1, ...), to multiply with a parameter."""
    return value.reshape(value.shape + (1,) * (like.ndim - value.ndim))


# States ---------------------------------------------------------------------------------------------------------------


class HasLanes(Protocol):
    """A method with fields that may differ in a pack."""

    weight_average: float

    def lane_names(self) -> tuple[str, ...]: ...


def initial_state(method: HasLanes, net: nn.Module) -> State:
    """Return the state before the first step."""
    params = {k: _copy_parameter(p.detach()) for k, p in net.named_parameters()}
    device = next(iter(params.values())).device
    averages = {"averages": {k: p.clone() for k, p in params.items()}} if method.weight_average else {}
    return averages | {
        "params": params,
        "first_moments": {k: torch.zeros_like(p) for k, p in params.items()},
        "second_moments": {k: torch.zeros_like(p) for k, p in params.items()},
        "buffers": {k: b.detach().clone() for k, b in net.named_buffers()},
        "lane_values": {k: torch.tensor(float(getattr(method, k)), device=device) for k in method.lane_names()},
    }


def initial_log(lanes: tuple[int, ...], terms: int, steps: int, window: int, device: torch.device) -> State:
    """Return the log before the first step.

    `step` is the number of steps taken, of `steps` in all. `log` has sums of the terms over windows of `window` steps,
    `terms` those of the last step, `failed` the first step whose loss was not finite, or 0. All are tensors, so that
    a compiled step serves runs of any length.
    """
    zeros = partial(torch.zeros, device=device)
    number = partial(torch.tensor, dtype=torch.int64, device=device)
    return {
        "log": zeros((*lanes, HISTORY_ROWS, terms)),
        "terms": zeros((*lanes, terms)),
        "failed": zeros(lanes),
        "step": number(0),
        "steps": number(steps),
        "window": number(window),
    }


def _copy_parameter(p: Tensor) -> Tensor:
    """Copy a parameter. On a CPU, kernels become channels-last, and with them the images between layers: faster."""
    is_kernel = p.ndim == 4 and p.device.type == "cpu"
    return p.clone(memory_format=torch.channels_last if is_kernel else torch.contiguous_format)


def stack_states(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Stack tensors of the same name along a new first axis, through all levels."""
    return {
        k: stack_states([s[k] for s in states]) if isinstance(v, dict) else torch.stack([s[k] for s in states])
        for k, v in states[0].items()
    }


def select_lane(state: State, i: int) -> State:
    """Return the state of one lane of a stack."""
    return {k: select_lane(v, i) if isinstance(v, dict) else v[i] if v.ndim else v for k, v in state.items()}


def clone_state(state: State) -> State:
    """Copy every tensor."""
    return {k: clone_state(v) if isinstance(v, dict) else v.clone() for k, v in state.items()}


def copy_into(state: State, source: State) -> None:
    """Copy the values of every tensor in place."""
    for k, v in state.items():
        copy_into(v, source[k]) if isinstance(v, dict) else v.copy_(source[k])
