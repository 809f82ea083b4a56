"""The state of one model or of a stack of models: weights, moments, history."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

State = dict[str, Any]
"""Tensors by name in `params`, `buffers`, `first_moments`, `second_moments` and `lane_values`; and the tensors of
`initial_log`.
"""
HISTORY_ROWS = 1_000  # the history of a longer run holds means over windows of steps


class HasLanes(Protocol):
    """A method with fields that may differ in a pack."""

    def lane_names(self) -> tuple[str, ...]: ...


def initial_state(method: HasLanes, net: nn.Module) -> State:
    """Return the state before the first step."""
    params = {k: _copy_parameter(p.detach()) for k, p in net.named_parameters()}
    device = next(iter(params.values())).device
    return {
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
