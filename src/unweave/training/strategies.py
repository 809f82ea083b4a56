"""Strategies for the steps of a pack, the choice of the fastest one, and the number of threads on a CPU.

All strategies compute the same:

- `stack`: all models as one, by `vmap`. It needs the compiler: without it, `vmap` is slower than one by one.
- `fork`: every model on its own stream, all captured in one CUDA graph. Best for convolutions on a GPU.
- `loop`: one model after the other. Used without compiler and GPU, and for convolutions on a CPU, whose library is
  faster than the matrix products that a stack makes of them.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unweave.data.core import FactorData
from unweave.training.pack import LaneGroup, StepRunner, Trainable
from unweave.training.step import LossFacts, compiled_step, inspect_loss, make_step, prepared_key
from unweave.utils.errors import InputError, first_line
from unweave.utils.validation import is_device_lost, is_out_of_memory

Candidate = tuple[str, bool]
"""A strategy, and whether it is compiled."""
MakeRunner = Callable[[Candidate], StepRunner]

MIN_SECONDS_TO_COMPILE = 60  # estimated time of a run on a CPU above which half a minute of compiling pays
CPU_FLOPS = 2e10  # floating-point operations per second for that estimate; the same everywhere, to be reproducible
SECONDS_PER_PARAMETER = 1e-4  # overhead of an eager step for every weight tensor, however small
MIN_STEPS_TO_COUNT = 300  # steps of all models; for fewer, counting operations takes as long as training
MIN_STEPS_TO_RACE = 1_000  # a shorter run on a GPU is over before a race
MIN_SECONDS_TO_RACE = 150  # on a GPU, of which a race with two compilations is a small share
FLOPS_PER_THREAD = 1e9  # of a step: with less to do, threads wait for each other longer than they compute
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
CPU_FOLDER = Path("/sys/devices/system/cpu")
_WINNERS: dict[tuple[Any, ...], Candidate] = {}  # of earlier races


def choose_runner(
    pack: Sequence[Trainable],
    nets: Sequence[nn.Module],
    data: FactorData,
    *,
    window: int,
    compiling: str,
    strategy: str,
    previous: str = "",
) -> StepRunner:
    """Return a runner with the requested strategy, or with the one that is probably fastest.

    On a CPU it is chosen by rule, so that a restarted run takes the same path: a stack without convolutions, otherwise
    a loop; compiled if the run is long. On a GPU it is measured, or the `previous` one for a run that was stopped.
    """
    first, device = pack[0], next(nets[0].parameters()).device
    _check_strategy(strategy, device)
    total_steps = len(pack) * first.steps
    facts = inspect_loss(first, nets[0], data, count_flops=total_steps >= MIN_STEPS_TO_COUNT)
    make = partial(_make_runner, pack, nets, data, facts, window)
    has_convs = any(isinstance(m, nn.Conv2d | nn.ConvTranspose2d) for m in nets[0].modules())
    if device.type == "cuda":
        if previous and strategy == "auto":
            return make((previous.partition(",")[0], previous.endswith("compiled")))
        key = (type(first), first.pack_signature(), prepared_key(first), len(pack), torch.cuda.get_device_name(device))
        return _choose_on_gpu(make, key, first.steps, has_convs, compiling, strategy)
    seconds = total_steps * (SECONDS_PER_PARAMETER * len(list(nets[0].parameters())) + facts.flops / CPU_FLOPS)
    is_long = total_steps >= MIN_STEPS_TO_COUNT and seconds > MIN_SECONDS_TO_COMPILE
    if compiling == "always" or (compiling == "auto" and is_long):
        fastest = "stack" if len(pack) > 1 and not has_convs else "loop"
        try:
            runner = make((fastest if strategy == "auto" else strategy, True))
            with use_threads(runner.threads):  # compiled code is made for a number of threads
                runner.warm_up()
            return runner
        except Exception as error:  # no compiler, or a loss that is not one graph
            if compiling == "always":
                raise
            text = f"{first.name} cannot be compiled here and trains model by model, slower: {first_line(error)}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    return make(("loop" if strategy == "auto" else strategy, False))


def _check_strategy(strategy: str, device: torch.device) -> None:
    if strategy not in ("auto", "loop", "stack", "fork"):
        raise InputError(f"strategy={strategy!r}: expected 'auto', 'loop', 'stack' or 'fork'")
    if strategy == "fork" and device.type != "cuda":
        raise InputError("strategy='fork' needs a CUDA device; on a CPU there are 'loop' and 'stack'")


def _make_runner(
    pack: Sequence[Trainable],
    nets: Sequence[nn.Module],
    data: FactorData,
    facts: LossFacts,
    window: int,
    candidate: Candidate,
) -> StepRunner:
    """Build lane groups and their step. All groups share one compiled function: they differ in tensors only."""
    strategy, compiled = candidate
    stacked = strategy == "stack"
    slices = [slice(None)] if stacked else [slice(i, i + 1) for i in range(len(pack))]
    groups = [LaneGroup(pack[s], nets[s], data, stacked) for s in slices]
    rows, terms = -(-pack[0].steps // window), facts.terms
    for group in groups:
        lanes = (len(group.methods),) if stacked else ()
        zeros = partial(torch.zeros, device=group.device)
        group.state |= {"log": zeros((*lanes, rows, len(terms))), "terms": zeros((*lanes, len(terms)))}
        group.state |= {"failed": zeros(lanes), "step": zeros((), dtype=torch.int64)}
    if compiled:
        step = compiled_step(pack[0], nets[0], stacked, window, len(groups[0].methods))
    else:
        step = make_step(pack[0], nets[0], stacked, window)
    on_cpu = groups[0].device.type == "cpu"
    threads = choose_threads(facts.layer_flops * len(groups[0].methods)) if on_cpu else torch.get_num_threads()
    return StepRunner(groups, step, terms, f"{strategy}, compiled" if compiled else strategy, threads)


# Threads --------------------------------------------------------------------------------------------------------------


def choose_threads(flops: float) -> int:
    """Return the number of threads for steps of so many floating-point operations, at most torch's own number.

    It depends on the step and the machine, not on the load, so that a resumed run computes the same to the bit. A
    number that the user has set, by OMP_NUM_THREADS, MKL_NUM_THREADS or `torch.set_num_threads`, is returned unchanged.
    """
    current = torch.get_num_threads()
    is_set = any(name in os.environ for name in THREAD_VARIABLES) or current not in default_thread_counts()
    return current if is_set else max(1, min(current, int(flops / FLOPS_PER_THREAD)))


def default_thread_counts() -> set[int]:
    """Return the numbers that torch may begin with: that of usable logical cores, and that of physical ones."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)  # on Linux only
    cores = affinity(0) if affinity else set(range(os.cpu_count() or 1))
    paths = [CPU_FOLDER / f"cpu{core}" / "topology" / "thread_siblings_list" for core in cores]
    physical = {path.read_text() if path.is_file() else str(path) for path in paths}
    return {len(cores), len(physical)}


@contextlib.contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Let torch use a number of threads, and restore its former number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Races on a GPU -------------------------------------------------------------------------------------------------------


def _choose_on_gpu(
    make: MakeRunner, key: tuple[Any, ...], steps: int, has_convs: bool, compiling: str, strategy: str
) -> StepRunner:
    """Choose by a short race if the run is long; the winner is reused for packs with the same key."""
    compiled, models = compiling == "always", key[3]
    usual = "fork" if has_convs or models == 1 else "stack"
    if strategy != "auto" or steps < MIN_STEPS_TO_RACE:
        return make((usual if strategy == "auto" else strategy, compiled))
    key = (*key, compiling)
    if key not in _WINNERS:
        _WINNERS[key] = _find_fastest(make, (usual, compiled), steps, compiling)
    return make(_WINNERS[key])


def _find_fastest(make: MakeRunner, usual: Candidate, steps: int, compiling: str) -> Candidate:
    """Time the usual strategy, and the others if it fails or the run is long; return the fastest."""
    seconds = _time_candidates([usual], make)
    if not seconds or min(seconds.values()) * steps > MIN_SECONDS_TO_RACE:
        choices = {"always": (True,), "never": (False,)}.get(compiling, (True, False))
        others = [("fork", False), ("fork", True), ("stack", True)]
        seconds |= _time_candidates([c for c in others if c[1] in choices and c != usual], make)
    if not seconds:
        raise InputError("no strategy works on this device (see the warnings): try device='cpu'")
    return min(seconds, key=lambda candidate: seconds[candidate])


def _time_candidates(candidates: Sequence[Candidate], make: MakeRunner) -> dict[Candidate, float]:
    """Return the seconds per step of every candidate that works here; warn about the others."""
    seconds, memory_error = {}, ""
    for candidate in candidates:
        try:
            seconds[candidate] = _seconds_per_step(make(candidate))
        except Exception as error:
            if is_device_lost(error):
                raise
            memory_error = first_line(error) if is_out_of_memory(error) else memory_error
            text = f"strategy {candidate[0]!r} was left out: {first_line(error)}"
            warnings.warn(text, RuntimeWarning, stacklevel=5)
    if memory_error and not seconds:  # callers may try again with fewer models
        raise torch.OutOfMemoryError(memory_error)
    return seconds


def _seconds_per_step(runner: StepRunner, steps: int = 30) -> float:
    """Time steps on copies of the models: the median of three rounds, after the capture."""
    runner.run(steps)
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize(runner.device)
        start = time.perf_counter()
        runner.run(steps)
        torch.cuda.synchronize(runner.device)
        seconds.append((time.perf_counter() - start) / steps)
    return statistics.median(seconds)


# Precision ------------------------------------------------------------------------------------------------------------


def matmul_precision(method: Trainable) -> contextlib.AbstractContextManager[None]:
    """Return a context with the precision of matrix products that a method asks for."""
    return allow_tf32(method.precision != "single")


@contextlib.contextmanager
def allow_tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 matrix products (10 bits of fraction instead of 23) on a GPU."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
