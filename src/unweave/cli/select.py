"""The command `unweave select`: rank runs without labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from unweave.cli.progress import show_progress
from unweave.cli.terminal import parse_options, print_json, print_table, print_text, runs_folder
from unweave.utils.errors import InputError

Criterion = Literal["udr", "model-centrality", "translation-difficulty", "likelihood", "isometry"]


@dataclass(kw_only=True)
class Select:
    """Rank runs on the same data without labels. If some runs have supervised scores, report the rank correlation."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, folders that contain runs, or study files. Use five runs or more."""
    by: tuple[Criterion, ...] = ("udr", "model-centrality")
    """Criteria; the first one sorts the table. udr and model-centrality: agreement with the codes of other runs.
    translation-difficulty: how easy it is to learn what the exchange of one code does to the observations. likelihood:
    log-likelihood or its bound at the end of training. isometry: preserved distances between neighbors."""
    json: bool = False
    """Print the table as JSON."""


def select(args: list[str]) -> None:
    """Rank runs without labels, by the agreement of their codes: unweave select runs/."""
    options = parse_options(Select, prog="unweave select", args=args)
    if not options.runs or not options.by:
        raise InputError("name run folders, or a folder that contains runs: unweave select runs/ --by udr")
    from unweave.experiments.grouping import run_labels
    from unweave.experiments.run import find_runs, read_run
    from unweave.experiments.selection import agreement, trust_scores

    with show_progress(quiet=options.json) as progress:
        progress.message("reading runs")
        runs = [read_run(folder) for folder in find_runs(map(runs_folder, options.runs))]
        columns = {}
        for name in options.by:
            progress.message(f"comparing {len(runs)} runs by {name}")
            columns[name] = trust_scores(runs, name)
    first = columns[options.by[0]]
    order = sorted(range(len(runs)), key=lambda i: -first[i] if first[i] == first[i] else float("inf"))  # NaN last
    correlations = {name: agreement(runs, column) for name, column in columns.items()}
    labels = run_labels([run.recipe for run in runs])
    table = [
        {"run": str(runs[i].folder), "label": labels[i], "method": runs[i].recipe["method"]["name"]}
        | {name: float(column[i]) for name, column in columns.items()}
        for i in order
    ]
    if options.json:
        return print_json({"runs": table, "agreement": correlations})
    rows = [[row["label"], *(f"{row[name]:.4g}" for name in columns), row["run"]] for row in table]
    print_table(["run", *columns, "folder"], rows, "best run first; larger is better")
    for name, values in correlations.items():
        text = ", ".join(f"{score} {value:.2f}" for score, value in values.items())
        print_text(f"Rank correlation of {name} with supervised scores: {text or 'no such scores, or too few runs'}.")
    return None
