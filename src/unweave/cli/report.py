"""The command `unweave report`: one HTML page about runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_runs, print_text, runs_folder
from unweave.utils.errors import InputError


@dataclass(kw_only=True)
class Report:
    """Write one self-contained HTML page about runs: summary, tables, figures, provenance."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, folders that contain runs, or study files."""
    out: Path = Path("report.html")
    """The page to write."""
    explorers: bool = True
    """Put an explorer of the best run of each method into the page: sliders for its codes. At most 6 MB."""
    json: bool = False
    """Print the table as JSON."""


def report(args: list[str]) -> None:
    """Write one HTML page about runs: unweave report runs/."""
    options = parse_options(Report, prog="unweave report", args=args)
    if not options.runs:
        raise InputError("name run folders, or a folder that contains runs: unweave report runs/")
    from unweave.experiments.run import find_runs, read_run
    from unweave.report.page import write_report

    with show_progress(quiet=options.json) as progress:
        progress.message("reading runs")
        runs = [runs_folder(path) for path in options.runs]
        page = write_report(runs, options.out, progress.message, explorers=options.explorers)
    if options.json:
        return print_runs([read_run(folder) for folder in find_runs(runs)], as_json=True)
    return print_text(f"Open {page} in a browser.")
