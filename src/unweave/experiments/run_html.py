"""Representations of runs in notebooks: settings, scores, and tables with one row per run."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from unweave.experiments.grouping import best_value, metric_of
from unweave.experiments.run import FinishedRun, Run, changed_settings, records
from unweave.metrics.score_frame import ScoreTable
from unweave.utils import html
from unweave.utils.errors import join_settings, plural


def run_html(run: Run) -> str:
    """Return method and data of a run, with their settings; it may not have been executed yet."""
    parts = []
    for name, thing in ((f"Method {run.method.name}", run.method), (f"Data {run.data.title()}", run.data)):
        changed = join_settings(changed_settings(thing))
        parts.append(html.details(f"{name}: {changed or 'all settings at their defaults'}", html.settings(thing)))
    return html.page("Run", run.title(), *parts)


def finished_run_html(run: FinishedRun) -> str:
    """Return scores, diagnosis and settings of a finished run."""
    method, data = run.recipe["method"], run.env["data"]
    title = f"{method['name']} on {data['title']}, seed {method.get('seed')}"
    codes = f"{plural(run.codes.shape[1], 'code')} of {plural(len(run.codes), 'observation')}"
    scores = [[name, html.Cell(html.format_score(value), is_number=True)] for name, value in run.scores.items()]
    table = html.table(["score", "value"], scores) if scores else html.text("No scores.")
    settings = html.table(["setting", "value"], [[k, repr(v)] for k, v in method.items() if k != "name"])
    return html.page(
        "FinishedRun", title, html.text(f"{codes}; {run.env['seconds']:.1f} s; {run.folder}"), table,
        html.items(run.diagnosis), html.details("Settings of the method", settings),
    )  # fmt: skip


def table_of_runs(runs: Iterable[FinishedRun]) -> ScoreTable:
    """Return one row per run, as a table that notebooks show with formatted scores; one run is held at a time."""
    scores: dict[str, list[float]] = {}
    lines = []
    for run in runs:
        lines += records([run])
        for name, value in run.scores.items():
            scores.setdefault(name, []).append(value)
    table = ScoreTable(pd.DataFrame(lines).convert_dtypes())
    metrics = {name: metric_of(name) for name, values in scores.items() if best_value(name, values) is not None}
    table.best_scores = {name: metric.facts.best for name, metric in metrics.items() if metric is not None}
    return table
