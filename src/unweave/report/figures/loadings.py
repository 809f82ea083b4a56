"""Figures of linear methods on tables: variance of the components, and the columns that make up each code."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from unweave.methods.base import Method
from unweave.methods.components import MIN_LOADING, format_share
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.spread import shorten
from unweave.report.figures.style import BLUE, INK, make_panels

MAX_ROWS = 60  # columns of a table in the loading chart; of more, those with the largest loadings
MAX_CODES = 20  # codes in the loading chart
MIN_SHOWN = 10  # components whose cross-validation error is shown, if there are that many
OTHER_COLOR = "#c3cbd5"  # of components that codes are not made from
CHARACTER_WIDTH = 0.08  # inches

SCREE = "Scree plot: the variance of each principal component. Codes are made from the blue ones."
CHOICE = " Right: the error of predicting values that were held out is smallest with the chosen number."
LOADINGS = "Loadings: the correlation of each column with each code. Blue columns rise with the code, red ones fall."


def draw_scree(method: Any) -> Figure:
    """Return the variance of each principal component; if their number was chosen, also the cross-validation errors.

    Args:
        method: A fitted `PCA` or `LinearICA`.
    """
    errors = getattr(method, "choice_errors_", None)
    figure, axes = make_panels(1 if errors is None else 2, width=3.4)
    _draw_variances(axes[0], method)
    if errors is not None:
        _draw_errors(axes[1], np.asarray(errors), method.latent_dim_)
    return figure


def _draw_variances(axis: Axes, method: Any) -> None:
    """Draw the shares of the variance as bars, those of the codes in blue."""
    d, shares = method.latent_dim_, np.asarray(method.variance_spectrum_)
    known = len(shares) > 0
    shares = shares if known else method.explained_variance_ratio_  # too many rows and columns for all components
    axis.bar(range(1, len(shares) + 1), shares, color=[BLUE if k < d else OTHER_COLOR for k in range(len(shares))])
    axis.yaxis.set_major_formatter(PercentFormatter(1, 0 if shares.max() > 0.05 else 1, symbol=" %"))
    axis.set_xlim(0.4, len(shares) + 0.6)
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axis.set_xlabel("principal component" if known else "code")
    axis.set_ylabel("share of the variance")
    total = f"{format_share(method.explained_variance_ratio_.sum())} of the variance"
    axis.set_title(f"{d} {'code explains' if d == 1 else 'codes explain'} {total}")


def _draw_errors(axis: Axes, errors: np.ndarray, chosen: int) -> None:
    """Draw the error of predicting held-out values from 0, 1, ... components, and mark the chosen number."""
    shown = errors[: max(2 * chosen, MIN_SHOWN) + 1]
    shown = shown[np.isfinite(shown)]
    axis.plot(range(len(shown)), shown, "o-", color=INK, markersize=3.5, linewidth=1)
    if chosen < len(shown):
        axis.plot(chosen, shown[chosen], "o", color=BLUE, markersize=9)
    axis.set_ylim(0, 1.1 * max(1.0, float(np.median(shown))))
    axis.yaxis.set_major_formatter(PercentFormatter(1, 0, symbol=" %"))
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axis.set_xlabel("number of components")
    axis.set_ylabel("error for held-out values")
    axis.set_title(f"cross-validation chooses {chosen}")


def draw_loadings(method: Any) -> Figure:
    """Return the correlation of each column with each code, columns grouped by the code that they load on most.

    Columns that no code is made of come last.

    Args:
        method: A fitted `PCA` or `LinearICA`.
    """
    loadings = np.asarray(method.loadings_)[:MAX_CODES].T  # (columns, codes)
    strength, group = np.abs(loadings).max(1), np.abs(loadings).argmax(1)
    rows = np.argsort(-strength, kind="stable")[:MAX_ROWS]
    rows = rows[np.argsort(np.where(strength < MIN_LOADING, MAX_CODES, group)[rows], kind="stable")]
    column_names = method.column_names()
    names = [shorten(column_names[i]) for i in rows]
    margin = CHARACTER_WIDTH * max(map(len, names))
    size = {"width": 1.9 + margin + 0.6 * max(2, loadings.shape[1]), "height": 1.1 + 0.21 * max(4, len(rows))}
    figure, (axis,) = make_panels(1, **size)
    draw_matrix(axis, loadings[rows], names, minimum=-1.0, color_map="RdBu")
    shares = method.explained_variance_ratio_[:MAX_CODES]
    axis.set_xticks(range(len(shares)), [f"{j}\n{format_share(share)}" for j, share in enumerate(shares, 1)])
    axis.set_xlabel("code, and its share of the variance")
    axis.set_title(_describe_selection(len(rows), len(loadings), len(shares), method.latent_dim_))
    return figure


def _describe_selection(rows: int, columns: int, codes: int, d: int) -> str:
    """Return the title of a loading chart, which says what is left out."""
    parts = [f"{rows} of {columns:,} columns"] if rows < columns else []
    parts += [f"{codes} of {d} codes"] if codes < d else []
    return "loadings" + (f" ({', '.join(parts)})" if parts else "")


def draw_linear(method: Method) -> list[tuple[str, Figure]]:
    """Return captions and figures of a linear method that was fitted to a table; none for other methods."""
    figures = []
    if "scree" in method.figures():
        figures.append((SCREE + (CHOICE if hasattr(method, "choice_errors_") else ""), draw_scree(method)))
    if "loadings" in method.figures():
        figures.append((LOADINGS, draw_loadings(method)))
    return figures
