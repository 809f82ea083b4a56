"""Plots and pictures of one run: observations and traversals along each code, codes by factors, correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave import catalog
from unweave.experiments.ordered import (
    IMAGE_DIMENSIONS,
    OrderedColumns,
    OrderedImages,
    Periods,
    read_ordered,
)
from unweave.experiments.run import FinishedRun
from unweave.methods.base import Method
from unweave.report.figures.heatmap import correlate
from unweave.report.figures.loadings import held_out_errors, select_loadings, variance_shares, variance_title
from unweave.report.figures.ordered import MAX_DEVIATION, code_label, code_texts, describe_missing, range_text
from unweave.report.figures.traversal import decode_traversals
from unweave.report.plots.codes import describe_codes, describe_isometry
from unweave.report.plots.overview import Plot, matrix_plot
from unweave.report.plots.packing import encode_image, round_numbers
from unweave.utils.errors import InputError

MAX_BARS = 60  # principal components of a scree plot


def describe_figures(run: FinishedRun) -> list[Plot]:
    """Return the plots of a run; those of the kind "images" are pictures in rows."""
    periods = code_periods(run)
    method = _load_method(run)
    plots = describe_along_codes(run, periods)
    if method is not None and len(run.env["data"]["shape"]) in IMAGE_DIMENSIONS and method.has_decoder():
        plots.append(describe_traversals(method, run.codes))
    plots += describe_codes(run, periods)
    correlations = correlate(run.codes, run.truth, run.factors, periods)
    if correlations is not None:
        names, values = correlations
        codes = [f"code {j + 1}" for j in range(values.shape[1])]
        plots.append(matrix_plot(_caption_correlations(run, periods), values, names, codes))
    plots += describe_isometry(run)
    if method is not None and len(run.env["data"]["shape"]) == 1:
        plots += describe_linear(method)
    return plots


def _load_method(run: FinishedRun) -> Method | None:
    try:
        return catalog.load(run.folder)
    except InputError:  # a class of the user, whose file the folder does not name
        return None


def code_periods(run: FinishedRun) -> Periods:
    """Return the period of each code; None for all codes of a run of an earlier version."""
    periods: list[float | None] = run.env.get("code_periods") or []
    return periods if len(periods) == run.codes.shape[1] else [None] * run.codes.shape[1]


def describe_along_codes(run: FinishedRun, periods: Periods) -> list[Plot]:
    """Return the observations along each code that the run folder holds; nothing for one of an earlier version."""
    ordered = read_ordered(run.folder)
    if ordered is None:
        return []
    if isinstance(ordered, OrderedImages):
        caption = (
            "Real observations along each code, its value below. The other codes stay similar where the data allow."
        )
        plot = _describe_images(ordered, periods)
    else:
        caption = (
            "Columns that change most along each code: means of groups of rows, from low to high values of the code."
        )
        caption += f" Colors are standard deviations from the mean of the column, from -{MAX_DEVIATION:g} (blue)"
        caption += f" to {MAX_DEVIATION:g} (red). At the right, the means at both ends in the units of the column."
        plot = _describe_columns(ordered, periods)
    if any(period is not None for period in periods):
        caption += " An angle goes once around: the last place is the first again."
    note = describe_missing(run.codes, ordered)
    return [plot | {"caption": f"{caption} {note}".strip()}]


def _describe_images(ordered: OrderedImages, periods: Periods) -> Plot:
    """Return a row of pictures for each code, with the value of the code and the name of the observation."""
    uris = [encode_image(image) for image in ordered.images]
    rows = []
    for i, j in enumerate(ordered.codes.tolist()):
        period = periods[j]
        values = ordered.values[i] if period is None else ordered.values[i] % period
        names = ordered.names[i].tolist() if ordered.names.size else [""] * len(values)
        cells = [
            {"uri": uris[k] if k >= 0 else "", "text": text, "name": name}
            for k, text, name in zip(ordered.places[i].tolist(), code_texts(values, period), names, strict=True)
        ]
        rows.append({"name": code_label(j, period).replace("\n", " "), "detail": "", "cells": cells})
    return {"kind": "images", "rows": rows}


def _describe_columns(ordered: OrderedColumns, periods: Periods) -> Plot:
    """Return a heat map for each code: the columns that change most with it, in groups of rows from low to high."""
    panels = []
    for i, j in enumerate(ordered.codes.tolist()):
        shades = [round_numbers(line / MAX_DEVIATION) for line in ordered.scaled[i]]
        panels.append(
            {
                "title": code_label(j, periods[j]).replace("\n", " "),
                "rows": ordered.columns[i].tolist(),
                "columns": code_texts(ordered.values[i], periods[j]),
                "values": shades,
                "texts": [round_numbers(line) for line in ordered.means[i]],
                "ends": [range_text(means, periods[j]) for means in ordered.means[i]],
                "signed": True,
                "warm": True,  # red is high, as in the figures of `unweave draw`
            }
        )
    return {"kind": "matrix", "panels": panels}


def describe_traversals(method: Method, codes: np.ndarray) -> Plot:
    """Return a row of decoded images for each code, which goes from its 5 % to its 95 % quantile."""
    rows = []
    for j, images in decode_traversals(method, codes):
        pictures = (np.clip(images, 0, 1) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)  # (n, h, w, c)
        uris = [encode_image(p[..., 0] if p.shape[-1] < 3 else p[..., :3]) for p in pictures]
        texts = ["start", *[""] * (len(uris) - 1)]
        cells = [{"uri": uri, "text": text, "name": ""} for uri, text in zip(uris, texts, strict=True)]
        rows.append({"name": f"code {j + 1}", "detail": f"std. {codes[:, j].std():.2f}", "cells": cells})
    caption = "Traversals: each row changes one code from its 5 % to its 95 % quantile and keeps the others fixed."
    caption += " The first image is the starting point."
    if len(rows) < codes.shape[1]:
        caption += f" {len(rows)} of {codes.shape[1]} codes, those that vary most."
    return {"kind": "images", "caption": caption, "rows": rows}


def _caption_correlations(run: FinishedRun, periods: Periods) -> str:
    caption = "Absolute correlation of factors and codes. One dark cell per row and column means one code per factor."
    if any(factor.period is not None for factor in run.factors) or any(p is not None for p in periods):
        caption += " Angles count by their cosine and sine."
    return caption


def describe_linear(method: Any) -> list[Plot]:
    """Return variance and loadings of a linear method that was fitted to a table; none for other methods."""
    plots: list[Plot] = []
    if "scree" in method.figures():
        plots.append(_describe_scree(method))
        if hasattr(method, "choice_errors_"):
            plots.append(_describe_choice(method))
    if "loadings" in method.figures():
        chart = select_loadings(method)
        columns = [f"code {j} ({share})" for j, share in enumerate(chart.shares, 1)]
        caption = f"{chart.title.capitalize()}: the correlation of each column with each code, and the code's share of"
        caption += " the variance. Blue columns rise with the code, red ones fall."
        plots.append(matrix_plot(caption, chart.values, chart.names, columns, is_signed=True))
    return plots


def _describe_scree(method: Any) -> Plot:
    shares, name = variance_shares(method)
    shown = shares[:MAX_BARS]
    edges = [k + 0.5 for k in range(len(shown) + 1)]
    title = variance_title(method)
    panel = {"title": title, "x": name, "y": "share of the variance", "edges": edges, "values": round_numbers(shown)}
    caption = "Scree plot: the variance of each principal component. Codes are made from the blue ones."
    caption += f" The first {len(shown)} of {len(shares)}." if len(shown) < len(shares) else ""
    return {"kind": "bars", "caption": caption, "panels": [panel | {"marked": method.latent_dim_}]}


def _describe_choice(method: Any) -> Plot:
    errors = held_out_errors(method)
    series = [{"name": "error for held-out values", "x": list(range(len(errors))), "y": round_numbers(errors)}]
    title = f"cross-validation chooses {method.latent_dim_}"
    panel = {"title": title, "x": "number of components", "series": series, "mark": method.latent_dim_}
    caption = "The error of predicting values that were held out is smallest with the chosen number of components."
    return {"kind": "curves", "caption": caption, "panels": [panel]}
