"""Figures of all runs on one dataset: scores, parameters, rank correlations, loss curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.experiments.grouping import Setting
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.spread import draw_agreement, draw_boxes, draw_by_value

MAX_CURVES = 8  # settings in one figure of loss curves
MAX_BOXES = 40  # settings in the box plots
MIN_VALUES = 3  # values of a numeric parameter, from which it is drawn as an axis
MIN_RUNS = 5  # runs from which rank correlations are shown


def draw_overview(settings: Sequence[Setting], columns: Sequence[str]) -> list[tuple[str, Figure]]:
    """Return captions and figures that compare settings, best first; empty if there is nothing to compare.

    Args:
        settings: Methods with their parameters and runs.
        columns: Names of the scores.
    """
    table, figures = _tabulate(settings, columns), []
    if len(settings) < len(table) and columns:
        subset = f" The best {MAX_BOXES} of {len(settings)} settings." if len(settings) > MAX_BOXES else ""
        spread = {c: {s.label: s.scores(c) for s in settings[:MAX_BOXES]} for c in columns}
        caption = f"Scores of all runs: one dot per run, boxes from the first to the third quartile.{subset}"
        figures.append((caption, draw_boxes(spread)))
    for name in dict.fromkeys(k for setting in settings for k in setting.values):
        values = pd.to_numeric(table[name], errors="coerce")
        if values.nunique() >= MIN_VALUES and columns:
            caption = f"Effect of {name}: mean over runs, shaded from the lowest to the highest score."
            rows = table.assign(**{name: values}).dropna(subset=name)
            figures.append((caption, draw_by_value(rows, columns, name)))
    ranks = draw_agreement(table[list(columns)]) if len(table) >= MIN_RUNS else None
    if ranks is not None:
        caption = f"Do the scores agree? Spearman's rank correlation between scores over {len(table)} runs."
        figures.append((caption, ranks))
    return figures + _draw_losses(settings)


def _tabulate(settings: Sequence[Setting], columns: Sequence[str]) -> pd.DataFrame:
    """Return one row per run: its method, the parameters in which settings differ, its scores."""
    rows = [
        {"method": setting.method} | setting.values | {c: run.scores.get(c, np.nan) for c in columns}
        for setting in settings
        for run in setting.runs
    ]
    return pd.DataFrame(rows)


def _draw_losses(settings: Sequence[Setting]) -> list[tuple[str, Figure]]:
    """Return one figure per method that was trained: the mean of every loss term over the runs of a setting."""
    figures = []
    for method in dict.fromkeys(setting.method for setting in settings):
        own = [setting for setting in settings if setting.method == method]
        histories = {s.label: history for s in own[:MAX_CURVES] if (history := _mean_history(s)) is not None}
        if histories:
            subset = f" The best {MAX_CURVES} of {len(own)} settings." if len(own) > MAX_CURVES else ""
            figures.append((f"Loss curves of {method}.{subset}", draw_loss_curves(histories)))
    return figures


def _mean_history(setting: Setting) -> pd.DataFrame | None:
    paths = [path for run in setting.runs if (path := run.folder / "history.parquet").is_file()]
    if not paths:
        return None
    return pd.concat([pd.read_parquet(path) for path in paths]).groupby("step", as_index=False).mean()
