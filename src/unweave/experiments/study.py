"""Studies: many runs, of which only the missing ones are executed, by any number of processes."""

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
from torch import nn

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.experiments.evaluation import DEFAULT_METRICS, EVALUATION_SIZE
from unweave.experiments.failures import Errors, clear_failures, failure_path, read_failure, record_failures
from unweave.experiments.run import Run, read_run, rows
from unweave.experiments.runner import Notify, RunSettings, execute_pack, ignore, is_finished
from unweave.methods.base import Method
from unweave.methods.persistence import read_config
from unweave.training.checkpoint import read_note, read_step
from unweave.training.loop import Callback
from unweave.utils.atomic import describe_write_error, is_disk_full
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.locks import is_locked, try_lock_all
from unweave.utils.manifest import check_manifest
from unweave.utils.validation import is_device_lost

MAX_PACK_SIZE = 128  # models that are trained together, if the device has room for them
POLL_INTERVAL = 1.0  # seconds between checks of runs that another process executes

State = Literal["done", "failed", "running", "waiting"]


def sweep(data: Dataset | str | Path, method: Method | str, **axes: Any) -> list[Run]:
    """Return one run for each combination of the axes.

    Args:
        data: A dataset, a catalog name, or the path of your own file.
        method: A method, a catalog name, or `mine.py:MyMethod`.
        axes: Values of settings of the method. A single number or word is a setting of all runs.

    Example:
        >>> import unweave
        >>> len(unweave.sweep("squares-xy", "hessian-ica", n_neighbors=[10, 15, 30], seed=range(5)))
        15
    """
    data = catalog.dataset(data)
    method = catalog.find(catalog.methods, method)() if isinstance(method, str) else method
    grid = ParameterGrid({name: _as_list(values) for name, values in axes.items()})
    try:
        return [Run(data, clone(method).set_params(**_as_python(point))) for point in grid]
    except ValueError as error:
        raise InputError(str(error)) from error


def _as_list(values: Any) -> list[Any]:
    is_single = (
        isinstance(values, str | nn.Module) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
    )
    if is_single:
        return [values.item() if isinstance(values, np.ndarray) else values]
    return list(values)


def _as_python(params: dict[str, Any]) -> dict[str, Any]:
    """Return numpy's numbers as Python's, so that equal settings have equal recipes."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()}


def execute(
    runs: Iterable[Run],
    out: str | Path,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    evaluated: int = EVALUATION_SIZE,
    budget: float | None = None,
    retry: bool = False,
    notify: Notify = ignore,
    callback: Callback | None = None,
) -> pd.DataFrame:
    """Train, score and write the runs that are missing under `out`; return one row per finished run.

    Runs that differ only in seed and lanes are trained together. A run that fails is named in a warning and recorded;
    the others go on. Several processes may work on one folder.

    Args:
        runs: Runs of any datasets and methods, e.g. of `sweep`.
        out: Folder with one run folder per key.
        metrics: Catalog names of the metrics to compute.
        evaluated: Observations to score on, if the data are a generator or a large grid.
        budget: Seconds after which no new pack is started.
        retry: Also repeat runs that failed before; runs whose data were missing are always repeated.
        notify: Receives progress messages.
        callback: Receives the progress of every training: every loss term of every lane.

    Example:
        >>> import tempfile, unweave
        >>> runs = unweave.sweep(unweave.datasets.SquaresXY(points=50), "pca", latent_dim=[1, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = unweave.execute(runs, folder, metrics=["mcc"])
        >>> table["latent_dim"].tolist()
        [1, 2]
    """
    by_key, out = {run.key: run for run in runs}, Path(out)
    settings = RunSettings(catalog.run_metrics(metrics), evaluated, notify, callback)
    clear_failures(out, by_key, missing=not retry)
    progress = StudyProgress(list(by_key), out)
    waiting = packs(by_key.values())
    while waiting and not progress.is_over(budget, len(waiting)):
        left = [
            pack for pack in waiting if progress.is_over(budget) or not execute_missing(pack, out, progress, settings)
        ]
        if len(left) == len(waiting) and not progress.is_over(budget):
            notify(f"{progress.prefix()}waiting for another process that works on the remaining runs")
            time.sleep(POLL_INTERVAL)
        waiting = left
    return rows([out / key for key in by_key if (out / key).is_dir()])


def packs(runs: Iterable[Run], workers: int = 1) -> list[list[Run]]:
    """Group runs that can be trained together: same data, same signature; a run without a network is alone.

    Packs are small enough for every worker to get one.
    """
    by_key = {run.key: run for run in runs}
    share = -(-len(by_key) // max(1, workers))
    groups: dict[str, list[Run]] = {}
    for run in by_key.values():
        signature = run.method.pack_signature()
        key = run.key if signature is None else f"{run.recipe()['data']} {signature}"
        groups.setdefault(key, []).append(run)
    every = []
    for group in groups.values():
        models_per_run = max(1, group[0].method.restarts)
        size = max(1, min(share, MAX_PACK_SIZE // models_per_run))
        every += [group[i : i + size] for i in range(0, len(group), size)]
    return every


class StudyProgress:
    """Counts of finished and failed runs, and the time since the start."""

    def __init__(self, keys: Sequence[str], out: Path) -> None:
        self.keys, self.out, self.start = keys, out, time.perf_counter()
        self.done_before = len(self.keys) - self.open_runs()

    def open_runs(self) -> int:
        """Return the number of runs that are neither finished nor failed."""
        return sum(not ((self.out / key).is_dir() or failure_path(self.out, key).is_file()) for key in self.keys)

    def prefix(self) -> str:
        """Return the start of every progress message, e.g. "[3 of 12 done, 1 failed, about 2:10 left] "."""
        left = self.open_runs()
        failed = sum(failure_path(self.out, key).is_file() for key in self.keys)
        new = len(self.keys) - left - self.done_before
        seconds = int((time.perf_counter() - self.start) / new * left) if new else 0
        clock = f", about {seconds // 60}:{seconds % 60:02} left" if new and left else ""
        wrong = f", {failed} failed" if failed else ""
        return f"[{len(self.keys) - left - failed} of {len(self.keys)} done{wrong}{clock}] "

    def is_over(self, budget: float | None, waiting: int = 0) -> bool:
        """Return whether the budget is spent; warn if packs are still waiting."""
        over = budget is not None and time.perf_counter() - self.start >= budget
        if over and waiting and (left := self.open_runs()):
            text = f"the budget of {budget:g} s is spent: {plural(left, 'run')} not started or not finished"
            warnings.warn(f"{text}; repeat the command to resume", RuntimeWarning, stacklevel=3)
        return over


def execute_missing(pack: Sequence[Run], out: Path, progress: StudyProgress, settings: RunSettings) -> bool:
    """Execute what is missing of a pack; return False if another process works on it."""
    todo = [run for run in pack if not failure_path(out, run.key).is_file()]
    with try_lock_all(out, [run.key for run in todo]) as locked:
        if not locked:
            return all((out / run.key).is_dir() for run in todo)
        clean_up(out, todo)
        try:
            folders = {run.key: out / run.key for run in todo}
            errors = execute_pack(todo, folders, settings._replace(prefix=progress.prefix())).errors if todo else {}
        except Exception as error:
            errors = _errors_of_pack(error, todo, out)
        record_failures(errors, todo, out)
    return True


def _errors_of_pack(error: Exception, todo: Sequence[Run], out: Path) -> Errors:
    """Return the error once for each unfinished run, or raise it if other packs would fail by it as well."""
    if is_disk_full(error):
        text = str(error) if isinstance(error, InputError) else str(describe_write_error(out, error))
        raise InputError(f"{text}; finished runs are not repeated") from error
    errors: Errors = {run.key: error for run in todo if not is_finished(out / run.key)}
    if not errors:  # it was not a run that failed
        raise error
    if is_device_lost(error):
        if "unavailable" not in str(error):  # otherwise the device failed before any run used it
            record_failures(errors, todo, out)
        raise InputError(f"The GPU stopped responding ({first_line(error)}). Repeat the command to resume") from error
    return errors


def clean_up(out: Path, runs: Sequence[Run]) -> None:
    """Rename run folders that are damaged, and remove temporary folders of processes that were killed."""
    for run in runs:
        folder = out / run.key
        try:
            if is_finished(folder):
                check_manifest(folder)
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
    for leftover in out.glob(".*.tmp"):
        if leftover.name.split(".")[1] in keys:  # these runs are locked by us: no other process writes there
            shutil.rmtree(leftover, ignore_errors=True)


def run_states(runs: Iterable[Run], out: Path) -> dict[str, State]:
    """Return the state of every run by its key."""
    states: dict[str, State] = {}
    for key in {run.key: run for run in runs}:
        if (out / key).is_dir():
            states[key] = "done"
        elif read_failure(failure_path(out, key)) is not None:
            states[key] = "failed"
        else:
            states[key] = "running" if is_locked(out, key) else "waiting"
    return states


def checkpoint_steps(out: Path) -> dict[str, int]:
    """Return the step of the last checkpoint of every run in a folder that has one, by its key."""
    steps: dict[str, int] = {}
    for path in sorted(out.glob(".*.checkpoint")):
        steps |= dict.fromkeys(read_note(path).split(), read_step(path))
    return steps
