"""`unweave study`: run a study file, see how far it is, try again what failed, get its rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from unweave.cli.score import runs_of
from unweave.cli.terminal import parse_options, print_json, print_table, print_text, progress, run_action
from unweave.utils.errors import InputError

FAILED = 3  # the exit code of a study some of whose runs have failed

ABOUT = """usage: unweave study ACTION FILE [options]

A study file is Python that defines `runs`, and if it likes more:

    \"\"\"Does a stronger beta help?\"\"\"                 # the question, for the report
    import unweave
    from unweave.methods import BetaVAE

    runs = unweave.sweep("dsprites", BetaVAE(steps=30_000), beta=[1, 4, 16], seed=range(5))
    metrics = ["mig", "dci"]                          # default: mcc, local-isometry
    evaluated = 10_000                                # observations to score on, of data that are generated
    budget = 3_600                                    # seconds, after which nothing new is begun
"""


@dataclass(kw_only=True)
class Where:
    """How many runs of a study are done, running, failed, waiting; and why some failed."""

    file: tyro.conf.Positional[Path]
    """the study file"""
    out: Path | None = None
    """where its runs are, one folder each (default: runs/NAME-OF-THE-FILE)"""
    json: bool = False
    """print as JSON"""


@dataclass(kw_only=True)
class Execute(Where):
    """Do what is missing; `retry` also what failed before. Exits with 3 where runs have failed.

    Kill it and start it again, or start it twice: nothing is lost, nothing is done twice."""

    budget: float | None = None
    """seconds after which nothing new is begun; the file may say so too"""
    ray: str | None = None
    """on Ray: "local" for a cluster on this machine, "auto" for the one that is there, or the address of its head"""
    bring_home: bool = False
    """with --ray: nodes share no folder with this machine, and send their results"""


@dataclass(kw_only=True)
class Rows(Where):
    """One row per finished run: its settings, its scores, how long it took."""

    csv: Path | None = None
    """write them to this file"""
    parquet: Path | None = None
    """or to this one"""


def study(args: list[str]) -> None:
    """run a study of many models: unweave study run|status|retry|rows FILE"""
    actions: dict[str, Callable[[list[str]], None]] = {"run": run, "status": status, "retry": retry, "rows": rows}
    run_action("unweave study", ABOUT, actions, args)


def run(args: list[str]) -> None:
    """do what is missing, in packs; failures are recorded and stop nothing else"""
    _execute(parse_options(Execute, prog="unweave study run", args=args), retry=False)


def retry(args: list[str]) -> None:
    """try again what failed, and do what is missing"""
    _execute(parse_options(Execute, prog="unweave study retry", args=args), retry=True)


def _execute(options: Any, *, retry: bool) -> None:
    from unweave.experiments.study import execute
    from unweave.experiments.study_file import write_note

    found, out = _read(options)
    write_note(found, out)
    settings: Any = {"metrics": found.metrics, "evaluated": found.evaluated, "retry": retry}
    settings["budget"] = found.budget if options.budget is None else options.budget
    with progress(quiet=options.json) as notify:
        if options.ray is None:
            execute(found.runs, out, **settings, notify=notify)
        else:
            from unweave.experiments.ray import Cluster, execute_on_ray

            where = Cluster(options.ray, options.bring_home)
            execute_on_ray(found.runs, out, **settings, where=where, notify=notify)
    if not _show_status(options):
        sys.exit(FAILED)


def status(args: list[str]) -> None:
    """how many runs are done, running, failed, waiting; and why some failed"""
    _show_status(parse_options(Where, prog="unweave study status", args=args))


def _show_status(options: Any) -> bool:
    """Say how far a study is; whether nothing has failed."""
    from unweave.experiments.failures import read_failures
    from unweave.experiments.study import run_states

    found, out = _read(options)
    state = run_states(found.runs, out)
    wrong = read_failures(out, state)
    if options.json:
        print_json({"out": str(out), "states": state, "failures": wrong})
        return not wrong
    names = ("done", "running", "failed", "waiting")
    lines = []
    for title in dict.fromkeys(run.title() for run in found.runs):
        count: Counter[str] = Counter(state[key] for key in {run.key for run in found.runs if run.title() == title})
        lines.append([title, *(str(count[name]) for name in names)])
    print_table(["runs", *names], lines, found.question.partition("\n")[0])
    for each in wrong:
        print_text(f"failed: {each['title']} ({each['key']}): {each['error']}")
    if wrong:
        print_text(
            f"Try these again with: unweave study retry {options.file}"
            + (f" --out {options.out}" if options.out else "")
        )
    if "done" in state.values():
        print_text(f"Runs are in {out}; look at them with: unweave report {out}")
    elif not wrong:
        print_text(f"Nothing is done yet; runs will be in {out}.")
    return not wrong


def rows(args: list[str]) -> None:
    """one row per finished run, as CSV on the screen or in a file, or as Parquet"""
    options = parse_options(Rows, prog="unweave study rows", args=args)
    from unweave.experiments.run import records
    from unweave.experiments.run import rows as table_of

    found, out = _read(options)
    folders = [out / key for key in {run.key: None for run in found.runs} if (out / key).is_dir()]
    if not folders:
        raise InputError(f"no run of {options.file} is done in {out}: start with unweave study run {options.file}")
    table = table_of(folders)
    if options.csv is not None:
        table.to_csv(options.csv, index=False)
    if options.parquet is not None:
        table.to_parquet(options.parquet)
    if options.json:
        return print_json(records(folders))
    if options.csv is None and options.parquet is None:
        return print_text(table.to_csv(index=False).rstrip("\n"))
    written = " and ".join(str(path) for path in (options.csv, options.parquet) if path is not None)
    return print_text(f"{len(table)} rows in {written}.")


def _read(options: Any) -> tuple[Any, Path]:
    from unweave.experiments.study_file import read_study

    found = read_study(options.file)
    return found, options.out or runs_of(options.file)
