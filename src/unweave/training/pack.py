"""Packs: the state of models that are trained together, stacked or one by one, and the steps that they take."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.data.supervision import Plan
from unweave.training.adam import Adam, State, clone_state, copy_into, initial_state, select_lane, stack_states
from unweave.training.read_ahead import ReadAhead

Batch = dict[str, Tensor]
Step = Callable[[State, Batch], None]
"""Takes one step on a batch; updates the state in place."""

CHUNK = 100  # steps whose plans and noise are sampled at once; a seed gives other results with another chunk
SLOW_CHUNK_SECONDS = 1.0  # on a GPU; after longer chunks the host waits for every step, which then costs nothing
WARM_UP_STEPS = 3  # before a capture: what libraries choose in their first calls must not be captured


class Trainable(Protocol):
    """Interface that the trainer needs of a method; documented in `methods.neural.Neural`."""

    name: str
    seed: int
    steps: int
    batch_size: int
    clip: float
    lr_schedule: Any
    weight_average: float
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
    def pack_signature(self) -> str: ...
    def recipe(self) -> dict[str, Any]: ...
    def check_data(self, data: FactorData) -> None: ...
    def resolve_device(self) -> str: ...
    def reset(self) -> None: ...
    def after_training(self, data: FactorData) -> None: ...
    def store_training(self, net: nn.Module, terms: Sequence[str], history: Tensor, how: str) -> None: ...


class Chunk(NamedTuple):
    """Samples for a number of steps, tensors of shape (lanes?, steps, batch, ...)."""

    points: Batch
    """Points to render, by the name of the view."""
    extras: Batch
    """Everything else that the loss gets: labels, noise."""


class LaneGroup:
    """Lanes that take a step in one call: a whole pack, stacked, or a single model."""

    def __init__(
        self, methods: Sequence[Trainable], nets: Sequence[nn.Module], data: FactorData, stacked: bool
    ) -> None:
        self.methods, self.data, self.stacked = list(methods), data, stacked
        self.device = next(nets[0].parameters()).device
        self.rngs = [Generator(self.device).manual_seed(method.seed) for method in methods]
        self.rng_states_before: list[Tensor] = []  # of the chunk in progress; none between chunks
        states = [initial_state(method, net) for method, net in zip(methods, nets, strict=True)]
        self.state: State = stack_states(states) if stacked else states[0]
        self.read_ahead = None if data.reader is None else ReadAhead(data.reader, axis=int(stacked))
        # A captured CUDA graph reads its inputs from memory that stays in place:
        self.graph_chunk = Chunk({}, {})
        self.graph_views: Batch = {}  # only where rendering cannot be captured

    def sample_chunk(self, steps: int) -> Chunk:
        """Sample plans and noise for a number of steps, each lane from its own generator; start to read their rows."""
        chunks: list[Chunk] = []
        for method, rng in zip(self.methods, self.rngs, strict=True):
            plan = method.plan(self.data, n := steps * method.batch_size, rng)
            extras = plan.extras | method.sample_noise(n, rng)
            chunks.append(Chunk(_by_step(plan.views, steps), _by_step(extras, steps)))
        chunk = Chunk(*map(stack_states, zip(*chunks, strict=True))) if self.stacked else chunks[0]
        if self.read_ahead is not None:
            self.read_ahead.start(chunk.points, steps)
        return chunk

    def rng_states(self) -> list[Tensor]:
        """Return the states from which the generators sample the chunk in progress, or else the next one."""
        return self.rng_states_before or [rng.get_state() for rng in self.rngs]

    def batch(self, chunk: Chunk, i: int | Tensor) -> Batch:
        """Return the batch of step i, observations rendered. A tensor i, (1,), is looked up without the host."""
        views = self.graph_views or self.render_views(chunk, i)
        return views | {name: self._select_step(v, i) for name, v in chunk.extras.items()}

    def render_views(self, chunk: Chunk, i: int | Tensor) -> Batch:
        """Render the observations of step i; those that are read on demand belong to the chunk sampled last."""
        if self.read_ahead is not None and isinstance(i, int):
            return self.read_ahead.views(i, self.device)
        return {name: self.data.render(self._select_step(v, i)).float() for name, v in chunk.points.items()}

    def lane_states(self) -> Iterator[State]:
        """Yield the state of every lane by itself."""
        for i in range(len(self.methods)):
            yield select_lane(self.state, i) if self.stacked else self.state

    def load_graph_chunk(self, chunk: Chunk) -> None:
        """Copy a chunk to where the captured graph reads it."""
        if not any(self.graph_chunk):
            self.graph_chunk = Chunk(*({name: v.clone() for name, v in tensors.items()} for tensors in chunk))
        axis = int(self.stacked)
        for targets, sources in zip(self.graph_chunk, chunk, strict=True):
            for name, value in sources.items():
                targets[name].narrow(axis, 0, value.shape[axis]).copy_(value)

    def load_graph_views(self, i: int) -> None:
        """Render step i of the chunk to where the captured graph reads it."""
        views = self.render_views(self.graph_chunk, i)
        if not self.graph_views:
            self.graph_views = {name: v.clone() for name, v in views.items()}
        for name, value in views.items():
            self.graph_views[name].copy_(value)

    def _select_step(self, v: Tensor, i: int | Tensor) -> Tensor:
        axis = int(self.stacked)
        if isinstance(i, Tensor):
            return v.index_select(axis, i).squeeze(axis)
        return v.select(axis, i).contiguous()  # else a compiled step would depend on the chunk's length, by strides


def _by_step(tensors: Batch, steps: int) -> Batch:
    """Split the first axis, (steps * batch, ...) -> (steps, batch, ...)."""
    return {name: v.reshape(steps, len(v) // steps, *v.shape[1:]) for name, v in tensors.items()}


class StepRunner:
    """Takes the steps of all lane groups, a chunk at a time.

    On a GPU the whole step of all groups, rendering included where that is possible, is captured once as a CUDA graph.
    """

    def __init__(self, groups: list[LaneGroup], step: Step, terms: list[str], strategy: str, threads: int) -> None:
        self.groups, self.step, self.terms, self.strategy, self.threads = groups, step, terms, strategy, threads
        self.device = groups[0].device
        self.is_slow = True  # on a GPU, until the first chunk tells
        self.graph: Any = None
        self.graph_steps = 0  # steps for which the graph has memory
        self.renders_in_graph = True
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)  # next step of the chunk, read by the graph

    def run(self, count: int, after_step: Callable[[int], None] = lambda steps: None, start: int = 0) -> None:
        """Take the steps of a chunk of every model, from the step `start` of the chunk on.

        Where steps are slow, `after_step` is called between them, with the number of the chunk's steps that were taken.
        """
        for group in self.groups:
            group.rng_states_before = [rng.get_state() for rng in group.rngs]
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):  # streams and graphs belong to the current device
                self._run_graph(count, after_step, start)
        else:
            chunks = [group.sample_chunk(count) for group in self.groups]
            for i in range(start, count):
                for group, chunk in zip(self.groups, chunks, strict=True):
                    self.step(group.state, group.batch(chunk, i))
                if i + 1 < count:
                    after_step(i + 1)
        for group in self.groups:
            group.rng_states_before = []

    def last_values(self) -> Tensor:
        """Return (lanes, terms + 1) on the CPU: the terms of the last step, and the step that failed, or 0."""
        rows = [
            torch.cat([group.state["terms"].reshape(-1, len(self.terms)), group.state["failed"].reshape(-1, 1)], 1)
            for group in self.groups
        ]
        return torch.cat(rows).cpu()

    def warm_up(self, count: int) -> None:
        """Take a step and undo it, so that a failure of the compiler shows before training; on a GPU, capture it."""
        states = [clone_state(group.state) for group in self.groups]
        generators = [(rng, rng.get_state()) for group in self.groups for rng in group.rngs]
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                self._prepare_graph(count)
        else:
            group = self.groups[0]
            self.step(group.state, group.batch(group.sample_chunk(1), 0))
        self._undo_steps(states)
        for rng, generator in generators:
            rng.set_state(generator)

    # CUDA graphs ------------------------------------------------------------------------------------------------

    def _run_graph(self, count: int, after_step: Callable[[int], None], start: int) -> None:
        self._prepare_graph(count)
        self.cursor.fill_(start)
        begin = time.perf_counter()
        for i in range(start, count):
            self._render_outside(i)
            self.graph.replay()
            if self.is_slow and i + 1 < count:
                torch.cuda.synchronize()
                after_step(i + 1)
        torch.cuda.synchronize()
        self.is_slow = time.perf_counter() - begin > SLOW_CHUNK_SECONDS

    def _prepare_graph(self, count: int) -> None:
        """Sample a chunk to where the graph reads it, and capture the graph if there is none for so many steps."""
        if count > self.graph_steps:
            self.graph, self.graph_steps = None, count
            for group in self.groups:
                group.graph_chunk = Chunk({}, {})
        for group in self.groups:
            group.load_graph_chunk(group.sample_chunk(count))
        self.cursor.zero_()
        if self.graph is None:
            self.renders_in_graph = self.groups[0].read_ahead is None and self._can_capture_rendering()
            self._render_outside(0)
            self.graph = self._capture()

    def _render_outside(self, i: int) -> None:
        if not self.renders_in_graph:
            for group in self.groups:
                group.load_graph_views(i)

    def _can_capture_rendering(self) -> bool:
        """Return whether rendering never waits for the host, as a captured graph requires."""
        group = self.groups[0]
        group.render_views(group.graph_chunk, self.cursor)  # tables may be built in the first call
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that this mode is a prototype
            torch.cuda.set_sync_debug_mode("error")
        try:
            group.render_views(group.graph_chunk, self.cursor)
        except RuntimeError:
            return False
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return True

    def _capture(self) -> Any:
        """Capture one step of all groups, each on its own stream."""
        states = [clone_state(group.state) for group in self.groups]
        new_stream: Any = torch.cuda.Stream
        streams = [new_stream() for _ in self.groups]
        warm_up = new_stream()
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            for _ in range(WARM_UP_STEPS):
                self._step_on_streams(streams)
                self._undo_steps(states)
        torch.cuda.current_stream().wait_stream(warm_up)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step_on_streams(streams)
        return graph

    def _undo_steps(self, states: Sequence[State]) -> None:
        """Restore the state after each warm-up step, which would else run past the end of a short history."""
        self.cursor.zero_()
        for group, state in zip(self.groups, states, strict=True):
            copy_into(group.state, state)

    def _step_on_streams(self, streams: Sequence[torch.cuda.Stream]) -> None:
        main = torch.cuda.current_stream()
        start = main.record_event()  # an event: one of many streams may be `main` itself, which must not wait for all
        try:
            for group, stream in zip(self.groups, streams, strict=True):
                stream.wait_event(start)
                with torch.cuda.stream(stream):
                    self.step(group.state, group.batch(group.graph_chunk, self.cursor))
        finally:  # otherwise the end of a capture would hide the original error
            for stream in streams:
                main.wait_stream(stream)
        self.cursor.add_(1)
