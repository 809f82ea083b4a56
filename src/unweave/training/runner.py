"""Takes the steps of a pack: one after the other on a CPU, by replaying a captured CUDA graph on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unweave.training.pack import Chunk, LaneGroup, State, clone_state, copy_into
from unweave.training.step import Step

WARM_UP_STEPS = 3  # before a capture: what libraries choose in their first calls must not be captured


class StepRunner:
    """Takes the steps of all lane groups, a chunk at a time.

    On a GPU the whole step of all groups, rendering included where that is possible, is captured once as a CUDA graph.
    """

    def __init__(self, groups: list[LaneGroup], step: Step, terms: list[str], strategy: str) -> None:
        self.groups, self.step, self.terms, self.strategy = groups, step, terms, strategy
        self.device = groups[0].device
        self.graph: Any = None
        self.graph_steps = 0  # steps for which the graph has memory
        self.renders_in_graph = True
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)  # next step of the chunk, read by the graph

    def run(self, count: int, after_step: Callable[[int], None] = lambda steps: None) -> None:
        """Take `count` steps of every model. On a CPU, where steps may be slow, call `after_step` in between."""
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):  # streams and graphs belong to the current device
                return self._run_graph(count)
        chunks = [group.sample_chunk(count) for group in self.groups]
        for i in range(count):
            for group, chunk in zip(self.groups, chunks, strict=True):
                self.step(group.state, group.batch(chunk, i))
            if i + 1 < count:
                after_step(i + 1)
        return None

    def last_values(self) -> Tensor:
        """Return (lanes, terms + 1) on the CPU: the terms of the last step, and the step that failed, or 0."""
        rows = [
            torch.cat([group.state["terms"].reshape(-1, len(self.terms)), group.state["failed"].reshape(-1, 1)], 1)
            for group in self.groups
        ]
        return torch.cat(rows).cpu()

    def warm_up(self) -> None:
        """Take a step and undo it, so that a failure of the compiler shows before training."""
        group = self.groups[0]
        state, generators = clone_state(group.state), [rng.get_state() for rng in group.rngs]
        self.step(group.state, group.batch(group.sample_chunk(1), 0))
        copy_into(group.state, state)
        for rng, generator in zip(group.rngs, generators, strict=True):
            rng.set_state(generator)

    # CUDA graphs ------------------------------------------------------------------------------------------------

    def _run_graph(self, count: int) -> None:
        if count > self.graph_steps:
            self.graph, self.graph_steps = None, count
            for group in self.groups:
                group.graph_chunk = Chunk({}, {})
        for group in self.groups:
            group.load_graph_chunk(group.sample_chunk(count))
        self.cursor.zero_()
        if self.graph is None:
            self.renders_in_graph = self._can_capture_rendering()
            self._render_outside(0)
            self.graph = self._capture()
        for i in range(count):
            self._render_outside(i)
            self.graph.replay()

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
