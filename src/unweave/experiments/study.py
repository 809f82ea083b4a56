"""A study is a list of runs in a Python file. What is done is kept, what failed is recorded, what is missing is run."""

from __future__ import annotations

import json
import shutil
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.data.downloads import MissingData
from unweave.experiments.run import Run, read_run, rows
from unweave.experiments.runner import EVALUATED, Errors, How, Notify, perform_pack, there
from unweave.methods.base import Method, read_config
from unweave.methods.neural import Neural
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.locks import try_lock_all
from unweave.utils.storage import no_room, read_json, write_atomic
from unweave.utils.validation import device_lost

DEFAULT_METRICS = ("mcc", "local-isometry")
MOST_IN_PACK = 128  # models that are trained together, where the device has room for them
PATIENCE = 1.0  # seconds between looks at what another process is working on

NOTE = ".study.json"  # in the folder of the runs: what was asked

State = Literal["done", "failed", "running", "waiting"]


@dataclass(frozen=True)
class Study:
    """A study file: `runs`, and if it likes `metrics`, `evaluated`, `budget`; its docstring is the question."""

    path: Path
    runs: tuple[Run, ...]
    question: str = ""
    metrics: tuple[str, ...] = DEFAULT_METRICS
    evaluated: int = EVALUATED
    budget: float | None = None


def read_study(path: str | Path) -> Study:
    """A study file, which is executed: it is yours."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path} is no Python file: a study is one that defines `runs`, e.g. by unweave.sweep(...)")
    module = catalog.executed(path.resolve(), path.stat().st_mtime_ns)
    runs = getattr(module, "runs", None)
    if not isinstance(runs, Iterable) or not (runs := tuple(runs)) or not all(isinstance(run, Run) for run in runs):
        raise InputError(
            f"{path} defines no `runs`: expected a list of runs, e.g. runs = unweave.sweep(data, method, ...)"
        )
    metrics = getattr(module, "metrics", DEFAULT_METRICS)
    evaluated, budget = getattr(module, "evaluated", EVALUATED), getattr(module, "budget", None)
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise InputError(f"{path}: metrics={metrics!r}; expected a list of names")
    if not isinstance(evaluated, int) or evaluated < 3:
        raise InputError(f"{path}: evaluated={evaluated!r}; expected a number of observations to score on, at least 3")
    if budget is not None and not (isinstance(budget, int | float) and budget > 0):
        raise InputError(f"{path}: budget={budget!r}; expected seconds")
    return Study(path, runs, (module.__doc__ or "").strip(), tuple(metrics), evaluated, budget)


def write_note(study: Study, out: Path) -> None:
    """Keep with the runs what was asked, for the report."""
    about: dict[str, Any] = {"question": study.question, "file": study.path.name, "metrics": list(study.metrics)}
    about |= {"evaluated": study.evaluated, "keys": sorted({run.key for run in study.runs})}
    write_atomic(out / NOTE, json.dumps(about, indent=2) + "\n")


def note_of(out: Path) -> dict[str, Any]:
    """What was asked of the runs in this folder; empty where they are no study's."""
    return read_json(out / NOTE) if (out / NOTE).is_file() else {}


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
    at_once = {key: max(1, min(share, MOST_IN_PACK // max(1, n))) for key, n in models.items()}
    return [group[i : i + at_once[k]] for k, group in groups.items() for i in range(0, len(group), at_once[k])]


def execute(
    runs: Iterable[Run],
    out: str | Path,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    evaluated: int = EVALUATED,
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
    how = How(catalog.run_metrics(metrics), evaluated, notify)
    forget_failures(out, every, missing=not retry)
    tally = Tally(list(every), out)
    waiting = packs(every.values())
    while waiting and not tally.spent(budget, len(waiting)):
        left = [pack for pack in waiting if tally.spent(budget) or not settle(pack, out, tally, how)]
        if len(left) == len(waiting) and not tally.spent(budget):
            notify(f"{tally.head()}another process works on what is left: waiting for it")
            time.sleep(PATIENCE)
        waiting = left
    return rows([out / key for key in every if (out / key).is_dir()])


class Tally:
    """How far a study is."""

    def __init__(self, keys: Sequence[str], out: Path) -> None:
        self.keys, self.out, self.start = keys, out, time.perf_counter()
        self.before = len(self.keys) - self.open()

    def open(self) -> int:
        """Runs that are neither done nor failed."""
        return sum(not ((self.out / key).is_dir() or failure_of(self.out, key).is_file()) for key in self.keys)

    def head(self) -> str:
        """What stands before everything that is said."""
        left = self.open()
        failed = sum(failure_of(self.out, key).is_file() for key in self.keys)
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


def settle(pack: Sequence[Run], out: Path, tally: Tally, how: How) -> bool:
    """Do what is missing of a pack; False where another process has it and it is not finished."""
    todo = [run for run in pack if not failure_of(out, run.key).is_file()]
    with try_lock_all(out, [run.key for run in todo]) as mine:
        if not mine:
            return all((out / run.key).is_dir() for run in todo)
        clear(out, todo)
        try:
            errors = (
                perform_pack(todo, [out / run.key for run in todo], how._replace(head=tally.head())) if todo else {}
            )
        except Exception as error:
            if no_room(error):
                raise InputError(
                    f"cannot write to {out}: {error}; make room and run it again: what is done is kept"
                ) from error
            errors = {run.key: error for run in todo if not there(out / run.key)}
            if not errors:  # it was not a run that failed
                raise
            if device_lost(error):  # and others would fail by it as well
                if "unavailable" not in str(error):  # else no run has to do with it
                    record(errors, todo, out)
                text = f"the GPU does not answer any more ({first_line(error)})"
                raise InputError(f"{text}: run it again to go on: what is done is kept") from error
        record(errors, todo, out)
    return True


def clear(out: Path, runs: Sequence[Run]) -> None:
    """Set aside runs that are damaged, under a name that says so, and remove what a killed process left of others."""
    for run in runs:
        folder = out / run.key
        try:
            if there(folder):
                read_run(folder)
                read_config(folder)
        except InputError as error:
            aside = out / f".{run.key}.damaged"
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
            warnings.warn(f"{error}. It was set aside as {aside} and is run again", RuntimeWarning, stacklevel=4)
    if all(there(out / run.key) for run in runs):
        return
    keys = {run.key for run in runs}
    for left in out.glob(".*.tmp"):
        if left.name.split(".")[1] in keys:  # which are ours, so that no one is writing it
            shutil.rmtree(left, ignore_errors=True)


# Failures -------------------------------------------------------------------------------------------------------


def failure_of(out: Path, key: str) -> Path:
    """Where it is recorded that a run failed."""
    return out / ".failed" / f"{key}.json"


def record(errors: Errors, runs: Iterable[Run], out: Path) -> None:
    """Warn of what went wrong, and keep it; that data are not here, until somebody asks again."""
    titles = {run.key: run.title() for run in runs}
    for key, error in errors.items():
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"{titles[key]} ({key}) failed: {text}", RuntimeWarning, stacklevel=4)
        where = "".join(traceback.format_exception(error))
        about: dict[str, Any] = {"key": key, "title": titles[key], "error": text, "traceback": where}
        about |= {"missing": True} if isinstance(error, MissingData) else {}
        about["when"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_atomic(failure_of(out, key), json.dumps(about, indent=2) + "\n")


def failures(out: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    """What is recorded of runs that failed."""
    paths = [failure_of(out, key) for key in keys]
    return [read_json(path) for path in paths if path.is_file()]


def nothing_done(out: Path, runs: Iterable[Run]) -> InputError:
    """What to say where none of these runs is done."""
    wrong = failures(out, [run.key for run in runs])
    told = f": {wrong[0]['title']}: {wrong[0]['error']}" if wrong else ""
    again = f". To try again, remove {out / '.failed'}" if wrong and "missing" not in wrong[0] else ""
    return InputError(f"no run is done{told}{again}")


def failures_in(out: Path) -> list[dict[str, Any]]:
    """All that failed in a folder of runs and is not done by now."""
    found = [read_json(path) for path in sorted((out / ".failed").glob("*.json"))]
    return [failure for failure in found if not (out / failure["key"]).is_dir()]


def forget_failures(out: Path, keys: Iterable[str], *, missing: bool = False) -> int:
    """So that they are tried again; how many there were. With `missing`, those alone whose data were not here."""
    paths = [path for key in keys if (path := failure_of(out, key)).is_file()]
    paths = [path for path in paths if not missing or read_json(path).get("missing")]
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def states(runs: Iterable[Run], out: Path) -> dict[str, State]:
    """Where every run stands, by its key."""
    found: dict[str, State] = {}
    for key in {run.key: run for run in runs}:
        if (out / key).is_dir():
            found[key] = "done"
        elif failure_of(out, key).is_file():
            found[key] = "failed"
        elif not (out / ".claims" / key).exists():
            found[key] = "waiting"
        else:
            with try_lock_all(out, [key]) as mine:
                found[key] = "waiting" if mine else "running"
    return found
