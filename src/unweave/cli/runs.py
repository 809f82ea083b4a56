"""What several commands do with run folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.cli.terminal import print_json, print_table
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.experiments.run import FinishedRun


def runs_folder(path: Path) -> Path:
    """Return the default folder of a study file's runs; a folder is returned unchanged."""
    return Path("runs") / path.stem if path.suffix == ".py" else path


def is_run(path: Path) -> bool:
    """Return whether the path is a run folder; raise InputError for a folder that is something else."""
    has_recipe = (path / "run.json").is_file()
    if path.is_dir() and not has_recipe:
        raise InputError(f"{path} is not a run folder (it has no run.json)")
    return has_recipe


def print_runs(runs: Sequence[FinishedRun], title: str = "", *, as_json: bool = False) -> None:
    """Print one row per run: method, scores, seconds of training; as JSON also the folder and all settings."""
    from unweave.experiments.run import records

    if as_json:
        return print_json([{"run": str(run.folder)} | row for run, row in zip(runs, records(runs), strict=True)])
    columns = list(dict.fromkeys(column for run in runs for column in run.scores))
    rows = [
        [run.recipe["method"]["name"]]
        + [f"{run.scores[column]:.4f}" if column in run.scores else "" for column in columns]
        + [f"{run.env['seconds']:.1f}"]
        for run in runs
    ]
    return print_table(["method", *columns, "seconds"], rows, title, numbers=True)
