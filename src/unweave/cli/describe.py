"""The command `unweave describe`: what each code of a run does, in words."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from unweave.cli.encode import ApplyOptions, load_run_and_data
from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_text
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.report.description import Description


@dataclass(kw_only=True)
class Describe(ApplyOptions):
    """Describe in words what each code of a run changes: attributes of images, or columns of a table.

    |r| is the correlation of the attribute with the code. For a method with a decoder, the attribute goes from one
    number to the other while the code goes from its 5 % to its 95 % quantile. If the data have classes, a local code
    acts on some of them, and a global one on most.
    """

    data: tyro.conf.Positional[str] = ""
    """Data like those of the training: the path of your own data, or a catalog name. By default those of the run."""
    compare: Path | None = None
    """Second run folder, e.g. of another seed. Says which of its codes is the same."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Table to write: one row for each code and attribute that it moves (.csv or .json)."""
    seed: int = 0
    """Seed that selects the observations."""


def describe_run(args: list[str]) -> None:
    """Describe in words what each code changes: unweave describe runs/MY-RUN photos/."""
    options = parse_options(Describe, prog="unweave describe", args=args)
    check_table_path(options.out)
    with show_progress() as progress:
        progress.message("reading the run and the data")
        from unweave.experiments.recorded_data import dataset_of_run

        options = options if options.data else replace(options, data=dataset_of_run(options.run, "describe"))
        method, data = load_run_and_data(options)
        other = None
        if options.compare is not None:
            other, _ = load_run_and_data(replace(options, run=options.compare))
        from unweave.report.description import describe

        description = describe(method, data, other, seed=options.seed, notify=progress.message)
        if options.out is not None:
            write_table(description, options.out)
    print_text("\n".join(description.lines()))
    if options.out is not None:
        print_text(f"The table is in {options.out}.")


def check_table_path(path: Path | None) -> None:
    """Raise InputError if no table can be written to the path, before the work and not after it."""
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{path}: the table is written as .csv or .json")
    path.parent.mkdir(parents=True, exist_ok=True)
    if (path.exists() and not path.is_file()) or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {path}; choose another path")


def write_table(description: Description, path: Path) -> None:
    """Write the table of a description as CSV, or as a list of rows in JSON."""
    from unweave.utils.atomic import write_atomic
    from unweave.utils.storage import to_jsonable
    from unweave.utils.tables import csv_text

    table = description.table()
    if path.suffix.lower() == ".csv":
        write_atomic(path, csv_text(table, float_format="%.6g"))
    else:
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        write_atomic(path, json.dumps(rows, indent=2, ensure_ascii=False, default=to_jsonable) + "\n")
