"""Models that are trained together: their weights, moments and random generators, stacked or by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.training.adam import Adam

State = dict[str, Any]
"""params, first, second, buffers, hyper: tensors by name; step, log, terms, failed: tensors"""
Batch = dict[str, Tensor]


class Trainable(Protocol):
    """What the trainer asks of a method; `neural.Neural` says what each is for."""

    seed: int
    steps: int
    batch_size: int
    clip: float
    precision: Any
    shape_: tuple[int, ...]

    def plan(self, data: FactorData, n: int, rng: Generator) -> Plan: ...
    def sample_noise(self, n: int, rng: Generator) -> Batch: ...
    def is_cacheable(self) -> bool: ...
    def prepare(self, data: FactorData) -> None: ...
    def build(self, shape: tuple[int, ...]) -> nn.Module: ...
    def loss(self, net: Any, batch: Batch) -> Batch: ...
    def optimizers(self) -> dict[str, Adam]: ...
    def on_lane(self, values: Batch, names: Sequence[str]) -> Self: ...
    def lane_names(self) -> tuple[str, ...]: ...
    def signature(self) -> str: ...
    def recipe(self) -> dict[str, Any]: ...
    def title(self) -> str: ...
    def check_data(self, data: FactorData) -> None: ...
    def resolve_device(self) -> str: ...
    def reset(self) -> None: ...
    def after_training(self, data: FactorData) -> None: ...
    def store_training(self, net: nn.Module, terms: Sequence[str], history: Tensor, how: str) -> None: ...


class LaneGroup:
    """Models that take their steps in one call: a whole pack, stacked, or one alone."""

    def __init__(
        self, methods: Sequence[Trainable], nets: Sequence[nn.Module], data: FactorData, stacked: bool
    ) -> None:
        self.methods, self.data, self.stacked = list(methods), data, stacked
        self.device = next(nets[0].parameters()).device
        self.rngs = [Generator(self.device).manual_seed(method.seed) for method in methods]
        each = [_start(method, net) for method, net in zip(methods, nets, strict=True)]
        self.state: State = _joined(each) if stacked else each[0]
        self.chunk: tuple[Batch, Batch] = ({}, {})  # where a captured graph reads what was drawn
        self.pixels: Batch = {}  # and where it reads views that are rendered outside of it

    def draw(self, steps: int) -> tuple[Batch, Batch]:
        """Points to render and everything else that the loss is given, (lanes?, steps, batch, ...) each."""
        views, given = [], []
        for method, rng in zip(self.methods, self.rngs, strict=True):
            n = steps * method.batch_size
            plan = method.plan(self.data, n, rng)
            views.append({k: v.reshape(steps, len(v) // steps, *v.shape[1:]) for k, v in plan.views.items()})
            extra = plan.extras | method.sample_noise(n, rng)
            given.append({k: v.reshape(steps, len(v) // steps, *v.shape[1:]) for k, v in extra.items()})
        return (_joined(views), _joined(given)) if self.stacked else (views[0], given[0])

    def batch(self, drawn: tuple[Batch, Batch], i: int | Tensor) -> Batch:
        """Of step i; pixels come into being here. A tensor i, (1,), is looked up without the host."""
        return (self.pixels or self.views(drawn, i)) | {k: self._at(v, i) for k, v in drawn[1].items()}

    def views(self, drawn: tuple[Batch, Batch], i: int | Tensor) -> Batch:
        """The rendered ones of step i."""
        return {k: self.data.render(self._at(v, i)).float() for k, v in drawn[0].items()}

    def _at(self, v: Tensor, i: int | Tensor) -> Tensor:
        axis = int(self.stacked)
        if isinstance(i, Tensor):
            return v.index_select(axis, i).squeeze(axis)
        return v.select(axis, i).contiguous()  # else its strides tell the compiler how many steps were drawn

    def expose(self, i: int) -> None:
        """Render step i of the chunk into the memory that the captured graph reads."""
        views = self.views(self.chunk, i)
        if not self.pixels:
            self.pixels = {k: v.clone() for k, v in views.items()}
        for name, value in views.items():
            self.pixels[name].copy_(value)

    def lanes(self) -> Iterator[State]:
        """The state of every model by itself."""
        for i in range(len(self.methods)):
            yield _lane(self.state, i) if self.stacked else self.state

    def feed(self, drawn: tuple[Batch, Batch]) -> None:
        """Into the memory that the captured graph reads."""
        if not any(self.chunk):
            self.chunk = tuple({k: v.clone() for k, v in part.items()} for part in drawn)  # type: ignore[assignment]
        axis = int(self.stacked)
        for own, new in zip(self.chunk, drawn, strict=True):
            for name, value in new.items():
                own[name].narrow(axis, 0, value.shape[axis]).copy_(value)


# States ---------------------------------------------------------------------------------------------------------------


def _start(method: Trainable, net: nn.Module) -> State:
    params = {k: _arranged(p.detach()) for k, p in net.named_parameters()}
    buffers = {k: b.detach().clone() for k, b in net.named_buffers()}
    device = next(iter(params.values())).device
    hyper = {k: torch.tensor(float(getattr(method, k)), device=device) for k in method.lane_names()}
    first, second = ({k: torch.zeros_like(p) for k, p in params.items()} for _ in range(2))
    return {"params": params, "first": first, "second": second, "buffers": buffers, "hyper": hyper}


def _arranged(p: Tensor) -> Tensor:
    """A copy. On a CPU, kernels have their channels last, so that images between layers have too, which is faster."""
    last = p.ndim == 4 and p.device.type == "cpu"
    return p.clone(memory_format=torch.channels_last if last else torch.contiguous_format)


def _joined(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Tensors of the same name stacked, through all levels."""
    return {
        k: _joined([s[k] for s in states]) if isinstance(v, dict) else torch.stack([s[k] for s in states])
        for k, v in states[0].items()
    }


def _lane(state: State, i: int) -> State:
    return {k: _lane(v, i) if isinstance(v, dict) else v[i] if v.ndim else v for k, v in state.items()}


def clone_state(state: State) -> State:
    """A copy of every tensor."""
    return {k: clone_state(v) if isinstance(v, dict) else v.clone() for k, v in state.items()}


def copy_into(state: State, source: State) -> None:
    """Every tensor's values, in place."""
    for k, v in state.items():
        copy_into(v, source[k]) if isinstance(v, dict) else v.copy_(source[k])
