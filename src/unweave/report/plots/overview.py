"""Plots of all runs on one dataset: scores, effects of parameters, rank correlations, loss curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.experiments.grouping import Setting
from unweave.experiments.history import read_history
from unweave.experiments.run import FinishedRun
from unweave.report.figures.curves import loss_terms
from unweave.report.plots.packing import round_number, round_numbers
from unweave.utils.errors import shorten_number

MAX_CURVES = 8  # settings in one plot of loss curves
MAX_CURVE_POINTS = 200  # of one curve; of more, evenly spaced ones
MAX_BOXES = 40  # settings in the plot of all runs
MIN_VALUES = 3  # values of a numeric parameter, from which it is drawn as an axis
MIN_RUNS = 5  # runs from which rank correlations are shown
MIN_RANK_RUNS = 3  # runs with both scores, for a rank correlation
MIN_LOG_RATIO = 8  # of the largest to the smallest value of a parameter, from which its axis is logarithmic

Plot = dict[str, Any]
"""Kind, caption and numbers of a plot, as views/*.js read them"""


class PlottedRun(NamedTuple):
    """A run, its setting, and its number in the table of runs."""

    number: int
    setting: Setting
    run: FinishedRun


def number_runs(settings: Sequence[Setting]) -> list[PlottedRun]:
    """Return all runs in the order of the table of runs."""
    pairs = [(setting, run) for setting in settings for run in setting.runs]
    return [PlottedRun(i, setting, run) for i, (setting, run) in enumerate(pairs)]


def describe_runs(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Return what the page tells about each run: label, seed, settings, scores, folder and key."""
    return [
        {
            "label": setting.label,
            "seed": run.recipe["method"].get("seed"),
            "settings": [[name, str(shorten_number(value))] for name, value in setting.values.items()],
            "scores": run.scores,
            "folder": f"{run.folder.parent.name}/{run.folder.name}",
            "key": run.recipe["key"],
        }
        for _, setting, run in number_runs(settings)
    ]


def describe_overview(settings: Sequence[Setting], columns: Sequence[str]) -> list[Plot]:
    """Return plots that compare settings, best first; none if there is nothing to compare.

    Args:
        settings: Methods with their parameters and runs.
        columns: Names of the scores.
    """
    runs, plots = number_runs(settings), []
    if len(runs) > 1 and columns:
        plots.append(describe_scores(settings, columns))
    if columns:
        for name in dict.fromkeys(k for setting in settings for k in setting.values):
            plots += describe_effect(runs, columns, name)
    if len(runs) >= MIN_RUNS:
        plots += describe_agreement(pd.DataFrame([{c: r.run.scores.get(c, np.nan) for c in columns} for r in runs]))
    return plots + describe_losses(settings)


def describe_scores(settings: Sequence[Setting], columns: Sequence[str]) -> Plot:
    """Return one panel per score with a row per setting: the score of every run, and quartiles of several."""
    subset = f" The best {MAX_BOXES} of {len(settings)} settings." if len(settings) > MAX_BOXES else ""
    caption = "Scores of all runs: one dot per run."
    if any(len(setting.runs) > 1 for setting in settings):
        caption += " Boxes go from the first to the third quartile, with a line at the median."
    numbered, panels = number_runs(settings), []
    for column in columns:
        rows = []
        for setting in settings[:MAX_BOXES]:
            own = [r for r in numbered if r.setting is setting and column in r.run.scores]
            values = [r.run.scores[column] for r in own]
            quartiles = round_numbers(np.quantile(values, [0.25, 0.5, 0.75])) if len(values) > 1 else None
            rows.append({"name": setting.label, "runs": [r.number for r in own], "quartiles": quartiles})
        panels.append({"score": column, "rows": rows})
    return {"kind": "spread", "caption": f"{caption}{subset}", "panels": panels}


def describe_effect(runs: Sequence[PlottedRun], columns: Sequence[str], name: str) -> list[Plot]:
    """Return one panel per score: mean and range over runs against a numeric parameter, with a line per method."""
    raw = pd.Series([r.setting.values.get(name) for r in runs], dtype=object)
    values = pd.to_numeric(raw, errors="coerce")
    if values.nunique() < MIN_VALUES:
        return []
    known = values.dropna()
    is_log = bool(known.min() > 0 and known.max() / known.min() >= MIN_LOG_RATIO)
    table = pd.DataFrame({"method": [r.setting.method for r in runs], "value": values}).dropna()
    panels = []
    for column in columns:
        scores = pd.Series([r.run.scores.get(column, np.nan) for r in runs])
        own = table.assign(score=scores).dropna()
        series = [_summarize_line(str(method), rows) for method, rows in own.groupby("method", sort=False)]
        panels.append({"score": column, "series": series})
    caption = f"Effect of {name}: one dot per run, a line through the means, shaded from the lowest to the highest."
    ticks = sorted(known.unique().tolist())
    return [{"kind": "effect", "caption": caption, "parameter": name, "log": is_log, "ticks": ticks, "panels": panels}]


def _summarize_line(method: str, rows: pd.DataFrame) -> dict[str, Any]:
    table = rows.groupby("value")["score"].agg(["mean", "min", "max"])
    line = {name: round_numbers(table[name]) for name in ("mean", "min", "max")}
    own = {"runs": rows.index.tolist(), "at": rows["value"].tolist()}
    return {"name": method, "x": table.index.tolist(), **line, **own}


def describe_agreement(scores: pd.DataFrame) -> list[Plot]:
    """Return Spearman's rank correlation between scores over runs; nothing if fewer than two scores vary.

    Args:
        scores: One row per run, one column per score.
    """
    varying = scores.loc[:, scores.nunique() > 1]
    if varying.shape[1] < 2:
        return []
    names = [str(name) for name in varying]
    correlations = varying.corr(method="spearman", min_periods=MIN_RANK_RUNS).to_numpy()
    caption = f"Do the scores agree? Spearman's rank correlation between scores over {len(scores)} runs."
    return [matrix_plot(caption, correlations, names, names, is_signed=True)]


def matrix_plot(
    caption: str, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, is_signed: bool = False
) -> Plot:
    """Return a matrix as shades with its numbers; `is_signed` for values from -1 to 1 instead of 0 to 1."""
    cells = [[round_number(float(value)) for value in line] for line in values]
    names = {"rows": list(rows), "columns": list(columns)}
    return {"kind": "matrix", "caption": caption, "panels": [{**names, "values": cells, "signed": is_signed}]}


def describe_losses(settings: Sequence[Setting]) -> list[Plot]:
    """Return one plot per method that was trained: the mean of every loss term over the runs of a setting."""
    plots = []
    for method in dict.fromkeys(setting.method for setting in settings):
        own = [setting for setting in settings if setting.method == method]
        histories = {s.label: history for s in own[:MAX_CURVES] if (history := _mean_history(s)) is not None}
        if histories:
            subset = f" The best {MAX_CURVES} of {len(own)} settings." if len(own) > MAX_CURVES else ""
            caption = f"Loss curves of {method}: means over the runs of each setting.{subset}"
            plots.append({"kind": "curves", "caption": caption, "panels": _describe_terms(histories)})
    return plots


def _describe_terms(histories: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    panels = []
    for term in loss_terms(histories):
        series = []
        for name, history in histories.items():
            if term in history:
                rows = np.unique(np.linspace(0, len(history) - 1, MAX_CURVE_POINTS).round().astype(int))
                steps, values = history["step"].to_numpy()[rows], history[term].to_numpy()[rows]
                series.append({"name": name, "x": steps.tolist(), "y": round_numbers(values)})
        panels.append({"title": term, "x": "training step", "series": series})
    return panels


def _mean_history(setting: Setting) -> pd.DataFrame | None:
    histories = [history for run in setting.runs if "step" in (history := read_history(run.folder))]
    if not histories:
        return None
    return pd.concat(histories).groupby("step", as_index=False).mean()
