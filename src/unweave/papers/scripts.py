"""Run the script of a table or figure, and read its findings."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.registry import Item
from unweave.papers.verdicts import Findings, merge_findings
from unweave.utils.errors import InputError

Scale = Literal["small", "full"]
NOTHING_TO_RUN = "nothing to run"
RESULTS_VARIABLE = "UNWEAVE_RESULTS"  # names another folder of stored results, e.g. of runs in progress


def load_script(item: Item) -> Any:
    """Import the script of an item: a module with `Options`, `main`, `findings` and `tables`."""
    if not item.script:
        raise InputError(f"{item.name} has {NOTHING_TO_RUN}: {item.title}")
    return import_module(f"unweave.papers.{item.script}")


def make_options(item: Item, scale: Scale, out: Path) -> list[Any]:
    """Return the options of every run of an item's script; results go below `out`, in the folder of the paper."""
    options_class = load_script(item).Options
    every: list[Any] = []
    for run in item.runs:
        options = options_class(**run | (dict(item.small) if scale == "small" else {}), out=out / item.folder)
        if options not in every:  # at small scale several may be the same
            every.append(options)
    return every


def stored_options(item: Item, scale: Scale, out: Path) -> list[Any]:
    """Return the options whose results below `out` count: those of converged runs if there are any."""
    every, longer = make_options(item, scale, out), list[Any]()
    for options in every if item.converged and scale == "full" else ():
        changed = replace(options, **item.converged)
        if changed not in longer and load_script(item).folders(changed).scores.is_file():
            longer.append(changed)
    return longer or every


def describe_flags(item: Item, out: Path) -> str:
    """Return the flags of the runs that count, e.g. " --converged"; empty where they are the usual ones."""
    if stored_options(item, "full", out) == make_options(item, "full", out):
        return ""
    words = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}") for name, value in item.converged.items()
    ]
    return " " + " ".join(words)


def validate_options(options: Any) -> None:
    """Raise an error for numbers that no script can run with."""
    for name, least in (("seeds", 1), ("datasets", 1), ("trials", 1), ("steps", 0)):
        value = getattr(options, name, least)
        if value < least:
            raise InputError(f"--{name} {value}: expected at least {least}")


def run_script(item: Item, every: list[Any], output: Output = SILENT) -> Findings:
    """Run the script of an item with each of the options; finished runs are not repeated."""
    script = load_script(item)
    for options in every:
        validate_options(options)
    for options in every:
        script.main(options, output)
    return merge_findings(script.findings(options, item.part) for options in every)


def read_findings(item: Item, out: Path, scale: Scale = "full") -> Findings:
    """Return the findings from the results below `out` about an item; empty where there are none."""
    if not item.script:
        return Findings()
    script = load_script(item)
    return merge_findings(script.findings(options, item.part) for options in stored_options(item, scale, out))


def read_tables(item: Item, out: Path) -> list[TextTable]:
    """Return the tables of an item from the results below `out`."""
    if not item.script:
        return []
    script = load_script(item)
    return [table for options in stored_options(item, "full", out) for table in script.tables(options)]


def describe_status(item: Item, out: Path) -> str:
    """Return the status of an item: from results at full scale where there are some, else at small scale."""
    if not item.script:
        return NOTHING_TO_RUN
    full = read_findings(item, out)
    if full.verdict() != "not run":
        return _status(item, full)
    small = read_findings(item, out, "small")
    return "not run" if small.verdict() == "not run" else f"small scale only: {_status(item, small)}"


def _status(item: Item, findings: Findings) -> str:
    """Return the status; of an experiment of our own, which reproduces nothing, only that it was run."""
    return f"run ({findings.effort})" if item.own else findings.status()


def stored_results() -> Path:
    """Return the folder of the results that come with the package, or the one that UNWEAVE_RESULTS names."""
    return Path(os.environ.get(RESULTS_VARIABLE) or Path(__file__).parent)
