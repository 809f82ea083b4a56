"""How the steps of a pack are taken: stacked or one by one, compiled or not, captured in a CUDA graph.

Three strategies, the same mathematics:

- `stack`: all models as one, by `vmap`; needs the compiler, since `vmap` alone is slower than no pack at all;
- `fork`: every model on a stream of its own, all captured in one CUDA graph; best for convolutions;
- `loop`: one model after the other; what is left where there is neither compiler nor GPU, and best on a CPU for
  convolutions, whose library is faster than the products that a stack makes of them.
"""

from __future__ import annotations

import contextlib
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unweave.data.core import FactorData
from unweave.training.pack import LaneGroup, State, Trainable, clone_state, copy_into
from unweave.training.step import Step, compiled_step, inspect_loss, make_step, prepared_key
from unweave.utils.errors import InputError, first_line
from unweave.utils.validation import device_lost, out_of_memory

COMPILE_SECONDS = 60  # work that is worth the half minute of compiling
FLOPS = 2e10  # of a CPU core or two, to guess how long a run will take; a guess that is the same everywhere
FEW = 300  # model-steps, of which counting the work takes as long as the work
OVERHEAD = 1e-4  # seconds that an eager step takes for every tensor of weights, however small
_WINNERS: dict[tuple[Any, ...], tuple[str, bool]] = {}  # of races that were run before
UNTIMED = 1_000  # steps of a run that are over before a race is
LONG = 150  # seconds that a run must take on a GPU for a race of strategies, two of them compiled, to pay


class StepRunner:
    """Takes the steps of a pack, a chunk at a time."""

    def __init__(self, parts: list[LaneGroup], step: Step, terms: list[str], name: str) -> None:
        self.parts, self.step, self.terms, self.name = parts, step, terms, name
        self.device = parts[0].device
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)  # the step of the chunk that is next
        self.room = 0  # steps that the captured graph has memory for
        self.graph: Any = None
        self.outside = False  # whether pixels come into being before the captured step

    def run(self, count: int, taken: Callable[[int], None] = lambda steps: None) -> None:
        """That many steps of every model; on a CPU, where they may be slow, it says in between how many are taken."""
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):  # streams and graphs are of the current one
                return self._replay(count)
        drawn = [part.draw(count) for part in self.parts]
        for i in range(count):
            for part, d in zip(self.parts, drawn, strict=True):
                self.step(part.state, part.batch(d, i))
            if i + 1 < count:
                taken(i + 1)
        return None

    def last_values(self) -> Tensor:
        """Return (lanes, terms + 1) on the CPU: the terms of the last step, and the step that failed, or 0."""
        rows = [
            torch.cat([part.state["terms"].reshape(-1, len(self.terms)), part.state["failed"].reshape(-1, 1)], 1)
            for part in self.parts
        ]
        return torch.cat(rows).cpu()

    def _replay(self, count: int) -> None:
        """The whole step, rendering included where it can be, was captured once as a CUDA graph."""
        if count > self.room:
            self.graph, self.room = None, count
            for part in self.parts:
                part.chunk = ({}, {})
        for part in self.parts:
            part.feed(part.draw(count))
        self.cursor.zero_()
        if self.graph is None:
            self.outside = not self._renders_alone()
            self._expose(0)
            self.graph = self._captured()
        for i in range(count):
            self._expose(i)
            self.graph.replay()

    def _expose(self, i: int) -> None:
        for part in self.parts if self.outside else ():
            part.expose(i)

    def _renders_alone(self) -> bool:
        """Whether the device renders without waiting for the host, as within a captured graph it must."""
        self.parts[0].views(self.parts[0].chunk, self.cursor)  # tables may be made at the first call
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls it a prototype, at every use
            torch.cuda.set_sync_debug_mode("error")
        try:
            self.parts[0].views(self.parts[0].chunk, self.cursor)
        except RuntimeError:
            return False
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return True

    def _captured(self) -> Any:
        """One step of all parts, each on a stream of its own."""
        kept = [clone_state(part.state) for part in self.parts]
        stream: Any = torch.cuda.Stream
        streams = [stream() for _ in self.parts]
        warm = stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm):
            for _ in range(3):  # what libraries choose at their first calls must not be captured
                self._forked(streams)
                self._restored(kept)
        torch.cuda.current_stream().wait_stream(warm)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._forked(streams)
        return graph

    def _restored(self, kept: Sequence[State]) -> None:
        """The steps of a warm-up did not happen; nor may they run on past the end of a short history."""
        self.cursor.zero_()
        for part, state in zip(self.parts, kept, strict=True):
            copy_into(part.state, state)

    def _forked(self, streams: Sequence[torch.cuda.Stream]) -> None:
        main = torch.cuda.current_stream()
        begin = main.record_event()  # an event, since of many streams one may be `main` itself, which would go on
        try:
            for part, stream in zip(self.parts, streams, strict=True):
                stream.wait_event(begin)
                with torch.cuda.stream(stream):
                    self.step(part.state, part.batch(part.chunk, self.cursor))
        finally:  # else the end of a capture would complain of these, and not of what went wrong
            for stream in streams:
                main.wait_stream(stream)
        self.cursor.add_(1)


def choose_runner(
    pack: Sequence[Trainable],
    nets: Sequence[nn.Module],
    data: FactorData,
    *,
    window: int,
    compiling: str,
    strategy: str,
    before: str = "",
) -> StepRunner:
    """The fastest way that is known, or asked for; on a GPU, the one by which the run went `before` it was stopped.

    On a CPU by rule, so that a run restarted on the same machine takes the same path: a stack where no layer is a
    convolution, else a loop; compiled where the run is long enough to pay for it. On a GPU by measurement.
    """
    first, device = pack[0], next(nets[0].parameters()).device
    few = len(pack) * first.steps < FEW
    terms, flops = inspect_loss(first, nets[0], data, counting=not few)
    rows = -(-first.steps // window)
    make = partial(_engine, pack, nets, data, terms=terms, window=window, rows=rows)
    convolutions = any(isinstance(m, nn.Conv2d | nn.ConvTranspose2d) for m in nets[0].modules())
    if strategy not in ("auto", "loop", "stack", "fork"):
        raise InputError(f"strategy={strategy!r}: expected 'auto', 'loop', 'stack' or 'fork'")
    if strategy == "fork" and device.type != "cuda":
        raise InputError("strategy='fork' needs a CUDA device; on a CPU there are 'loop' and 'stack'")
    if device.type == "cuda":
        key = (type(first), first.signature(), prepared_key(first), len(pack), torch.cuda.get_device_name(device))
        if before and strategy == "auto":
            return make(strategy=before.partition(",")[0], compiled=before.endswith("compiled"))
        return _on_gpu(make, key, first.steps, convolutions, compiling, strategy)
    best = "stack" if len(pack) > 1 and not convolutions else "loop"
    chosen = best if strategy == "auto" else strategy
    weights = len(list(nets[0].parameters()))
    seconds = len(pack) * first.steps * (OVERHEAD * weights + flops / FLOPS)
    expected = compiling == "always" or (compiling == "auto" and not few and seconds > COMPILE_SECONDS)
    if expected:
        try:
            return _warmed(make(strategy=chosen, compiled=True))
        except Exception as error:  # no compiler, or a loss that is not one graph
            if compiling == "always":
                raise
            warnings.warn(
                f"{first.name} cannot be compiled here and trains model by model, slower: {first_line(error)}",
                RuntimeWarning,
                stacklevel=2,
            )
    return make(strategy="loop" if strategy == "auto" else strategy, compiled=False)


def _on_gpu(
    make: Callable[..., StepRunner], key: tuple[Any, ...], steps: int, convolutions: bool, compiling: str, strategy: str
) -> StepRunner:
    """Captured in a CUDA graph in any case; which strategy, by a short race where the run is long.

    The winner is kept for the next pack of so many models of the same signature.
    """
    always, models = compiling == "always", key[3]
    usual = "fork" if convolutions or models == 1 else "stack"
    if strategy != "auto" or steps < UNTIMED:
        return make(strategy=usual if strategy == "auto" else strategy, compiled=always)
    key = (*key, compiling)
    if key not in _WINNERS:
        seconds = _race([(usual, always)], make)
        if not seconds or min(seconds.values()) * steps > LONG:
            others = [("fork", False), ("fork", True), ("stack", True)]
            allowed = {"always": (True,), "never": (False,)}.get(compiling, (True, False))
            seconds |= _race([r for r in others if r[1] in allowed and r != (usual, always)], make)
        if not seconds:
            raise InputError("no strategy works on this device (warnings say why): try device='cpu'")
        _WINNERS[key] = min(seconds, key=lambda racer: seconds[racer])
    winner = _WINNERS[key]
    return make(strategy=winner[0], compiled=winner[1])


def _race(racers: Sequence[tuple[str, bool]], make: Callable[..., StepRunner]) -> dict[tuple[str, bool], float]:
    """Seconds for a step of every strategy, compiled or not, that can be had here."""
    found, full = {}, ""
    for strategy, compiled in racers:
        try:
            found[strategy, compiled] = _timed(make(strategy=strategy, compiled=compiled))
        except Exception as error:
            if device_lost(error):
                raise
            full = first_line(error) if out_of_memory(error) else full
            warnings.warn(f"strategy {strategy!r} was left out: {first_line(error)}", RuntimeWarning, stacklevel=4)
    if full and not found:  # said so, since fewer models may fit
        raise torch.OutOfMemoryError(full)
    return found


def _timed(engine: StepRunner, steps: int = 30) -> float:
    """Seconds for a step, in a race on copies of the models: the median of a few rounds, capturing left out."""
    engine.run(steps)
    found = []
    for _ in range(3):
        torch.cuda.synchronize(engine.device)
        start = time.perf_counter()
        engine.run(steps)
        torch.cuda.synchronize(engine.device)
        found.append((time.perf_counter() - start) / steps)
    return statistics.median(found)


def _engine(
    pack: Sequence[Trainable],
    nets: Sequence[nn.Module],
    data: FactorData,
    *,
    terms: list[str],
    window: int,
    rows: int,
    strategy: str,
    compiled: bool,
) -> StepRunner:
    """Parts and their steps. All parts share one compiled function: they differ in tensors alone."""
    stacked = strategy == "stack"
    groups = [slice(None)] if stacked else [slice(i, i + 1) for i in range(len(pack))]
    parts = [LaneGroup(pack[g], nets[g], data, stacked) for g in groups]
    for part in parts:
        lead = (len(part.methods),) if stacked else ()
        zeros = partial(torch.zeros, device=part.device)
        part.state |= {"log": zeros((*lead, rows, len(terms))), "terms": zeros((*lead, len(terms)))}
        part.state["failed"] = zeros(lead)
        part.state["step"] = zeros((), dtype=torch.int64)
    if compiled:
        step = compiled_step(pack[0], nets[0], stacked, window, len(parts[0].methods))
    else:
        step = make_step(pack[0], nets[0], stacked, window)
    return StepRunner(parts, step, terms, f"{strategy}{', compiled' if compiled else ''}")


def _warmed(engine: StepRunner) -> StepRunner:
    """Compiled now, so that a compiler's failure is found before any step is taken."""
    part = engine.parts[0]
    kept, states = clone_state(part.state), [rng.get_state() for rng in part.rngs]
    engine.step(part.state, part.batch(part.draw(1), 0))
    copy_into(part.state, kept)
    for rng, state in zip(part.rngs, states, strict=True):
        rng.set_state(state)
    return engine


@contextlib.contextmanager
def matmul_precision(method: Trainable) -> Iterator[None]:
    """Whether float32 products on a GPU may be rounded to 19 bits, as a method has it."""
    with allow_tf32(method.precision != "single"):
        yield


@contextlib.contextmanager
def allow_tf32(allowed: bool) -> Iterator[None]:
    """Whether float32 products on a GPU may be rounded to 19 bits."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
