"""Strategies for the steps of a pack, the choice of the fastest one, and the number of threads on a CPU.

All strategies compute the same:

- `stack`: all models as one, by `vmap`. It needs the compiler: without it, `vmap` is slower than one by one. Compiled,
  it is the fastest on a GPU, and on a CPU for networks without convolutions.
- `fork`: every model on its own stream, all captured in one CUDA graph. Best for convolutions without a compiler.
- `loop`: one model after the other. Used without compiler and GPU, and for convolutions on a CPU, whose library is
  faster than the matrix products that a stack makes of them.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import nn

from unweave.data.core import FactorData
from unweave.training.adam import initial_log
from unweave.training.compile_cache import step_file
from unweave.training.pack import CHUNK, LaneGroup, StepRunner, Trainable
from unweave.training.step import (
    LossFacts,
    compiled_step,
    has_convs,
    inspect_loss,
    make_step,
    network_device,
    step_key,
)
from unweave.utils.errors import InputError, first_line
from unweave.utils.files import is_out_of_memory
from unweave.utils.validation import is_device_lost

Candidate = tuple[str, bool]
"""A strategy, and whether it is compiled."""

MIN_SECONDS_TO_COMPILE = 60  # estimated time of a run above which half a minute of compiling pays
MIN_SECONDS_IF_CACHED = 20  # the same on a GPU for a step that was compiled before
CPU_FLOPS = 2e10  # floating-point operations per second for that estimate; the same everywhere, to be reproducible
GPU_FLOPS = 1.5e13  # of steps that are not compiled
SECONDS_PER_PARAMETER = 1e-4  # overhead of an eager step for every weight tensor, however small
GPU_SECONDS_PER_PARAMETER = 2e-5  # of a captured step, of all models
MIN_STEPS_TO_COUNT = 300  # steps of all models; for fewer, counting operations takes as long as training
FLOPS_PER_THREAD = 1e9  # of a step: with less to do, threads wait for each other longer than they compute
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
CPU_FOLDER = Path("/sys/devices/system/cpu")


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

    It is chosen by rule, from an estimate of how long the run takes. So a restarted run takes the same path; on a GPU,
    where the rule also depends on what is compiled already, it takes the `previous` one.
    """
    first, device = pack[0], network_device(nets[0])
    _check_strategy(strategy, device)
    count_flops = len(pack) * first.steps >= MIN_STEPS_TO_COUNT
    facts = inspect_loss(first, nets[0], data, count_flops=count_flops)
    make = partial(_make_runner, pack, nets, data, facts, window)
    on_gpu, convs = device.type == "cuda", has_convs(nets[0])
    if on_gpu and previous and strategy == "auto":
        return make((previous.partition(",")[0], previous.endswith("compiled")))
    pays = count_flops and _compiling_pays(first, nets[0], facts, len(pack))
    if compiling == "always" or (compiling == "auto" and pays):
        fastest = "stack" if on_gpu or (len(pack) > 1 and not convs) else "loop"
        try:
            runner = make((fastest if strategy == "auto" else strategy, True))
            with use_threads(runner.threads):  # compiled code is made for a number of threads
                runner.warm_up(min(CHUNK, first.steps))
            return runner
        except Exception as error:  # no compiler, or a loss that is not one graph
            if compiling == "always" or is_out_of_memory(error) or is_device_lost(error):
                raise
            text = f"{first.name} cannot be compiled here and trains model by model, slower: {first_line(error)}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    usual = "loop" if not on_gpu else "fork" if convs or len(pack) == 1 else "stack"
    return make((usual if strategy == "auto" else strategy, False))


def _compiling_pays(method: Trainable, net: nn.Module, facts: LossFacts, models: int) -> bool:
    """Return whether a run without compiling would take so long that compiling is a small share of it."""
    parameters = len(list(net.parameters()))
    if network_device(net).type == "cpu":
        seconds = models * (SECONDS_PER_PARAMETER * parameters + facts.flops / CPU_FLOPS)
        return method.steps * seconds > MIN_SECONDS_TO_COMPILE
    seconds = GPU_SECONDS_PER_PARAMETER * parameters + models * facts.flops / GPU_FLOPS
    is_cached = step_file(step_key(method, models, stacked=True)).exists()
    return method.steps * seconds > (MIN_SECONDS_IF_CACHED if is_cached else MIN_SECONDS_TO_COMPILE)


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
    terms = facts.terms
    for group in groups:
        lanes = (len(group.methods),) if stacked else ()
        group.state |= initial_log(lanes, len(terms), pack[0].steps, window, group.device)
    if compiled:
        step = compiled_step(pack[0], nets[0], stacked, len(groups[0].methods))
    else:
        step = make_step(pack[0], nets[0], stacked)
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
