"""The command `unweave study`: run a study file, show its status, retry failures, export its results."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_json, print_table, print_text, run_action, runs_folder
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.experiments.study import State
    from unweave.experiments.study_file import Study

RUNS_FAILED = 3  # exit code
MAX_LISTED = 20  # unfinished runs that are listed one by one

USAGE = """usage: unweave study ACTION FILE [options]

A study file is Python code that defines `runs`. The other names are optional:

    \"\"\"Does a stronger beta help?\"\"\"                 # the question, for the report
    import unweave
    from unweave.methods import BetaVAE

    runs = unweave.sweep("dsprites", BetaVAE(steps=30_000), beta=[1, 4, 16], seed=range(5))
    metrics = ["mig", "dci"]                          # default: mcc, local-isometry
    evaluated = 10_000                                # number of observations to score, for generated data
    budget = 3_600                                    # seconds; later no further run is started
"""


@dataclass(kw_only=True)
class Status:
    """Show how many runs of a study are done, running, failed or waiting, the steps of unfinished ones, and errors."""

    file: tyro.conf.Positional[Path]
    """The study file."""
    out: Path | None = None
    """Folder of the runs (default: runs/NAME-OF-THE-FILE)."""
    json: bool = False
    """Print as JSON."""


@dataclass(kw_only=True)
class Execute(Status):
    """Run what is missing; `retry` also repeats failed runs. Exits with 3 if runs have failed.

    It can be stopped and started again, or started several times at once: finished runs are never repeated."""

    budget: float | None = None
    """Seconds after which no further run is started. Overrides the study file."""
    ray: str | None = None
    """Run on Ray: "local" for a cluster on this machine, "auto" for a running one, or the address of its head."""
    bring_home: bool = False
    """With --ray: whether nodes lack a shared file system: each uses a local folder and sends its results back."""


@dataclass(kw_only=True)
class Rows(Status):
    """Print one row per finished run: settings, scores, seconds."""

    csv: Path | None = None
    """Write the rows to this CSV file."""
    parquet: Path | None = None
    """Write the rows to this Parquet file."""


def study(args: list[str]) -> None:
    """Run a study of many models: unweave study run|status|retry|rows FILE."""
    actions: dict[str, Callable[[list[str]], None]] = {
        "run": run_study, "status": show_status, "retry": retry_study, "rows": export_rows,
    }  # fmt: skip
    run_action("unweave study", USAGE, actions, args)


def run_study(args: list[str]) -> None:
    """Run what is missing. Failed runs are recorded and do not stop the others."""
    _execute(parse_options(Execute, prog="unweave study run", args=args), retry=False)


def retry_study(args: list[str]) -> None:
    """Repeat failed runs, and run what is missing."""
    _execute(parse_options(Execute, prog="unweave study retry", args=args), retry=True)


def _execute(options: Any, *, retry: bool) -> None:
    from unweave.experiments.study import execute
    from unweave.experiments.study_file import write_note

    definition, out = _read(options)
    write_note(definition, out)
    settings: Any = {"metrics": definition.metrics, "evaluated": definition.evaluated, "retry": retry}
    settings["budget"] = definition.budget if options.budget is None else options.budget
    with show_progress(quiet=options.json) as progress:
        if options.ray is None:
            execute(definition.runs, out, **settings, notify=progress.message, callback=progress.training)
        else:
            from unweave.experiments.ray import Cluster, execute_on_ray

            cluster = Cluster(options.ray, options.bring_home)
            execute_on_ray(definition.runs, out, **settings, where=cluster, notify=progress.message)
    if _print_status(options):
        sys.exit(RUNS_FAILED)


def show_status(args: list[str]) -> None:
    """Show how many runs are done, running, failed or waiting."""
    _print_status(parse_options(Status, prog="unweave study status", args=args))


def _print_status(options: Any) -> bool:
    """Print the status of a study; return whether runs have failed."""
    from unweave.experiments.failures import read_failures
    from unweave.experiments.grouping import run_labels
    from unweave.experiments.study import run_states

    definition, out = _read(options)
    state = run_states(definition.runs, out)
    errors = read_failures(out, state)
    unfinished = _unfinished_steps(definition, out, state)
    if options.json:
        print_json({"out": str(out), "states": state, "checkpoints": unfinished, "failures": errors})
        return bool(errors)
    recipes = {run.key: run.recipe() for run in definition.runs}
    labels = dict(zip(recipes, run_labels(list(recipes.values())), strict=True))
    names = ("done", "running", "failed", "waiting")
    rows = []
    for title in dict.fromkeys(run.title() for run in definition.runs):
        keys = {run.key for run in definition.runs if run.title() == title}
        count: Counter[str] = Counter(state[key] for key in keys)
        rows.append([title, *(str(count[name]) for name in names)])
    print_table(["runs", *names], rows, definition.question.partition("\n")[0])
    again = f"{options.file} --out {options.out}" if options.out else str(options.file)
    _print_unfinished(unfinished, state, labels, again)
    for error in errors:
        print_text(f"failed: {labels[error['key']]}: {error['error']}")
    if errors:
        print_text(f"To repeat failed runs: unweave study retry {again}")
    if "done" in state.values():
        print_text(f"The runs are in {out}. To see them: unweave report {out}")
    elif not errors:
        print_text(f"No run is done yet. Runs will be in {out}.")
    return bool(errors)


def _unfinished_steps(definition: Study, out: Path, state: dict[str, State]) -> dict[str, tuple[int, int]]:
    """Return the step of the last checkpoint and the number of steps of every unfinished run that has one, by key."""
    from unweave.experiments.study import checkpoint_steps

    saved = checkpoint_steps(out)
    runs = {run.key: run for run in definition.runs if state[run.key] in ("running", "waiting") and run.key in saved}
    return {key: (saved[key], run.recipe()["method"]["steps"]) for key, run in runs.items()}


def _print_unfinished(
    unfinished: dict[str, tuple[int, int]], state: dict[str, State], labels: dict[str, str], again: str
) -> None:
    """Print one line for each unfinished run that has a checkpoint, and how to resume."""
    for key, (step, steps) in list(unfinished.items())[:MAX_LISTED]:
        word = "running" if state[key] == "running" else "resumable"
        print_text(f"{word}: {labels[key]}: step {step:,} of {steps:,}")
    if len(unfinished) > MAX_LISTED:
        print_text(f"... and {len(unfinished) - MAX_LISTED} more; --json lists all of them")
    if any(state[key] == "waiting" for key in unfinished):
        print_text(f"To resume from the last checkpoints: unweave study run {again}")


def export_rows(args: list[str]) -> None:
    """Print one row per finished run as CSV, or write them as CSV or Parquet."""
    options = parse_options(Rows, prog="unweave study rows", args=args)
    from unweave.experiments.run import read_run, records, rows
    from unweave.utils.atomic import write_atomic
    from unweave.utils.tables import csv_text, write_parquet

    definition, out = _read(options)
    folders = [out / key for key in {run.key: None for run in definition.runs} if (out / key).is_dir()]
    if not folders:
        raise InputError(f"no run of {options.file} is done in {out}: start with unweave study run {options.file}")
    table = rows(folders)
    if options.csv is not None:
        write_atomic(options.csv, csv_text(table))
    if options.parquet is not None:
        write_parquet(table, options.parquet)
    if options.json:
        return print_json(records(map(read_run, folders)))
    if options.csv is None and options.parquet is None:
        return print_text(csv_text(table).rstrip("\n"))
    files = " and ".join(str(path) for path in (options.csv, options.parquet) if path is not None)
    return print_text(f"Wrote {len(table)} rows to {files}.")


def _read(options: Any) -> tuple[Study, Path]:
    from unweave.experiments.study_file import read_study

    return read_study(options.file), options.out or runs_folder(options.file)
