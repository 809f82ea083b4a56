"""How the steps of a pack are taken: stacked or one by one, compiled or not, captured in a CUDA graph.

Three strategies, the same mathematics:

- `stack`: all models as one, by `vmap`; needs the compiler, since `vmap` alone is slower than no pack at all;
- `fork`: every model on a stream of its own, all captured in one CUDA graph; best for convolutions;
- `loop`: one model after the other; what is left where there is neither compiler nor GPU, and best on a CPU for
  convolutions, which `vmap` turns into grouped ones.
"""

from __future__ import annotations

import contextlib
import copy
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from .data import FactorData
from .errors import InputError
from .nn.products import as_products
from .optimiser import adam, clipped, owners

if TYPE_CHECKING:
    from .neural import Neural

State = dict[str, Any]
"""params, first, second, buffers, hyper: tensors by name; step, log, latest, failed: tensors"""
Batch = dict[str, Tensor]

COMPILE_SECONDS = 60  # work that is worth the half minute of compiling
FLOPS = 2e10  # of a CPU core or two, to guess how long a run will take; a guess that is the same everywhere
OVERHEAD = 1e-3  # seconds that an eager step takes however small the network
MEASURED_STEPS = 20_000  # of all models together, from which on strategies are measured on a GPU


BACKEND = "inductor"
MOST_COMPILED = 16  # steps that are kept
_COMPILED: dict[str, Callable[[State, Batch], None]] = {}


class Part:
    """Models that take their steps in one call: a whole pack, stacked, or one alone."""

    def __init__(self, methods: Sequence[Neural], nets: Sequence[nn.Module], data: FactorData, stacked: bool) -> None:
        self.methods, self.data, self.stacked = list(methods), data, stacked
        self.device = next(nets[0].parameters()).device
        self.rngs = [Generator(self.device).manual_seed(method.seed) for method in methods]
        each = [_start(method, net) for method, net in zip(methods, nets, strict=True)]
        self.state: State = _joined(each) if stacked else each[0]
        self.chunk: tuple[Batch, Batch] = ({}, {})  # where a captured graph reads what was drawn

    def draw(self, steps: int) -> tuple[Batch, Batch]:
        """Points to render and everything else that the loss is given, (lanes?, steps, batch, ...) each."""
        views, given = [], []
        for method, rng in zip(self.methods, self.rngs, strict=True):
            n = steps * method.batch_size
            plan = method.plan(self.data, n, rng)
            views.append({k: v.unflatten(0, (steps, -1)) for k, v in plan.views.items()})
            extra = plan.given | method.noise(n, rng)
            given.append({k: v.unflatten(0, (steps, -1)) for k, v in extra.items()})
        return (_joined(views), _joined(given)) if self.stacked else (views[0], given[0])

    def batch(self, drawn: tuple[Batch, Batch], i: int | Tensor) -> Batch:
        """Of step i; pixels come into being here. A tensor i, (1,), is looked up without the host."""
        axis = int(self.stacked)

        def at(v: Tensor) -> Tensor:  # contiguous, else its strides tell the compiler how many steps were drawn
            return v.index_select(axis, i).squeeze(axis) if isinstance(i, Tensor) else v.select(axis, i).contiguous()

        views, given = drawn
        return {k: self.data.render(at(v)).float() for k, v in views.items()} | {k: at(v) for k, v in given.items()}

    def lanes(self) -> Iterator[State]:
        """The state of every model by itself."""
        for i in range(len(self.methods)):
            yield _lane(self.state, i) if self.stacked else self.state

    def feed(self, drawn: tuple[Batch, Batch]) -> None:
        """Into the memory that the captured graph reads."""
        if not self.chunk[0]:
            self.chunk = tuple({k: v.clone() for k, v in part.items()} for part in drawn)  # type: ignore[assignment]
        axis = int(self.stacked)
        for own, new in zip(self.chunk, drawn, strict=True):
            for name, value in new.items():
                own[name].narrow(axis, 0, value.shape[axis]).copy_(value)


class Engine:
    """Takes the steps of a pack, a chunk at a time."""

    def __init__(
        self, parts: list[Part], steps: list[Callable[[State, Batch], None]], terms: list[str], name: str
    ) -> None:
        self.parts, self.steps, self.terms, self.name = parts, steps, terms, name
        self.device = parts[0].device
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)  # the step of the chunk that is next
        self.room = 0  # steps that the captured graph has memory for
        self.graph: Any = None

    def run(self, count: int) -> None:
        """That many steps of every model."""
        drawn = [part.draw(count) for part in self.parts]
        if self.device.type == "cuda":
            return self._replay(drawn, count)
        for i in range(count):
            for part, step, d in zip(self.parts, self.steps, drawn, strict=True):
                step(part.state, part.batch(d, i))
        return None

    def _replay(self, drawn: Sequence[tuple[Batch, Batch]], count: int) -> None:
        """The whole step, rendering included, was captured once as a CUDA graph."""
        if count > self.room:
            self.graph, self.room = None, count
            for part in self.parts:
                part.chunk = ({}, {})
        for part, d in zip(self.parts, drawn, strict=True):
            part.feed(d)
        self.cursor.zero_()
        if self.graph is None:
            self.graph = self._captured()
        for _ in range(count):
            self.graph.replay()

    def _captured(self) -> Any:
        """One step of all parts, each on a stream of its own."""
        kept = [_cloned(part.state) for part in self.parts]
        streams = [torch.cuda.Stream() for _ in self.parts]
        warm = torch.cuda.Stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm):
            for _ in range(3):  # what libraries choose at their first calls must not be captured
                self._forked(streams)
                self.cursor.zero_()
        torch.cuda.current_stream().wait_stream(warm)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._forked(streams)
        for part, state in zip(self.parts, kept, strict=True):
            _copy(part.state, state)  # the steps of the warm-up did not happen
        return graph

    def _forked(self, streams: Sequence[torch.cuda.Stream]) -> None:
        main = torch.cuda.current_stream()
        for part, step, stream in zip(self.parts, self.steps, streams, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                step(part.state, part.batch(part.chunk, self.cursor))
        for stream in streams:
            main.wait_stream(stream)
        self.cursor.add_(1)


# One step -------------------------------------------------------------------------------------------------------


class _Objective(nn.Module):
    """Lets `functional_call` reach `method.loss(net, batch)`."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, method: Neural, batch: Batch) -> dict[str, Tensor]:
        return method.loss(self.net, batch)


def evaluate(
    method: Neural, objective: nn.Module, names: Sequence[str], params: Batch, buffers: Batch, *rest: Batch
) -> dict[str, Tensor]:
    """All terms of one model's loss; `names` are those of the method's attributes."""
    hyper, batch = rest
    weights = {f"net.{k}": v for k, v in (params | buffers).items()}
    kind = next(iter(params.values())).device.type
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=method.precision == "bf16"):
        terms: dict[str, Tensor] = functional_call(objective, weights, (method.on_lane(hyper, names), batch))
    return {k: v.float() for k, v in terms.items()}


def make_step(
    method: Neural, net: nn.Module, stacked: bool, compiled: bool, window: int
) -> Callable[[State, Batch], None]:
    """One step of one model, or of a stack: gradients, Adam, history; all in place."""
    objective = _Objective(as_products(net) if stacked else net)
    names = tuple(vars(method))
    owner = owners(dict(net.named_parameters()), method.rates())

    def value(params: Batch, *rest: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        terms = evaluate(method, objective, names, params, *rest)
        return terms["loss"], terms

    def taped(params: Batch, *rest: Batch) -> tuple[Batch, dict[str, Tensor]]:
        """The same by the tape: with no compiler in between, `grad` takes three times as long."""
        leaves = {k: p.detach().requires_grad_() for k, p in params.items()}
        loss, terms = value(leaves, *rest)
        found = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        return dict(zip(leaves, found, strict=True)), terms

    gradients = grad(value, has_aux=True) if stacked or compiled else taped
    every = vmap(gradients, in_dims=0) if stacked else gradients

    def step(state: State, batch: Batch) -> None:
        t = state["step"].add_(1)
        progress = ((t - 1) / method.steps).expand(state["latest"].shape)
        batch = batch | {"progress": progress}
        grads, terms = every(state["params"], state["buffers"], state["hyper"], batch)
        if method.clip:
            grads = clipped(grads, method.clip, lead=int(stacked))
        rates = method.on_lane(state["hyper"], names).rates()
        adam(state["params"], grads, state["first"], state["second"], t, rates, owner)
        values = torch.stack([v.detach() for v in terms.values()], -1)  # (lanes?, terms)
        row = ((t - 1) / window).long().reshape(1)
        state["log"].index_add_(-2, row, values[..., None, :])
        loss = terms["loss"].detach()
        state["latest"].copy_(loss)
        first_bad = (state["failed"] == 0) & ~loss.isfinite()
        state["failed"].copy_(torch.where(first_bad, t, state["failed"]))

    return step


def choose(
    pack: Sequence[Neural],
    nets: Sequence[nn.Module],
    data: FactorData,
    *,
    window: int,
    compiling: str,
    strategy: str,
) -> Engine:
    """The fastest way that is known, or asked for.

    On a CPU by rule, so that a run restarted on the same machine takes the same path: a stack where no layer is a
    convolution, else a loop; compiled where the run is long enough to pay for it. On a GPU by measurement.
    """
    first, device = pack[0], next(nets[0].parameters()).device
    terms, flops = probe(first, nets[0], data)
    rows = -(-first.steps // window)
    make = partial(_engine, pack, nets, data, terms=terms, window=window, rows=rows)
    convolutions = any(isinstance(m, nn.Conv2d | nn.ConvTranspose2d) for m in nets[0].modules())
    if strategy not in ("auto", "loop", "stack", "fork"):
        raise InputError(f"strategy={strategy!r}: wanted 'auto', 'loop', 'stack' or 'fork'")
    if strategy == "fork" and device.type != "cuda":
        raise InputError("strategy='fork' needs a CUDA device; on a CPU there are 'loop' and 'stack'")
    if device.type == "cuda":
        return _on_gpu(make, len(pack) * first.steps, len(pack), convolutions, compiling, strategy)
    best = "stack" if len(pack) > 1 and not convolutions else "loop"
    chosen = best if strategy == "auto" else strategy
    seconds = len(pack) * first.steps * (OVERHEAD + flops / FLOPS)
    wanted = compiling == "always" or (compiling == "auto" and seconds > COMPILE_SECONDS)
    if wanted:
        try:
            return _warmed(make(strategy=chosen, compiled=True))
        except Exception as error:  # no compiler, or a loss that is not one graph
            if compiling == "always":
                raise
            text = str(error).strip().split("\n")[0]
            warnings.warn(
                f"{first.title()} cannot be compiled here and trains model by model, a few times slower: {text}",
                RuntimeWarning,
                stacklevel=2,
            )
    return make(strategy="loop" if strategy == "auto" else strategy, compiled=False)


def _on_gpu(
    make: Callable[..., Engine], work: int, models: int, convolutions: bool, compiling: str, strategy: str
) -> Engine:
    """Captured in a CUDA graph in any case; which strategy, by a short race where the run is long."""
    compiled = compiling != "never"
    if strategy != "auto" or work < MEASURED_STEPS:
        short = "fork" if convolutions or models == 1 else "stack"
        return make(strategy=strategy if strategy != "auto" else short, compiled=compiled and work >= MEASURED_STEPS)
    racers = [("fork", False), ("fork", True), ("stack", True)][: 3 if models > 1 else 2]
    best: tuple[float, tuple[str, bool]] | None = None
    for racer, with_compiler in racers:
        if with_compiler and not compiled:
            continue
        try:
            seconds = _timed(make(strategy=racer, compiled=with_compiler))
        except Exception as error:  # this strategy cannot be had here: the others may
            warnings.warn(
                f"strategy {racer!r} was left out: {str(error).splitlines()[0]}", RuntimeWarning, stacklevel=2
            )
            continue
        if best is None or seconds < best[0]:
            best = seconds, (racer, with_compiler)
    if best is None:
        raise InputError("no strategy works on this device: try device='cpu'")
    return make(strategy=best[1][0], compiled=best[1][1])


def _timed(engine: Engine, steps: int = 10) -> float:
    """Seconds for a step, in a race on copies of the models."""
    engine.run(3)
    torch.cuda.synchronize()
    start = time.perf_counter()
    engine.run(steps)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def _engine(
    pack: Sequence[Neural],
    nets: Sequence[nn.Module],
    data: FactorData,
    *,
    terms: list[str],
    window: int,
    rows: int,
    strategy: str,
    compiled: bool,
) -> Engine:
    """Parts and their steps. All parts share one compiled function: they differ in tensors alone."""
    stacked = strategy == "stack"
    groups = [slice(None)] if stacked else [slice(i, i + 1) for i in range(len(pack))]
    parts = [Part(pack[g], nets[g], data, stacked) for g in groups]
    for part in parts:
        lead = (len(part.methods),) if stacked else ()
        zeros = partial(torch.zeros, device=part.device)
        part.state |= {"log": zeros((*lead, rows, len(terms))), "latest": zeros(lead), "failed": zeros(lead)}
        part.state["step"] = zeros(())
    step = (
        _compiled(pack, nets[0], stacked, window) if compiled else make_step(pack[0], nets[0], stacked, False, window)
    )
    return Engine(parts, [step] * len(parts), terms, f"{strategy}{', compiled' if compiled else ''}")


def _compiled(pack: Sequence[Neural], net: nn.Module, stacked: bool, window: int) -> Callable[[State, Batch], None]:
    """The step as one graph; kept for the next pack of the same signature."""
    method = copy.copy(pack[0])
    prepared = {k: v for k, v in vars(method).items() if k.endswith("_") and isinstance(v, int | float | str | tuple)}
    device = next(net.parameters()).device.type
    key = repr((method.signature(), prepared, len(pack) if stacked else 1, stacked, window, device, BACKEND))
    if key not in _COMPILED:
        dynamo = torch._dynamo.config
        dynamo.recompile_limit = max(dynamo.recompile_limit, 1_000)  # all steps are one piece of code to it
        step = make_step(method, copy.deepcopy(net), stacked, True, window)
        if len(_COMPILED) == MOST_COMPILED:
            _COMPILED.pop(next(iter(_COMPILED)))
        _COMPILED[key] = torch.compile(step, fullgraph=True, dynamic=False, backend=BACKEND)
    return _COMPILED[key]


def _warmed(engine: Engine) -> Engine:
    """Compiled now, so that a compiler's failure is found before any step is taken."""
    for part, step in zip(engine.parts[:1], engine.steps[:1], strict=True):
        kept, states = _cloned(part.state), [rng.get_state() for rng in part.rngs]
        step(part.state, part.batch(part.draw(1), 0))
        _copy(part.state, kept)
        for rng, state in zip(part.rngs, states, strict=True):
            rng.set_state(state)
    return engine


def probe(method: Neural, net: nn.Module, data: FactorData) -> tuple[list[str], float]:
    """The names of the loss's terms, and the floating-point operations of a step."""
    part = Part([method], [net], data, stacked=False)
    batch = part.batch(part.draw(1), 0) | {"progress": torch.zeros((), device=part.device)}
    state = part.state
    weights = state["params"], state["buffers"], state["hyper"]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        terms = evaluate(method, _Objective(net), tuple(vars(method)), *weights, batch)
    if "loss" not in terms or any(v.shape != () for v in terms.values()):
        shapes = {k: tuple(v.shape) for k, v in terms.items()}
        raise InputError(f"{method.title()}.loss gave {shapes}: wanted scalars, one of them called 'loss'")
    return list(terms), 3.0 * counter.get_total_flops()  # the way back costs twice the way there


# States ---------------------------------------------------------------------------------------------------------


def _start(method: Neural, net: nn.Module) -> State:
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


def _cloned(state: State) -> State:
    return {k: _cloned(v) if isinstance(v, dict) else v.clone() for k, v in state.items()}


def _copy(state: State, source: State) -> None:
    for k, v in state.items():
        _copy(v, source[k]) if isinstance(v, dict) else v.copy_(source[k])


@contextlib.contextmanager
def precise(method: Neural) -> Iterator[None]:
    """Whether float32 products on a GPU may be rounded to 19 bits."""
    allowed = method.precision != "single"
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
