"""Runs become one self-contained HTML page: a summary, the table, the figures, and where it all came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from . import __version__, catalog
from .errors import InputError, kebab, plural
from .figures.embedding import embedding
from .figures.heatmap import heatmap
from .figures.isometry import isometry
from .figures.style import data_uri
from .run import Evaluated, find_runs, read_run
from .scoring import Metric
from .storage import write_whole

RECOVERED, PARTLY = 0.95, 0.8  # MCC from which the summary speaks of recovered and partly recovered factors


def write_report(runs: Sequence[str | Path], out: str | Path = "report.html") -> Path:
    """Write the page for run folders, or folders of runs; it opens without a network."""
    out = Path(out)
    if out.is_dir():
        raise InputError(f"{out} is a folder: name the page, e.g. --out {out / 'report.html'}")
    done = [read_run(folder) for folder in find_runs([Path(run) for run in runs])]
    groups: dict[str, list[Evaluated]] = {}
    for run in done:
        groups.setdefault(json.dumps(run.recipe["data"], sort_keys=True), []).append(run)
    environment = Environment(loader=PackageLoader("unweave", "."), autoescape=True, trim_blocks=True)
    page = environment.get_template("report.html.jinja").render(
        version=__version__,
        groups=[_group(members) for members in groups.values()],
        thresholds=(RECOVERED, PARTLY),
    )
    write_whole(out, page)
    return out


def _group(runs: list[Evaluated]) -> dict[str, Any]:
    """Everything the page says about the runs on one dataset."""
    data, columns = runs[0].env["data"], list(dict.fromkeys(c for run in runs for c in run.scores))
    best = {c: _best(c, [run.scores[c] for run in runs if c in run.scores]) for c in columns}
    named = [f.name for f in runs[0].factors if not f.noise]
    about = f"{plural(data['observations'], 'observation')} of shape {' x '.join(map(str, data['shape']))}"
    # The winner first, for a reader who has ten seconds.
    runs = sorted(runs, key=lambda run: -run.scores.get(_decisive(runs), float("-inf")))
    return {
        "title": data["title"],
        "about": about + (f", known factors: {', '.join(named)}" if named else ", no known factors"),
        "summary": summary(runs),
        "columns": columns,
        "explained": [(c, _explanation(c)) for c in columns],
        "runs": [_section(run, columns, best, runs) for run in runs],
    }


def summary(runs: Sequence[Evaluated]) -> str:
    """What a person should know after ten seconds."""
    scored = _decisive(runs)
    order = sorted((r for r in runs if scored in r.scores), key=lambda r: -r.scores[scored])
    if not order:
        return "No scores were asked for."
    names = _labels(list(runs))
    top, rest = order[0], order[1:]
    value = top.scores[scored]
    if scored == "mcc":
        verdict = "recovers" if value >= RECOVERED else "partly recovers" if value >= PARTLY else "does not recover"
        factors = [f.name for f in top.factors if f.kind != "nominal" and not f.noise]
        text = f"{names[id(top)]} {verdict} the factors {' and '.join(factors)} (MCC {value:.3f}; 1 is perfect)"
    else:
        known = [f.name for f in top.factors if not f.noise]
        have = "has" if len(known) == 1 else "have"
        why = f"{' and '.join(known)} {have} no order to correlate with" if known else "No factors are known"
        text = f"{why}. {names[id(top)]} keeps near distances best (local isometry {value:.3f}; 1 is perfect)"
    others = "; ".join(f"{names[id(r)]} {r.scores[scored]:.3f}" for r in rest[:5])
    more = f"; and {len(rest) - 5} more" if len(rest) > 5 else ""
    return text + (f". Others: {others}{more}." if rest else ".")


def _decisive(runs: Sequence[Evaluated]) -> str:
    """The score that the summary goes by: MCC where factors are known."""
    return "mcc" if any("mcc" in run.scores for run in runs) else "local-isometry"


def _labels(runs: list[Evaluated]) -> dict[int, str]:
    """Each run's method, with the settings in which runs of that method differ."""
    labels = {}
    for run in runs:
        mine = run.recipe["method"]
        same = [r.recipe["method"] for r in runs if r.recipe["method"]["name"] == mine["name"]]
        apart = [k for k in mine if k not in ("name", "source") and len({json.dumps(s.get(k)) for s in same}) > 1]
        labels[id(run)] = mine["name"] + (f" ({', '.join(f'{k}={mine[k]}' for k in apart)})" if apart else "")
    return labels


def _section(run: Evaluated, columns: list[str], best: dict[str, Any], runs: list[Evaluated]) -> dict[str, Any]:
    heat = heatmap(run.codes, run.truth, run.factors)
    ramps = "If each factor's colours run along one axis, every code is one factor." if run.factors else "The codes."
    figures = [(ramps, embedding(run.codes, run.truth, run.factors))]
    figures += [("One dark cell per row and column: each factor has a code of its own.", heat)] if heat else []
    near = isometry(run.pairs, run.scores.get("local-isometry"))
    figures.append(("Near pairs on the line: a small step in the data is the same step in the codes.", near))
    cells = [(run.scores.get(c), run.scores.get(c) is not None and run.scores[c] == best[c]) for c in columns]
    return {
        "label": _labels(runs)[id(run)],
        "cells": cells,
        "seconds": run.env["seconds"],
        "figures": [{"caption": caption, "uri": data_uri(figure)} for caption, figure in figures],
        "provenance": json.dumps({"recipe": run.recipe, "environment": run.env}, indent=2, ensure_ascii=False),
        "said": run.diagnosis,
        "seed": run.recipe["method"].get("seed"),
        "hash": run.env["data"]["sha256"][:12],
    }


def _metric(column: str) -> Metric | None:
    return catalog.metrics().get(kebab(column.partition(".")[0].partition("[")[0]))


def _best(column: str, values: list[float]) -> float:
    """The value closest to the best there is; of a metric that the catalog does not know, the largest."""
    found = _metric(column)
    return min(values, key=lambda v: abs(v - found.facts.best)) if found else max(values)


def _explanation(column: str) -> str:
    """The first sentence of a metric's documentation."""
    found = _metric(column)
    return ((found.__doc__ or "").strip().split("\n")[0] + f" [{found.facts.paper}]") if found else "your own metric"
