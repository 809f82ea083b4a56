"""Runs become one self-contained HTML page: the question, a summary, tables, figures, and where it all came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, PackageLoader

from unweave import __version__, catalog
from unweave.experiments.failures import unresolved_failures
from unweave.experiments.grouping import (
    Setting,
    are_counts,
    best_value,
    group_settings,
    metric_of,
    needs_labels,
    primary_score,
    shorten_number,
)
from unweave.experiments.run import FinishedRun, find_runs, read_run
from unweave.experiments.study_file import read_note
from unweave.metrics.contract import column_name
from unweave.metrics.evaluate import MetricInputs
from unweave.metrics.uncertainty import chance_level, plus_minus
from unweave.report.figures.overview import draw_overview
from unweave.report.figures.portrait import draw_run
from unweave.report.figures.style import to_data_uri
from unweave.utils.errors import InputError, plural
from unweave.utils.storage import write_atomic

RECOVERED, PARTLY = 0.95, 0.8  # MCC from which the summary speaks of recovered and partly recovered factors


def write_report(
    runs: Sequence[str | Path], out: str | Path = "report.html", notify: Callable[[str], None] = lambda text: None
) -> Path:
    """Write the page for run folders, or folders of runs; it opens without a network."""
    out, places = Path(out), [Path(run) for run in runs]
    if out.is_dir():
        raise InputError(f"{out} is a folder: name the page, e.g. --out {out / 'report.html'}")
    try:
        done = list({run.recipe["key"]: run for run in map(read_run, find_runs(places))}.values())  # a copy counts once
    except InputError:
        done = []
        if not any(unresolved_failures(place) for place in places):
            raise
    kept = list(dict.fromkeys([*places, *(run.folder.parent for run in done)]))  # where notes and failures may be
    wrong = [failure for place in kept for failure in unresolved_failures(place)]
    groups: dict[str, list[FinishedRun]] = {}
    for run in done:
        groups.setdefault(json.dumps(run.recipe["data"], sort_keys=True), []).append(run)
    environment = Environment(loader=PackageLoader("unweave", "report"), autoescape=True, trim_blocks=True)
    page = environment.get_template("template.html.jinja").render(
        version=__version__,
        studies=[_study(place, done, wrong) for place in kept if read_note(place)],
        groups=[_group(members, notify) for members in groups.values()],
        failures=wrong,
        thresholds=(RECOVERED, PARTLY),
    )
    write_atomic(out, page)
    return out


def _study(place: Path, runs: Sequence[FinishedRun], wrong: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What was asked, and how far it is."""
    note = read_note(place)
    done = {run.recipe["key"] for run in runs}
    keys, failed = set(note["keys"]), {failure["key"] for failure in wrong}
    others = sum(run.folder.parent == place and run.recipe["key"] not in keys for run in runs)
    parts = [f"{len(keys & done)} of {plural(len(keys), 'run')} done"]
    parts += [f"{len(keys & failed - done)} failed"] * bool(keys & failed - done)
    parts += [f"{len(keys - done - failed)} not run yet"] * bool(keys - done - failed)
    parts += [f"and {plural(others, 'run')} here that the study file does not ask for any more"] * bool(others)
    asked = f"scored by {', '.join(note['metrics']) or 'nothing'}"
    head, _, rest = note["question"].partition("\n")
    return {"question": head, "more": rest.strip(), "state": ", ".join(parts), "asked": asked, "file": note["file"]}


def _group(runs: list[FinishedRun], notify: Callable[[str], None]) -> dict[str, Any]:
    """Everything the page says about the runs on one dataset."""
    data, columns = runs[0].env["data"], list(dict.fromkeys(c for run in runs for c in run.scores))
    named = [f.name for f in runs[0].factors if not f.noise]
    about = f"{plural(data['observations'], 'observation')} of shape {' x '.join(map(str, data['shape']))}"
    scored = primary_score(columns) or ""
    every = _ranked(group_settings(runs), scored)
    notify(f"{data['title']}: chance levels")
    chance = _chance(every[0].runs[0], columns)
    notify(f"{data['title']}: drawing")
    return {
        "title": data["title"],
        "about": about + (f", known factors: {', '.join(named)}" if named else ", no known factors"),
        "summary": summary(runs),
        "columns": columns,
        "explained": [(c, _explanation(c)) for c in columns],
        "settings": _settings_table(every, columns) if len(every) < len(runs) else [],
        "chance": [chance.get(c) for c in columns],
        "runs": _runs_table(every, columns),
        "figures": [{"caption": text, "uri": to_data_uri(figure)} for text, figure in draw_overview(every, columns)],
        "sections": [_section(*best, columns) for best in _best_runs(every, scored).values()],
    }


def _ranked(every: list[Setting], scored: str) -> list[Setting]:
    """The best setting first, and in it the best run, for a reader who has ten seconds."""
    ordered = [setting._replace(runs=sorted(setting.runs, key=lambda run: _badness(run, scored))) for setting in every]
    return sorted(ordered, key=lambda s: float(np.mean([_badness(run, scored) for run in s.runs])))


def _badness(run: FinishedRun, scored: str) -> float:
    """How far a run is from the best there is."""
    metric = metric_of(scored)
    if scored not in run.scores:
        return float("inf")
    return abs(run.scores[scored] - metric.facts.best) if metric else -run.scores[scored]


def _best_runs(every: Sequence[Setting], scored: str) -> dict[str, tuple[Setting, FinishedRun]]:
    """For every method its best run, of whatever setting."""
    found: dict[str, tuple[Setting, FinishedRun]] = {}
    for setting in every:
        for run in setting.runs:
            best = found.setdefault(setting.method, (setting, run))
            if _badness(run, scored) < _badness(best[1], scored):
                found[setting.method] = setting, run
    return found


# In words -------------------------------------------------------------------------------------------------------


def summary(runs: Sequence[FinishedRun]) -> str:
    """What a person should know after ten seconds."""
    scored = primary_score(list(dict.fromkeys(c for run in runs for c in run.scores)))
    if scored is None:
        return "No scores were asked for."
    order = [setting for setting in _ranked(group_settings(runs), scored) if setting.scores(scored)]
    top, rest = order[0], order[1:]
    value, told = float(np.mean(top.scores(scored))), _mean(top.scores(scored))
    factors = [f for f in top.runs[0].factors if not f.noise]
    if scored == "mcc":
        verdict = "recovers" if value >= RECOVERED else "partly recovers" if value >= PARTLY else "does not recover"
        names = [f.name for f in factors if f.kind != "nominal"]
        text = f"{top.label} {verdict} the factors {' and '.join(names)} (MCC {told}; 1 is perfect)"
    elif needs_labels(scored):
        text = f"{top.label} is best by {scored} ({told}; {_perfect(scored)} is perfect)"
    else:
        names = [f.name for f in factors]
        why = f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no order to correlate with"
        best = "keeps near distances best (local isometry " if scored == "local-isometry" else f"is best by {scored} ("
        text = f"{why if names else 'No factors are known'}. {top.label} {best}{told}; {_perfect(scored)} is perfect)"
    first: dict[str, Setting] = {}  # the best setting of every other method; of one method alone, its other settings
    for setting in rest:
        first.setdefault(setting.method, setting)
    first.pop(top.method, None)
    others = "; ".join(f"{s.label} {_mean(s.scores(scored))}" for s in (list(first.values()) or rest)[:5])
    return text + (f". Others: {others}." if others else ".")


def _mean(values: Sequence[float]) -> str:
    return plus_minus(values) + (f" over {len(values)} runs" if len(values) > 1 else "")


def _perfect(name: str) -> str:
    metric = metric_of(name)
    return f"{metric.facts.best:g}" if metric else "more"


def _explanation(name: str) -> str:
    """The first sentence of a metric's documentation."""
    found = metric_of(name)
    return ((found.__doc__ or "").strip().split("\n")[0] + f" [{found.facts.paper}]") if found else "your own metric"


# Tables ---------------------------------------------------------------------------------------------------------


def _settings_table(every: Sequence[Setting], columns: Sequence[str]) -> list[dict[str, Any]]:
    """One line for each setting: means and intervals over its runs, the best mean of every score marked."""
    means = {c: [float(np.mean(s.scores(c))) for s in every if s.scores(c)] for c in columns}
    best = {c: best_value(c, values) for c, values in means.items()}
    lines = []
    for setting in every:
        cells = []
        for c in columns:
            values = setting.scores(c)
            cells.append((plus_minus(values) if values else None, bool(values) and float(np.mean(values)) == best[c]))
        lines.append({"label": setting.label, "count": len(setting.runs), "cells": cells})
    return lines


def _runs_table(every: Sequence[Setting], columns: Sequence[str]) -> dict[str, Any]:
    """One line for each run, for a table that sorts and filters."""
    names = list(dict.fromkeys(k for setting in every for k in setting.values))
    best = {c: best_value(c, [v for s in every for v in s.scores(c)]) for c in columns}
    lines = []
    for setting in every:
        for run in setting.runs:
            told = [
                setting.method,
                *(shorten_number(setting.values.get(k)) for k in names),
                run.recipe["method"].get("seed"),
            ]
            cells = [(run.scores.get(c), c in run.scores and run.scores[c] == best[c]) for c in columns]
            lines.append({"told": told, "cells": cells, "seconds": run.env["seconds"], "key": run.recipe["key"]})
    return {"names": ["method", *names, "seed"], "lines": lines}


def _chance(run: FinishedRun, columns: Sequence[str]) -> dict[str, float]:
    """What the codes of the best run score when they are shuffled against the factors; slow metrics are left out."""
    truths = MetricInputs(None, torch.tensor(run.truth), run.factors)
    found: dict[str, float] = {}
    for name in dict.fromkeys(c.rpartition(".")[0] if "." in c else c for c in columns if needs_labels(c)):
        metric = catalog.find_metrics([name])[name]
        variant = name.partition("[")[2].rstrip("]")
        if truths.has(metric) and variant not in metric.facts.slow:
            level = chance_level(metric, truths.of(metric), run.codes)
            found |= {column_name(name, part): value for part, value in level.items() if not are_counts([value])}
    return found


# One method -----------------------------------------------------------------------------------------------------


def _section(setting: Setting, run: FinishedRun, columns: Sequence[str]) -> dict[str, Any]:
    """The best run of a method: what it said of itself, its figures, its provenance."""
    seed = run.recipe["method"].get("seed")
    told = ", ".join(f"{c} {run.scores[c]:.3f}" for c in columns if c in run.scores)
    return {
        "label": setting.label,
        "which": f"The best run of {setting.method}, seed {seed}: {told}." if told else "",
        "figures": [{"caption": text, "uri": to_data_uri(figure)} for text, figure in draw_run(run)],
        "provenance": json.dumps({"recipe": run.recipe, "environment": run.env}, indent=2, ensure_ascii=False),
        "said": run.diagnosis,
        "seed": seed,
        "hash": run.env["data"]["sha256"][:12],
    }
