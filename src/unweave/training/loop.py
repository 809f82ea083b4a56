"""The only training loop: a pack of models with one signature takes its steps together. One is a pack of one.

Plans and noise are drawn for a chunk of steps at once, from one generator per model, so a run does not depend on the
pack it sits in. The loss is a pure function of weights and batch; nothing in the loop looks at a number on the host
until a chunk is over, or on a CPU for some seconds.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.training.checkpoint import Checkpoint
from unweave.training.pack import LaneGroup, Trainable
from unweave.training.step import prepared_key
from unweave.training.strategies import StepRunner, choose, rounded
from unweave.utils.errors import InputError
from unweave.utils.source import source_hash

CHUNK = 100  # steps whose plans and noise are drawn at once: part of what a seed means
SILENCE = 5  # seconds after which somebody who waits wants to hear something
MOST_ROWS = 1_000  # of history; a longer run keeps means over windows of steps

Strategy = Literal["auto", "loop", "stack", "fork"]
Compile = Literal["auto", "always", "never"]


class Progress(NamedTuple):
    """What there is to say of a run."""

    step: int
    steps: int
    loss: float
    """of the last step, the mean over all models that are still finite"""
    rate: float
    """steps per second since the start or the restart"""
    how: str = ""
    """the strategy: stack, fork or loop, compiled or not"""

    def text(self, name: str) -> str:
        """In a line."""
        left = (self.steps - self.step) / max(self.rate, 1e-9)
        clock = f"{int(left) // 60}:{int(left) % 60:02}"
        speed = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.1f}"
        speed += " steps/s" + (f" ({self.how})" if self.how else "")
        return f"{name}: step {self.step:,} of {self.steps:,}, loss {self.loss:.4g}, {speed}, {clock} left"


class Watch:
    """Tells how far a run is: after every chunk, and within one whose steps are slow."""

    def __init__(self, engine: StepRunner, begun: int, steps: int, report: Callable[[Progress], None]) -> None:
        self.engine, self.begun, self.steps, self.report = engine, begun, steps, report
        self.start = self.told = time.perf_counter()

    def look(self, step: int) -> bool:
        """Say what there is to say; whether any model is still finite."""
        loss, alive = _look(self.engine.parts)
        self.told = time.perf_counter()
        rate = (step - self.begun) / (self.told - self.start)
        self.report(Progress(step, self.steps, loss, rate, self.engine.name))
        return alive

    def glance(self, done: int, more: int) -> None:
        """The same, if nothing was said for long."""
        if time.perf_counter() - self.told > SILENCE:
            self.look(done + more)


class Failure(NamedTuple):
    """A model whose loss stopped being finite; the others of its pack went on."""

    name: str
    step: int
    recipe: dict[str, object]

    def text(self) -> str:
        """In a sentence."""
        recipe = ", ".join(f"{k}={v}" for k, v in self.recipe.items())
        return (
            f"the loss of {self.name} is not finite from step {self.step:,} on ({recipe}): try a smaller lr, or clip=1"
        )


def train(
    pack: Sequence[Trainable],
    data: FactorData,
    *,
    checkpoint: Path | None = None,
    note: str = "",
    every: int = 500,
    compiling: Compile = "auto",
    strategy: Strategy | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> list[Failure | None]:
    """Fit every method of the pack in place; for each, None or how it failed.

    With `checkpoint`, the state is kept in that file about every so many steps, and at the end; a run that finds its
    file goes on from there and ends as if it had never stopped. The file, which has the `note`, is yours to remove.

    `compiling` and `strategy` are chosen by themselves: see `engine`. The variable UNWEAVE_STRATEGY chooses for all.
    """
    first = pack[0]
    if any(method.signature() != first.signature() for method in pack):
        raise InputError("a pack holds methods that differ in seed and lanes alone; see `signature`")
    device = torch.device(first.resolve_device())
    data = data.to(device)
    if first.is_cacheable():
        with rounded(False):  # observations are the same for every precision
            data = data.materialize()
    first.check_data(data)
    for method in pack:
        method.reset()
        method.prepare(data)
    if any(prepared_key(method) != prepared_key(first) for method in pack):
        raise InputError(f"{first.name}.prepare set different values in a pack, where all share one loss; train alone")
    nets = [seeded(method).to(device) for method in pack]
    window = -(-first.steps // MOST_ROWS)
    chosen = strategy or os.environ.get("UNWEAVE_STRATEGY", "auto")
    about = [source_hash(type(first)), prepared_key(first), _glimpse(data, device)]
    keeper = Checkpoint(checkpoint, [[method.recipe() for method in pack], *about], note)
    engine = choose(pack, nets, data, window=window, compiling=compiling, strategy=chosen, before=keeper.how())
    parts = engine.parts
    done = keeper.restore(parts, engine.name)
    watch = Watch(engine, done, first.steps, report)
    while done < first.steps:
        k = min(CHUNK, first.steps - done)
        engine.run(k, partial(watch.glance, done))
        done += k
        if not watch.look(done):
            break
        keeper.keep(parts, done, every, last=done == first.steps)
    failures = _finish(engine, pack, nets, window, done)
    del engine, parts  # methods may want the room
    home = data.to("cpu")
    for method, failure in zip(pack, failures, strict=True):
        if failure is None:
            method.after_training(home)
    return failures


def seeded(method: Trainable) -> nn.Module:
    """The network as its seed starts it, made on the CPU so that every device starts alike."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(method.seed)
        return method.build(method.shape_)


def _glimpse(data: FactorData, device: torch.device) -> str:
    """A few observations, by which a checkpoint knows its data."""
    x = data.render(data.sample(16, Generator(device).manual_seed(0)))
    return hashlib.sha256(x.float().cpu().contiguous().numpy().tobytes()).hexdigest()


def _look(parts: Sequence[LaneGroup]) -> tuple[float, bool]:
    """The mean loss of the models that are still finite, and whether there are any."""
    loss = torch.cat([part.state["latest"].reshape(-1) for part in parts])
    finite = loss.isfinite() & torch.cat([(part.state["failed"] == 0).reshape(-1) for part in parts])
    return float(loss[finite].mean()) if finite.any() else float("nan"), bool(finite.any())


def _finish(
    engine: StepRunner, pack: Sequence[Trainable], nets: Sequence[nn.Module], window: int, done: int
) -> list[Failure | None]:
    """Hand every method its weights and its history, and say which failed."""
    failures: list[Failure | None] = []
    lanes = [lane for part in engine.parts for lane in part.lanes()]
    for method, net, state in zip(pack, nets, lanes, strict=True):
        net.load_state_dict(state["params"] | state["buffers"], strict=False)  # tied weights have one name here
        history = _history(state["log"], window, done).cpu()
        method.store_training(net.cpu().eval(), engine.terms, history, f"{engine.name} on {engine.device.type}")
        step = int(state["failed"])
        broken = not all(bool(p.isfinite().all()) for p in net.parameters())
        bad = step or (done if broken else 0)
        failures.append(Failure(method.name, bad, method.recipe()) if bad else None)
    return failures


def _history(log: Tensor, window: int, steps: int) -> Tensor:
    """Sums over windows -> (rows, 1 + terms): the last step of each window, and the means over it."""
    rows = -(-steps // window)
    last = torch.tensor([min((i + 1) * window, steps) for i in range(rows)], device=log.device)
    count = last.diff(prepend=last.new_zeros(1))
    return torch.cat([last[:, None].to(log), log[:rows] / count[:, None]], 1)


def warn_of(failures: Sequence[Failure | None]) -> None:
    """One warning for each model of a pack that failed."""
    for failure in failures:
        if failure is not None:
            warnings.warn(failure.text(), RuntimeWarning, stacklevel=3)
