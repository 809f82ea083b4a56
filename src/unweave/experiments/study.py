"""A study is a list of runs in a Python file. What is done is kept, what failed is recorded, what is missing is run."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.experiments.evaluation import DEFAULT_METRICS, EVALUATION_SIZE
from unweave.experiments.failures import clear_failures, failure_path, record_failures
from unweave.experiments.run import Run, read_run, rows
from unweave.experiments.runner import Notify, RunSettings, execute_pack, is_finished
from unweave.methods.base import Method, read_config
from unweave.methods.neural import Neural
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.locks import is_locked, try_lock_all
from unweave.utils.storage import no_room
from unweave.utils.validation import device_lost

MAX_PACK_SIZE = 128  # models that are trained together, where the device has room for them
PATIENCE = 1.0  # seconds between looks at what another process is working on


State = Literal["done", "failed", "running", "waiting"]


def sweep(data: Dataset | str | Path, method: Method | str, **axes: Any) -> list[Run]:
    """The product of the axes, e.g. sweep(SquaresXY(), HessianICA(), n_neighbors=[10, 15, 30], seed=range(5)).

    `data` may also be a catalog name, or the path of your own file; `method` a catalog name, or `mine.py:MyMethod`. An
    axis that is one number or one word is a setting of all runs.
    """
    data = catalog.dataset(data)
    method = catalog.find(catalog.methods, method)() if isinstance(method, str) else method
    grid = ParameterGrid({k: _several(v) for k, v in axes.items()})
    try:
        return [Run(data, clone(method).set_params(**_python(p))) for p in grid]
    except ValueError as error:
        raise InputError(str(error)) from error


def _several(values: Any) -> list[Any]:
    single = isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
    return [values.item() if isinstance(values, np.ndarray) else values] if single else list(values)


def _python(params: dict[str, Any]) -> dict[str, Any]:
    """numpy's numbers as Python's, so that a recipe has one spelling."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()}


def packs(runs: Iterable[Run], workers: int = 1) -> list[list[Run]]:
    """Runs that can be trained together: of one dataset and signature; those without networks by themselves.

    Packs are no larger than they may be for all of so many workers to have some.
    """
    every = {run.key: run for run in runs}
    share = -(-len(every) // max(1, workers))
    groups: dict[str, list[Run]] = {}
    for run in every.values():
        method = run.method
        signature = f"{run.recipe()['data']} {method.signature()}" if isinstance(method, Neural) else run.key
        groups.setdefault(signature, []).append(run)
    models = {key: getattr(group[0].method, "restarts", 1) for key, group in groups.items()}  # of each run
    at_once = {key: max(1, min(share, MAX_PACK_SIZE // max(1, n))) for key, n in models.items()}
    return [group[i : i + at_once[k]] for k, group in groups.items() for i in range(0, len(group), at_once[k])]


def execute(
    runs: Iterable[Run],
    out: str | Path,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    evaluated: int = EVALUATION_SIZE,
    budget: float | None = None,
    retry: bool = False,
    notify: Notify = lambda text: None,
) -> pd.DataFrame:
    """Fit, score and save what is missing under `out`, one folder per key; one row per run comes back.

    Runs that differ in seed and lanes alone are trained together. One that fails is named in a warning, recorded, and
    not tried again unless you say `retry`, or its data were not here; the others go on. Several processes may work on
    the same folder at once.
    With a `budget` in seconds, nothing new is begun after that.
    """
    every, out = {run.key: run for run in runs}, Path(out)
    how = RunSettings(catalog.run_metrics(metrics), evaluated, notify)
    clear_failures(out, every, missing=not retry)
    tally = StudyProgress(list(every), out)
    waiting = packs(every.values())
    while waiting and not tally.spent(budget, len(waiting)):
        left = [pack for pack in waiting if tally.spent(budget) or not execute_missing(pack, out, tally, how)]
        if len(left) == len(waiting) and not tally.spent(budget):
            notify(f"{tally.head()}another process works on what is left: waiting for it")
            time.sleep(PATIENCE)
        waiting = left
    return rows([out / key for key in every if (out / key).is_dir()])


class StudyProgress:
    """How far a study is."""

    def __init__(self, keys: Sequence[str], out: Path) -> None:
        self.keys, self.out, self.start = keys, out, time.perf_counter()
        self.before = len(self.keys) - self.open()

    def open(self) -> int:
        """Runs that are neither done nor failed."""
        return sum(not ((self.out / key).is_dir() or failure_path(self.out, key).is_file()) for key in self.keys)

    def head(self) -> str:
        """What stands before everything that is said."""
        left = self.open()
        failed = sum(failure_path(self.out, key).is_file() for key in self.keys)
        new = len(self.keys) - left - self.before
        seconds = (time.perf_counter() - self.start) / new * left if new else 0.0
        clock = f", about {int(seconds) // 60}:{int(seconds) % 60:02} left" if new and left else ""
        wrong = f", {failed} failed" if failed else ""
        return f"[{len(self.keys) - left - failed} of {len(self.keys)} done{wrong}{clock}] "

    def spent(self, budget: float | None, packs: int = 0) -> bool:
        """Whether the time is over; with what is left to do, this is said."""
        over = budget is not None and time.perf_counter() - self.start >= budget
        if over and packs and (left := self.open()):
            text = f"the budget of {budget:g} s is spent: {plural(left, 'run')} not begun or not finished"
            warnings.warn(f"{text}; run it again to go on", RuntimeWarning, stacklevel=3)
        return over


def execute_missing(pack: Sequence[Run], out: Path, tally: StudyProgress, how: RunSettings) -> bool:
    """Do what is missing of a pack; False where another process has it and it is not finished."""
    todo = [run for run in pack if not failure_path(out, run.key).is_file()]
    with try_lock_all(out, [run.key for run in todo]) as mine:
        if not mine:
            return all((out / run.key).is_dir() for run in todo)
        clear(out, todo)
        try:
            errors = (
                execute_pack(todo, [out / run.key for run in todo], how._replace(head=tally.head())) if todo else {}
            )
        except Exception as error:
            if no_room(error):
                raise InputError(
                    f"cannot write to {out}: {error}; make room and run it again: what is done is kept"
                ) from error
            errors = {run.key: error for run in todo if not is_finished(out / run.key)}
            if not errors:  # it was not a run that failed
                raise
            if device_lost(error):  # and others would fail by it as well
                if "unavailable" not in str(error):  # else no run has to do with it
                    record_failures(errors, todo, out)
                text = f"the GPU does not answer any more ({first_line(error)})"
                raise InputError(f"{text}: run it again to go on: what is done is kept") from error
        record_failures(errors, todo, out)
    return True


def clear(out: Path, runs: Sequence[Run]) -> None:
    """Set aside runs that are damaged, under a name that says so, and remove what a killed process left of others."""
    for run in runs:
        folder = out / run.key
        try:
            if is_finished(folder):
                read_run(folder)
                read_config(folder)
        except InputError as error:
            aside = out / f".{run.key}.damaged"
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
            warnings.warn(f"{error}. It was set aside as {aside} and is run again", RuntimeWarning, stacklevel=4)
    if all(is_finished(out / run.key) for run in runs):
        return
    keys = {run.key for run in runs}
    for left in out.glob(".*.tmp"):
        if left.name.split(".")[1] in keys:  # which are ours, so that no one is writing it
            shutil.rmtree(left, ignore_errors=True)


# Failures -------------------------------------------------------------------------------------------------------


def run_states(runs: Iterable[Run], out: Path) -> dict[str, State]:
    """Where every run stands, by its key."""
    found: dict[str, State] = {}
    for key in {run.key: run for run in runs}:
        if (out / key).is_dir():
            found[key] = "done"
        elif failure_path(out, key).is_file():
            found[key] = "failed"
        else:
            found[key] = "running" if is_locked(out, key) else "waiting"
    return found
