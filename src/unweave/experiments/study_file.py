"""Study files: Python that defines `runs`, and the note that is stored beside the runs for the report."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.experiments.evaluation import DEFAULT_METRICS, EVALUATION_SIZE
from unweave.experiments.run import Run
from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json
from unweave.utils.user_files import execute_file

NOTE_FILE = ".study.json"  # in the folder of the runs
NOTE_TYPES = {"question": str, "file": str, "metrics": list, "keys": list}


@dataclass(frozen=True)
class Study:
    """The content of a study file."""

    path: Path
    runs: tuple[Run, ...]
    question: str = ""
    """Docstring of the file."""
    metrics: tuple[str, ...] = DEFAULT_METRICS
    evaluated: int = EVALUATION_SIZE
    """Observations to score on."""
    budget: float | None = None
    """Seconds after which no new pack is started."""

    def __post_init__(self) -> None:
        if not isinstance(self.evaluated, int) or self.evaluated < 3:
            text = f"{self.path}: evaluated={self.evaluated!r}"
            raise InputError(f"{text}; expected a number of observations to score on, at least 3")
        if self.budget is not None and not (isinstance(self.budget, int | float) and self.budget > 0):
            raise InputError(f"{self.path}: budget={self.budget!r}; expected seconds")


def read_study(path: str | Path) -> Study:
    """Execute a study file and return its `runs`, and if it defines them, `metrics`, `evaluated` and `budget`."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path} is no Python file: a study is one that defines `runs`, e.g. by unweave.sweep(...)")
    module = execute_file(path.resolve(), path.stat().st_mtime_ns)
    runs = getattr(module, "runs", None)
    if not isinstance(runs, Iterable) or not (runs := tuple(runs)) or not all(isinstance(run, Run) for run in runs):
        raise InputError(
            f"{path} defines no `runs`: expected a list of runs, e.g. runs = unweave.sweep(data, method, ...)"
        )
    metrics = getattr(module, "metrics", DEFAULT_METRICS)
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise InputError(f"{path}: metrics={metrics!r}; expected a list of names")
    settings = {name: getattr(module, name) for name in ("evaluated", "budget") if hasattr(module, name)}
    return Study(path, runs, (module.__doc__ or "").strip(), tuple(metrics), **settings)


def write_note(study: Study, out: Path) -> None:
    """Write question, file name, metrics and keys of a study beside its runs, for the report."""
    note: dict[str, Any] = {"question": study.question, "file": study.path.name, "metrics": list(study.metrics)}
    note |= {"evaluated": study.evaluated, "keys": sorted({run.key for run in study.runs})}
    write_atomic(out / NOTE_FILE, json.dumps(note, indent=2) + "\n")


def read_note(out: Path) -> dict[str, Any]:
    """Return the note of the study in a folder; empty if there is none, or a damaged one, of which a warning tells."""
    if not (out / NOTE_FILE).is_file():
        return {}
    try:
        note = read_json(out / NOTE_FILE)
        if wrong := [name for name, kind in NOTE_TYPES.items() if not isinstance(note.get(name), kind)]:
            raise InputError(f"{out / NOTE_FILE} lacks {wrong[0]!r}")
    except InputError as error:
        warnings.warn(f"{error}. The question of the study is left out; `unweave study run` restores it", stacklevel=2)
        return {}
    return note
