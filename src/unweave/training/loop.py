"""The training loop: a pack of models with one signature takes its steps together.

A pack may hold a single model. Plans and noise are sampled for a chunk of steps at once, from one generator per model,
so a model does not depend on the pack it is trained in. The loss is a pure function of weights and batch. No number is
read on the host until a chunk is over, or a few seconds have passed where steps are slow.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from unweave.data.core import FactorData
from unweave.training.adam import HISTORY_ROWS
from unweave.training.checkpoint import Checkpoint
from unweave.training.memory import check_training_memory
from unweave.training.pack import CHUNK, StepRunner, Trainable
from unweave.training.step import prepared_key
from unweave.training.strategies import allow_tf32, choose_runner, use_threads
from unweave.utils.errors import InputError, plural
from unweave.utils.storage import source_hash

SECONDS_BETWEEN_REPORTS = 5  # while the steps of a chunk are slow

Strategy = Literal["auto", "loop", "stack", "fork"]
Compile = Literal["auto", "always", "never"]


class Progress(NamedTuple):
    """State of a training run after a step.

    Example:
        >>> progress = Progress(100, 1_000, {"loss": [3.0, 4.0], "kl": [0.5, 0.1]}, 10.0, "stack")
        >>> progress.text("beta-vae")
        'beta-vae: step 100 of 1,000, loss 3.5, 10 steps/s (stack), 1:30 left'
    """

    step: int
    """Steps taken so far."""
    steps: int
    """Steps of the whole run."""
    terms: dict[str, list[float]]
    """Every term of the loss at the last step: one value per lane, in the order of the pack."""
    steps_per_second: float
    """Mean speed since training started or resumed."""
    strategy: str
    """Strategy of the steps: stack, fork or loop, compiled or not."""

    @property
    def loss(self) -> float:
        """Mean loss of the lanes whose loss is finite; NaN if there are none."""
        finite = [value for value in self.terms["loss"] if math.isfinite(value)]
        return fmean(finite) if finite else math.nan

    def text(self, name: str) -> str:
        """Return one line: name, step, loss, speed and the time left."""
        seconds_left = int((self.steps - self.step) / max(self.steps_per_second, 1e-9))
        speed = f"{self.steps_per_second:,.0f}" if self.steps_per_second >= 10 else f"{self.steps_per_second:.1f}"
        return (
            f"{name}: step {self.step:,} of {self.steps:,}, loss {self.loss:.4g}, {speed} steps/s ({self.strategy}), "
            f"{seconds_left // 60}:{seconds_left % 60:02} left"
        )


Callback = Callable[[Progress], None]
"""Called after every chunk of steps, and every few seconds while steps are slow."""


class Failure(NamedTuple):
    """A model whose loss stopped being finite; the others of its pack were trained to the end."""

    name: str
    step: int
    recipe: dict[str, object]

    def text(self) -> str:
        """Return a sentence that names the step and the settings, with advice."""
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
    callback: Callback | None = None,
) -> list[Failure | None]:
    """Train every method of the pack in place.

    Args:
        pack: Methods that differ only in their seed and in fields annotated `Lane`.
        data: The data that all of them learn from.
        checkpoint: File for the state of training. A run that finds its own file resumes and ends as if it had never
            stopped. The file is not removed at the end.
        note: Text stored in the checkpoint.
        every: Steps between two checkpoints; slow runs are saved more often.
        compiling: Whether to compile the steps; "auto" compiles long runs.
        strategy: How to take the steps, see `strategies`; by default the variable UNWEAVE_STRATEGY, or "auto".
        callback: Called with the `Progress`. An exception that it raises stops training and keeps the checkpoint.

    Returns:
        For each method None, or how it failed.
    """
    steps = pack[0].steps
    data = _prepare_pack(pack, data)
    check_training_memory(pack)
    nets = [initialize_network(method).to(pack[0].resolve_device()) for method in pack]
    window = -(-steps // HISTORY_ROWS)
    saver = Checkpoint(checkpoint, _describe_run(pack, data) if checkpoint else None, note)
    chosen = strategy or os.environ.get("UNWEAVE_STRATEGY", "auto")
    runner = choose_runner(
        pack, nets, data, window=window, compiling=compiling, strategy=chosen, previous=saver.previous_strategy()
    )
    done = saver.restore(runner.groups, runner.strategy)
    reporter = Reporter(runner, done, steps, callback)
    while done < steps:
        begin = done - done % CHUNK
        count = min(CHUNK, steps - begin)
        with use_threads(runner.threads):
            runner.run(count, partial(_after_step, runner, reporter, saver, begin, every), done - begin)
        done = begin + count
        if not reporter.report(done):
            break  # no model is finite any more
        saver.save_if_due(runner.groups, done, every, last=done == steps)
    failures = _store_results(runner, pack, nets, window, done)
    del runner, reporter  # frees the device's memory for `after_training`
    _finish_methods(pack, failures, data)
    return failures


class Reporter:
    """Reports progress after every chunk of steps, and within a chunk whose steps are slow."""

    def __init__(self, runner: StepRunner, first_step: int, steps: int, callback: Callback | None) -> None:
        self.runner, self.first_step, self.steps, self.callback = runner, first_step, steps, callback
        self.start = self.last_report = time.perf_counter()

    def report(self, step: int) -> bool:
        """Pass the progress to the callback; return whether any model is still finite."""
        values = self.runner.last_values()
        self.last_report = time.perf_counter()
        if self.callback is not None:
            terms = dict(zip(self.runner.terms, values[:, :-1].T.tolist(), strict=True))
            speed = (step - self.first_step) / (self.last_report - self.start)
            self.callback(Progress(step, self.steps, terms, speed, self.runner.strategy))
        return bool((values[:, -1] == 0).any())

    def report_if_due(self, done: int, more: int) -> None:
        """Report `more` steps after the `done` ones, if the last report is some seconds old."""
        if time.perf_counter() - self.last_report > SECONDS_BETWEEN_REPORTS:
            self.report(done + more)


def _after_step(runner: StepRunner, reporter: Reporter, saver: Checkpoint, begin: int, every: int, count: int) -> None:
    """Report and save within a chunk, `count` steps after its `begin`, if it is time."""
    reporter.report_if_due(begin, count)
    saver.save_if_due(runner.groups, begin + count, every, last=False)


def initialize_network(method: Trainable) -> nn.Module:
    """Build the network with the weights of its seed, on the CPU so that every device starts with the same ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(method.seed)
        return method.build(method.shape_)


# Before the steps ----------------------------------------------------------------------------------------------------


def _prepare_pack(pack: Sequence[Trainable], data: FactorData) -> FactorData:
    """Check methods and data, let every method prepare itself; return the data on the device of training."""
    first = pack[0]
    if len({method.pack_signature() for method in pack}) > 1:
        raise InputError("a pack holds methods that differ in seed and lanes alone; see `pack_signature`")
    data = data.to(torch.device(first.resolve_device()))
    if first.is_cacheable():
        with allow_tf32(False):  # observations are the same for every precision
            data = data.materialize()
    first.check_data(data)
    for method in pack:
        method.reset()
        method.prepare(data)
    if len({prepared_key(method) for method in pack}) > 1:
        raise InputError(f"{first.name}.prepare set different values in a pack, where all share one loss; train alone")
    return data


def _describe_run(pack: Sequence[Trainable], data: FactorData) -> list[Any]:
    """Return what identifies a run, by which a checkpoint knows whether it belongs to it."""
    first = pack[0]
    rng = Generator(first.resolve_device()).manual_seed(0)
    x = data.render(data.sample(16, rng))
    data_hash = hashlib.sha256(x.float().cpu().contiguous().numpy().tobytes()).hexdigest()
    return [[method.recipe() for method in pack], source_hash(type(first)), prepared_key(first), data_hash]


# After the steps -----------------------------------------------------------------------------------------------------


def _store_results(
    runner: StepRunner, pack: Sequence[Trainable], nets: Sequence[nn.Module], window: int, done: int
) -> list[Failure | None]:
    """Give every method its trained network and its history; return the failures."""
    failures: list[Failure | None] = []
    how = f"{runner.strategy} on {runner.device.type}"
    how += f", {plural(runner.threads, 'thread')}" if runner.device.type == "cpu" else ""
    lanes = [lane for group in runner.groups for lane in group.lane_states()]
    for method, net, state in zip(pack, nets, lanes, strict=True):
        weights = state.get("averages", state["params"])
        net.load_state_dict(weights | state["buffers"], strict=False)  # tied weights have one name here
        history = _history(state["log"], window, done).cpu()
        method.store_training(net.cpu().eval(), runner.terms, history, how)
        is_finite = all(bool(p.isfinite().all()) for p in net.parameters())
        failed_step = int(state["failed"]) or (0 if is_finite else done)
        failures.append(Failure(method.name, failed_step, method.recipe()) if failed_step else None)
    return failures


def _history(log: Tensor, window: int, steps: int) -> Tensor:
    """Turn sums over windows into (rows, 1 + terms): the last step of each window, and the means over it."""
    rows = -(-steps // window)
    last = torch.tensor([min((i + 1) * window, steps) for i in range(rows)], device=log.device)
    count = last.diff(prepend=last.new_zeros(1))
    return torch.cat([last[:, None].to(log), log[:rows] / count[:, None]], 1)


def _finish_methods(pack: Sequence[Trainable], failures: Sequence[Failure | None], data: FactorData) -> None:
    """Let every method that did not fail learn from its trained network, on the CPU."""
    data = data.to("cpu")
    for method, failure in zip(pack, failures, strict=True):
        if failure is None:
            method.after_training(data)
