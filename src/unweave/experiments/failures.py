"""Records of runs that failed: one JSON file per run under `.failed`, with the error and its traceback."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unweave.data.downloads import MissingData
from unweave.experiments.run import Run
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json, write_atomic

Errors = dict[str, Exception]
"""Exceptions by the key of the run that raised them."""


def failure_path(out: Path, key: str) -> Path:
    """Where it is recorded that a run failed."""
    return out / ".failed" / f"{key}.json"


def record_failures(errors: Errors, runs: Iterable[Run], out: Path) -> None:
    """Warn of what went wrong, and keep it; that data are not here, until somebody asks again."""
    titles = {run.key: run.title() for run in runs}
    for key, error in errors.items():
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"{titles[key]} ({key}) failed: {text}", RuntimeWarning, stacklevel=4)
        where = "".join(traceback.format_exception(error))
        about: dict[str, Any] = {"key": key, "title": titles[key], "error": text, "traceback": where}
        about |= {"missing": True} if isinstance(error, MissingData) else {}
        about["when"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_atomic(failure_path(out, key), json.dumps(about, indent=2) + "\n")


def read_failures(out: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    """What is recorded of runs that failed."""
    paths = [failure_path(out, key) for key in keys]
    return [read_json(path) for path in paths if path.is_file()]


def no_finished_runs(out: Path, runs: Iterable[Run]) -> InputError:
    """What to say where none of these runs is done."""
    wrong = read_failures(out, [run.key for run in runs])
    told = f": {wrong[0]['title']}: {wrong[0]['error']}" if wrong else ""
    again = f". To try again, remove {out / '.failed'}" if wrong and "missing" not in wrong[0] else ""
    return InputError(f"no run is done{told}{again}")


def unresolved_failures(out: Path) -> list[dict[str, Any]]:
    """All that failed in a folder of runs and is not done by now."""
    found = [read_json(path) for path in sorted((out / ".failed").glob("*.json"))]
    return [failure for failure in found if not (out / failure["key"]).is_dir()]


def clear_failures(out: Path, keys: Iterable[str], *, missing: bool = False) -> int:
    """So that they are tried again; how many there were. With `missing`, those alone whose data were not here."""
    paths = [path for key in keys if (path := failure_path(out, key)).is_file()]
    paths = [path for path in paths if not missing or read_json(path).get("missing")]
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)
