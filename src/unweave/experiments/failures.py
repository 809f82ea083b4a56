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
from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError
from unweave.utils.storage import read_json

TEXT_FIELDS = ("key", "title", "error", "traceback", "when")  # of a record

Errors = dict[str, Exception]
"""Exceptions by the key of the run that raised them."""


def failure_path(out: Path, key: str) -> Path:
    """Return the file with the record of a failed run."""
    return out / ".failed" / f"{key}.json"


def record_failures(errors: Errors, runs: Iterable[Run], out: Path) -> None:
    """Warn of every error and write it to a file."""
    titles = {run.key: run.label() for run in runs}
    for key, error in errors.items():
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"{titles[key]} failed: {text}", RuntimeWarning, stacklevel=4)
        lines = "".join(traceback.format_exception(error))
        record: dict[str, Any] = {"key": key, "title": titles[key], "error": text, "traceback": lines}
        record |= {"missing": True} if isinstance(error, MissingData) else {}  # repeated by the next `execute`
        record["when"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_atomic(failure_path(out, key), json.dumps(record, indent=2) + "\n")


def read_failure(path: Path) -> dict[str, Any] | None:
    """Return a record; None if there is none, or one that is damaged: its run is repeated."""
    if not path.is_file():
        return None
    try:
        record = read_json(path)
    except InputError:
        return None
    is_whole = all(isinstance(record.get(field), str) for field in TEXT_FIELDS) and record["key"] == path.stem
    return record if is_whole else None


def read_failures(out: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return the records of those runs that failed."""
    records = (read_failure(failure_path(out, key)) for key in keys)
    return [record for record in records if record is not None]


def no_finished_runs(out: Path, runs: Iterable[Run]) -> InputError:
    """Return the error for a study without a finished run; it names the first failure."""
    first = next(iter(read_failures(out, [run.key for run in runs])), None)
    if first is None:
        return InputError("no run is done")
    again = f". To try again, remove {out / '.failed'}" if "missing" not in first else ""
    return InputError(f"no run is done: {first['title']}: {first['error']}{again}")


def unresolved_failures(out: Path) -> list[dict[str, Any]]:
    """Return the records of all runs in a folder that failed and were not finished since."""
    records = read_failures(out, sorted(path.stem for path in (out / ".failed").glob("*.json")))
    return [failure for failure in records if not (out / failure["key"]).is_dir()]


def clear_failures(out: Path, keys: Iterable[str], *, missing: bool = False) -> None:
    """Remove records, so that the runs are repeated; with `missing`, only of missing data, and damaged ones."""
    for path in (failure_path(out, key) for key in keys):
        record = read_failure(path)
        if not missing or record is None or record.get("missing"):
            path.unlink(missing_ok=True)
