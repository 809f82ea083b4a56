"""Study files: Python that defines `runs`, and the note that is kept beside the runs for the report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave import catalog
from unweave.experiments.evaluation import DEFAULT_METRICS, EVALUATION_SIZE
from unweave.experiments.run import Run
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json, write_atomic

NOTE = ".study.json"  # in the folder of the runs: what was asked


@dataclass(frozen=True)
class Study:
    """A study file: `runs`, and if it likes `metrics`, `evaluated`, `budget`; its docstring is the question."""

    path: Path
    runs: tuple[Run, ...]
    question: str = ""
    metrics: tuple[str, ...] = DEFAULT_METRICS
    evaluated: int = EVALUATION_SIZE
    budget: float | None = None


def read_study(path: str | Path) -> Study:
    """A study file, which is executed: it is yours."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path} is no Python file: a study is one that defines `runs`, e.g. by unweave.sweep(...)")
    module = catalog.execute_file(path.resolve(), path.stat().st_mtime_ns)
    runs = getattr(module, "runs", None)
    if not isinstance(runs, Iterable) or not (runs := tuple(runs)) or not all(isinstance(run, Run) for run in runs):
        raise InputError(
            f"{path} defines no `runs`: expected a list of runs, e.g. runs = unweave.sweep(data, method, ...)"
        )
    metrics = getattr(module, "metrics", DEFAULT_METRICS)
    evaluated, budget = getattr(module, "evaluated", EVALUATION_SIZE), getattr(module, "budget", None)
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


def read_note(out: Path) -> dict[str, Any]:
    """What was asked of the runs in this folder; empty where they are no study's."""
    return read_json(out / NOTE) if (out / NOTE).is_file() else {}
