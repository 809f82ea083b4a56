"""How the terms of a loss went."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from unweave.report.figures.style import add_legend, make_panels

ACROSS = 4  # panels in a row


def draw_loss_curves(histories: Mapping[str, pd.DataFrame]) -> Figure:
    """One panel for each term, one line for each model; the steps run along the bottom."""
    terms = list(dict.fromkeys(term for history in histories.values() for term in history.columns if term != "step"))
    figure, axes = make_panels(len(terms), width=2.8, height=2.5, across=ACROSS)
    for axis, term in zip(axes, terms, strict=True):
        for name, history in histories.items():
            if term in history:
                axis.plot(history["step"], history[term], label=name, linewidth=1)
        axis.set_title(term)
        axis.set_xlabel("step")
    if len(histories) > 1:
        add_legend(axes[-1])
    return figure
