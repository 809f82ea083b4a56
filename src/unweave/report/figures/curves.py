"""Loss curves."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from unweave.report.figures.style import add_legend, make_panels

MAX_COLUMNS = 4  # panels in a row


def draw_loss_curves(histories: Mapping[str, pd.DataFrame]) -> Figure:
    """Return one panel per loss term and one line per model, over training steps.

    Args:
        histories: For every model a table with the column `step` and one column per loss term.
    """
    terms = loss_terms(histories)
    figure, axes = make_panels(len(terms), width=2.8, height=2.5, max_columns=MAX_COLUMNS)
    for axis, term in zip(axes, terms, strict=True):
        for name, history in histories.items():
            if term in history:
                axis.plot(history["step"], history[term], label=name, linewidth=1)
        axis.set_title(term)
        axis.set_xlabel("training step")
    if len(histories) > 1:
        add_legend(axes[-1])
    return figure


def loss_terms(histories: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the names of all loss terms, in the order of their first model."""
    return list(dict.fromkeys(term for history in histories.values() for term in history.columns if term != "step"))
