"""All runs of a study in pictures: how scores spread, what parameters do, how scores agree, how the losses went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.experiments.grouping import Setting
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.spread import draw_agreement, draw_boxes, draw_by_value

MOST_LINES = 8  # settings in one picture of learning curves
MOST_BOXES = 40  # settings in the box plots
VALUES = 3  # of a number, from which it is drawn as an axis
ENOUGH = 5  # runs from which rank correlations are shown


def draw_overview(every: Sequence[Setting], columns: Sequence[str]) -> list[tuple[str, Figure]]:
    """Captions and figures; none where there is nothing to compare."""
    table, found = _table(every, columns), []
    if len(every) < len(table) and columns:
        first = f" The best {MOST_BOXES} of {len(every)} settings." if len(every) > MOST_BOXES else ""
        spread = {c: {s.label: s.scores(c) for s in every[:MOST_BOXES]} for c in columns}
        dots = f"A dot is a run; a box holds the middle half of them, its line is the median.{first}"
        found.append((dots, draw_boxes(spread)))
    for name in dict.fromkeys(k for setting in every for k in setting.values):
        values = pd.to_numeric(table[name], errors="coerce")
        if values.nunique() >= VALUES and columns:
            about = f"What {name} does: means, and from the worst to the best run; other parameters as they come."
            found.append((about, draw_by_value(table.assign(**{name: values}).dropna(subset=name), columns, name)))
    ranks = draw_agreement(table[list(columns)]) if len(table) >= ENOUGH else None
    if ranks is not None:
        found.append((f"Do scores agree? Spearman's rank correlation between them, over {len(table)} runs.", ranks))
    return found + _learning(every)


def _table(every: Sequence[Setting], columns: Sequence[str]) -> pd.DataFrame:
    """A row for each run: its method, the parameters in which settings differ, its scores."""
    rows = [
        {"method": s.method} | s.values | {c: run.scores.get(c, np.nan) for c in columns}
        for s in every
        for run in s.runs
    ]
    return pd.DataFrame(rows)


def _learning(every: Sequence[Setting]) -> list[tuple[str, Figure]]:
    """For each method the terms of its loss, a line for the mean over the runs of a setting."""
    found = []
    for method in dict.fromkeys(setting.method for setting in every):
        own = [setting for setting in every if setting.method == method]
        histories = {s.label: h for s in own[:MOST_LINES] if (h := _history(s)) is not None}
        if histories:
            first = f"; the best {MOST_LINES} of {len(own)} settings" if len(own) > MOST_LINES else ""
            found.append((f"How {method} learned{first}.", draw_loss_curves(histories)))
    return found


def _history(setting: Setting) -> pd.DataFrame | None:
    paths = [path for run in setting.runs if (path := run.folder / "history.parquet").is_file()]
    if not paths:
        return None
    return pd.concat([pd.read_parquet(path) for path in paths]).groupby("step", as_index=False).mean()
