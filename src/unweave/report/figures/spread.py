"""How scores spread over the runs of a study, and how far they agree with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import add_legend, count_columns, make_panels

ACROSS = 4  # panels in a row
POWERS = 8  # times from which an axis is logarithmic: strengths are tried in powers
LONGEST = 46  # characters of a name


def draw_boxes(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """One panel for each score, one box for each setting, a dot for each run; settings from top to bottom."""
    names = list(dict.fromkeys(label for groups in scores.values() for label in groups))
    room = 0.075 * min(LONGEST, max(map(len, names)))
    figure, axes = make_panels(len(scores), width=3.4, height=1.0 + 0.3 * len(names), across=ACROSS, beside=room)
    columns = count_columns(len(scores), ACROSS)
    for i, (axis, (name, groups)) in enumerate(zip(axes, scores.items(), strict=True)):
        values = [list(groups.get(label, ())) for label in names]
        axis.boxplot(
            values,
            orientation="horizontal",
            showfliers=False,
            widths=0.6,
            medianprops={"color": "#0b6bcb", "linewidth": 1.6},
            boxprops={"color": "#5a6675"},
            whiskerprops={"color": "#5a6675"},
            capprops={"color": "#5a6675"},
        )
        for k, found in enumerate(values):
            lift = np.linspace(-0.16, 0.16, len(found)) if len(found) > 1 else np.zeros(len(found))
            axis.plot(found, k + 1 + lift, "o", markersize=2.8, color="#1c2430", alpha=0.55)
        axis.set_title(name)
        short = [n if len(n) <= LONGEST else n[: LONGEST - 1] + "…" for n in names]
        axis.set_yticks(range(1, len(names) + 1), short if i % columns == 0 else [""] * len(names))
        axis.invert_yaxis()
        axis.grid(axis="x", linewidth=0.4)
    return figure


def draw_by_value(runs: pd.DataFrame, scores: Sequence[str], parameter: str) -> Figure:
    """One panel for each score: its mean and range for every value of a parameter, a line for each method."""
    figure, axes = make_panels(len(scores), width=3.4, height=2.6, across=ACROSS)
    values = runs[parameter]
    for axis, name in zip(axes, scores, strict=True):
        for method, own in runs.groupby("method", sort=False):
            found = own.groupby(parameter)[name].agg(["mean", "min", "max"]).dropna()
            (line,) = axis.plot(found.index, found["mean"], "o-", markersize=3, linewidth=1.2, label=str(method))
            axis.fill_between(found.index, found["min"], found["max"], color=line.get_color(), alpha=0.15, linewidth=0)
        if values.min() > 0 and values.max() / values.min() >= POWERS:
            axis.set_xscale("log")
        axis.set_title(name)
        axis.set_xlabel(parameter)
    if runs["method"].nunique() > 1:
        add_legend(axes[-1])
    return figure


def draw_agreement(scores: pd.DataFrame) -> Figure | None:
    """Spearman's rank correlation of every score with every other, over runs; None where fewer than two vary."""
    varied = scores.loc[:, scores.nunique() > 1]
    if varied.shape[1] < 2:
        return None
    names = [str(name) for name in varied]
    longest = 0.085 * max(map(len, names))
    figure, (axis,) = make_panels(1, width=1.4 + longest + 0.55 * len(names), height=0.7 + longest + 0.42 * len(names))
    draw_matrix(axis, varied.corr(method="spearman", min_periods=3).to_numpy(), names, least=-1.0, palette="RdBu")
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_xlabel("")
    return figure
