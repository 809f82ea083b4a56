"""Figures of linear methods on tables: variance of the components, and the columns that make up each code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from unweave.methods.components import MIN_LOADING, format_share
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import BLUE, INK, make_panels, shorten

MAX_ROWS = 60  # columns of a table in the loading chart; of more, those with the largest loadings
MAX_CODES = 20  # codes in the loading chart
MIN_SHOWN = 10  # components whose cross-validation error is shown, if there are that many
OTHER_COLOR = "#c3cbd5"  # of components that codes are not made from
CHARACTER_WIDTH = 0.08  # inches


def draw_scree(method: Any) -> Figure:
    """Return the variance of each principal component; if their number was chosen, also the cross-validation errors.

    Args:
        method: A fitted `PCA` or `LinearICA`.
    """
    errors = getattr(method, "choice_errors_", None)
    figure, axes = make_panels(1 if errors is None else 2, width=3.4)
    _draw_variances(axes[0], method)
    if errors is not None:
        _draw_errors(axes[1], held_out_errors(method), method.latent_dim_)
    return figure


def _draw_variances(axis: Axes, method: Any) -> None:
    """Draw the shares of the variance as bars, those of the codes in blue."""
    d, shares, axis_name = method.latent_dim_, *variance_shares(method)
    axis.bar(range(1, len(shares) + 1), shares, color=[BLUE if k < d else OTHER_COLOR for k in range(len(shares))])
    axis.yaxis.set_major_formatter(PercentFormatter(1, 0 if shares.max() > 0.05 else 1, symbol=" %"))
    axis.set_xlim(0.4, len(shares) + 0.6)
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axis.set_xlabel(axis_name)
    axis.set_ylabel("share of the variance")
    axis.set_title(variance_title(method))


def variance_shares(method: Any) -> tuple[np.ndarray, str]:
    """Return the share of the variance of each principal component, or else of each code, and what they are called."""
    shares = np.asarray(method.variance_spectrum_)
    if len(shares):
        return shares, "principal component"
    return np.asarray(method.explained_variance_ratio_), "code"  # too many rows and columns for all components


def variance_title(method: Any) -> str:
    """Return how much of the variance the codes explain."""
    d, total = method.latent_dim_, format_share(method.explained_variance_ratio_.sum())
    return f"{d} {'code explains' if d == 1 else 'codes explain'} {total} of the variance"


def held_out_errors(method: Any) -> np.ndarray:
    """Return the errors of predicting held-out values from 0, 1, ... components, around the chosen number."""
    shown = np.asarray(method.choice_errors_)[: max(2 * method.latent_dim_, MIN_SHOWN) + 1]
    return shown[np.isfinite(shown)]


def _draw_errors(axis: Axes, shown: np.ndarray, chosen: int) -> None:
    """Draw the error of predicting held-out values from 0, 1, ... components, and mark the chosen number."""
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
    chart = select_loadings(method)
    width = 1.9 + CHARACTER_WIDTH * max(map(len, chart.names)) + 0.6 * max(2, len(chart.shares))
    figure, (axis,) = make_panels(1, width=width, height=1.1 + 0.21 * max(4, len(chart.names)))
    draw_matrix(axis, chart.values, chart.names, minimum=-1.0, color_map="RdBu")
    axis.set_xticks(range(len(chart.shares)), [f"{j}\n{share}" for j, share in enumerate(chart.shares, 1)])
    axis.set_xlabel("code, and its share of the variance")
    axis.set_title(chart.title)
    return figure


class LoadingChart(NamedTuple):
    """The loadings that are shown."""

    values: np.ndarray  # (rows, codes): correlations
    names: list[str]  # of the columns of the table, one per row
    shares: list[str]  # of the variance, one per code
    title: str


def select_loadings(method: Any) -> LoadingChart:
    """Return the columns with the largest loadings, grouped by the code that they load on most."""
    loadings = np.asarray(method.loadings_)[:MAX_CODES].T  # (columns, codes)
    strength, group = np.abs(loadings).max(1), np.abs(loadings).argmax(1)
    rows = np.argsort(-strength, kind="stable")[:MAX_ROWS]
    rows = rows[np.argsort(np.where(strength < MIN_LOADING, MAX_CODES, group)[rows], kind="stable")]
    column_names = method.column_names()
    shares = [format_share(share) for share in method.explained_variance_ratio_[:MAX_CODES]]
    title = _describe_selection(len(rows), len(loadings), len(shares), method.latent_dim_)
    return LoadingChart(loadings[rows], [shorten(column_names[i]) for i in rows], shares, title)


def _describe_selection(rows: int, columns: int, codes: int, d: int) -> str:
    """Return the title of a loading chart, which says what is left out."""
    parts = [f"{rows} of {columns:,} columns"] if rows < columns else []
    parts += [f"{codes} of {d} codes"] if codes < d else []
    return "loadings" + (f" ({', '.join(parts)})" if parts else "")
