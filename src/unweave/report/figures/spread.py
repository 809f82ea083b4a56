"""Distributions of scores over the runs of a study, and correlations between scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import BLUE, GRAY, INK, add_legend, count_columns, make_panels

MAX_COLUMNS = 4  # panels in a row
MIN_LOG_RATIO = 8  # of the largest to the smallest value of a parameter, from which its axis is logarithmic
MAX_LABEL_LENGTH = 46  # characters
MAX_TICKS = 8  # values of a parameter that are written below a logarithmic axis
JITTER = 0.16  # largest vertical offset of a dot, in rows
MIN_RANK_RUNS = 3  # runs with both scores, for a rank correlation


def draw_boxes(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Return one panel per score, with a box plot per setting and a dot per run.

    Args:
        scores: score -> label of the setting -> values of its runs.
    """
    labels = list(dict.fromkeys(label for groups in scores.values() for label in groups))
    margin = 0.075 * min(MAX_LABEL_LENGTH, max(map(len, labels)))
    size = {"width": 3.4, "height": 1.0 + 0.3 * len(labels), "margin": margin}
    figure, axes = make_panels(len(scores), max_columns=MAX_COLUMNS, **size)
    columns = count_columns(len(scores), MAX_COLUMNS)
    lines: Any = {part: {"color": GRAY} for part in ("boxprops", "whiskerprops", "capprops")}
    median = {"color": BLUE, "linewidth": 1.6}
    for i, (axis, (name, groups)) in enumerate(zip(axes, scores.items(), strict=True)):
        values = [list(groups.get(label, ())) for label in labels]
        axis.boxplot(values, orientation="horizontal", showfliers=False, widths=0.6, medianprops=median, **lines)
        for k, own in enumerate(values):
            offsets = np.linspace(-JITTER, JITTER, len(own)) if len(own) > 1 else np.zeros(len(own))
            axis.plot(own, k + 1 + offsets, "o", markersize=2.8, color=INK, alpha=0.55)
        axis.set_title(name)
        texts = [shorten(label) for label in labels] if i % columns == 0 else [""] * len(labels)
        axis.set_yticks(range(1, len(labels) + 1), texts)
        axis.invert_yaxis()
        axis.grid(axis="x", linewidth=0.4)
    return figure


def shorten(label: str) -> str:
    """Return a label of at most `MAX_LABEL_LENGTH` characters."""
    return label if len(label) <= MAX_LABEL_LENGTH else label[: MAX_LABEL_LENGTH - 1] + "…"


def draw_by_value(runs: pd.DataFrame, scores: Sequence[str], parameter: str) -> Figure:
    """Return one panel per score: mean and range over runs against a parameter, with one line per method.

    Args:
        runs: One row per run, with the columns `method`, the parameter and the scores.
        scores: Columns to draw.
        parameter: Column of the horizontal axis.
    """
    figure, axes = make_panels(len(scores), width=3.4, height=2.6, max_columns=MAX_COLUMNS)
    values = runs[parameter]
    for axis, name in zip(axes, scores, strict=True):
        for method, own in runs.groupby("method", sort=False):
            table = own.groupby(parameter)[name].agg(["mean", "min", "max"]).dropna()
            (line,) = axis.plot(table.index, table["mean"], "o-", markersize=3, linewidth=1.2, label=str(method))
            axis.fill_between(table.index, table["min"], table["max"], color=line.get_color(), alpha=0.15, linewidth=0)
        if values.min() > 0 and values.max() / values.min() >= MIN_LOG_RATIO:
            axis.set_xscale("log")
            ticks = sorted(values.unique())
            if len(ticks) <= MAX_TICKS:  # the values themselves instead of powers of ten
                axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axis.minorticks_off()
        axis.set_title(name)
        axis.set_xlabel(parameter)
    if runs["method"].nunique() > 1:
        add_legend(axes[-1])
    return figure


def draw_agreement(scores: pd.DataFrame) -> Figure | None:
    """Return Spearman's rank correlation between scores over runs; None if fewer than two scores vary.

    Args:
        scores: One row per run, one column per score.
    """
    varying = scores.loc[:, scores.nunique() > 1]
    if varying.shape[1] < 2:
        return None
    names = [str(name) for name in varying]
    margin = 0.085 * max(map(len, names))
    figure, (axis,) = make_panels(1, width=1.4 + margin + 0.55 * len(names), height=0.7 + margin + 0.42 * len(names))
    correlations = varying.corr(method="spearman", min_periods=MIN_RANK_RUNS).to_numpy()
    draw_matrix(axis, correlations, names, minimum=-1.0, color_map="RdBu")
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_xlabel("")
    axis.set_title("rank correlation")
    return figure
