"""A self-contained HTML page about runs: question, summary, tables, figures, provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from unweave import __version__
from unweave.experiments.failures import unresolved_failures
from unweave.experiments.grouping import Setting, data_labels, group_settings, metric_of, primary_score
from unweave.experiments.run import FinishedRun, find_runs, read_run
from unweave.experiments.study_file import read_note
from unweave.report.figures.overview import draw_overview
from unweave.report.figures.single_run import draw_run
from unweave.report.figures.style import to_data_uri
from unweave.report.summary import PARTLY_RECOVERED, RECOVERED, rank_settings, score_loss, summarize
from unweave.report.tables import chance_levels, runs_table, settings_table
from unweave.utils.errors import InputError, plural
from unweave.utils.storage import write_atomic

WIDE_FIGURE = 6.0  # inches, from which a figure scrolls on a narrow screen instead of becoming unreadable
HASH_LENGTH = 12  # characters of the data's checksum on the page


def write_report(
    runs: Sequence[str | Path], out: str | Path = "report.html", notify: Callable[[str], None] = lambda text: None
) -> Path:
    """Write one HTML page about runs; it opens without a network.

    Args:
        runs: Run folders, or folders that contain runs.
        out: The page to write.
        notify: Receives messages about the progress.

    Returns:
        The path of the page.
    """
    out, places = Path(out), [Path(run) for run in runs]
    if out.is_dir():
        raise InputError(f"{out} is a folder: name the page, e.g. --out {out / 'report.html'}")
    finished = _read_runs(places)
    folders = list(dict.fromkeys([*places, *(run.folder.parent for run in finished)]))  # with notes and failures
    failures = [failure for folder in folders for failure in unresolved_failures(folder)]
    groups: dict[str, list[FinishedRun]] = {}
    for run in finished:
        groups.setdefault(json.dumps(run.recipe["data"], sort_keys=True), []).append(run)
    environment = Environment(loader=PackageLoader("unweave", "report"), autoescape=True, trim_blocks=True)
    titles = data_labels([members[0].recipe["data"] for members in groups.values()])
    sections = [describe_group(title, members, notify) for title, members in zip(titles, groups.values(), strict=True)]
    page = environment.get_template("template.html.jinja").render(
        version=__version__,
        title=_title([section["title"] for section in sections]),
        studies=[describe_study(folder, finished, failures) for folder in folders if read_note(folder)],
        groups=sections,
        failures=failures,
        thresholds=(RECOVERED, PARTLY_RECOVERED),
    )
    write_atomic(out, page)
    return out


def _read_runs(places: Sequence[Path]) -> list[FinishedRun]:
    """Return the finished runs, copies only once; none if all runs of the folders have failed."""
    try:
        return list({run.recipe["key"]: run for run in map(read_run, find_runs(places))}.values())
    except InputError:
        if not any(unresolved_failures(place) for place in places):
            raise
        return []


def _title(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    if not unique:
        return "No finished runs"
    if len(unique) > 2:
        return f"Factors recovered from {len(unique)} datasets"
    return f"Factors recovered from {' and '.join(unique)}"


def describe_study(folder: Path, runs: Sequence[FinishedRun], failures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the question of a study, its metrics and how many of its runs are done."""
    note = read_note(folder)
    done = {run.recipe["key"] for run in runs}
    keys, failed = set(note["keys"]), {failure["key"] for failure in failures}
    others = sum(run.folder.parent == folder and run.recipe["key"] not in keys for run in runs)
    parts = [f"{len(keys & done)} of {plural(len(keys), 'run')} done"]
    if keys & failed - done:
        parts.append(f"{len(keys & failed - done)} failed")
    if keys - done - failed:
        parts.append(f"{len(keys - done - failed)} not run yet")
    if others:
        parts.append(f"{plural(others, 'run')} in the folder that the study file no longer defines")
    question, _, details = note["question"].partition("\n")
    metrics = f"Metrics: {', '.join(note['metrics']) or 'none'}"
    text = {"question": question, "details": details.strip(), "state": ", ".join(parts)}
    return text | {"metrics": metrics, "file": note["file"]}


def describe_group(title: str, runs: list[FinishedRun], notify: Callable[[str], None]) -> dict[str, Any]:
    """Return everything that the page shows about the runs on one dataset."""
    data, columns = runs[0].env["data"], list(dict.fromkeys(c for run in runs for c in run.scores))
    text = ", ".join(factor.name for factor in runs[0].factors if not factor.noise)
    about = f"{plural(data['observations'], 'observation')} of shape {' x '.join(map(str, data['shape']))}"
    criterion = primary_score(columns) or ""
    settings = rank_settings(group_settings(runs), criterion)
    notify(f"{title}: computing chance levels")
    chance = chance_levels(settings[0].runs[0], columns)
    notify(f"{title}: drawing figures")
    return {
        "title": title,
        "about": "; ".join([about, *describe_scale(runs[0]), f"known factors: {text}" if text else "no known factors"]),
        "summary": summarize(runs),
        "columns": columns,
        "explanations": [(c, explain_score(c)) for c in columns],
        "settings": settings_table(settings, columns) if len(settings) < len(runs) else [],
        "chance": [chance.get(c) for c in columns],
        "runs": runs_table(settings, columns),
        "figures": _embed(draw_overview(settings, columns)),
        "sections": [describe_run(*best, columns) for best in best_runs(settings, criterion).values()],
    }


def describe_scale(run: FinishedRun) -> list[str]:
    """Return how the columns of a user's own table were scaled; nothing for other data."""
    words = {"standard": "columns standardized", "robust": "columns scaled robustly"}
    return [words[scale] for scale in [run.recipe["data"].get("scale")] if scale in words]


def best_runs(settings: Sequence[Setting], criterion: str) -> dict[str, tuple[Setting, FinishedRun]]:
    """Return for every method its best run, over all settings."""
    best: dict[str, tuple[Setting, FinishedRun]] = {}
    for setting in settings:
        for run in setting.runs:
            _, leader = best.setdefault(setting.method, (setting, run))
            if score_loss(run, criterion) < score_loss(leader, criterion):
                best[setting.method] = setting, run
    return best


def explain_score(name: str) -> str:
    """Return the first line of a metric's docstring, and its paper."""
    metric = metric_of(name)
    if metric is None:
        return "A metric of your own."
    line, paper = (metric.__doc__ or "").strip().split("\n")[0], metric.facts.paper
    first_author = paper.split(",")[0].split(" ")[0]
    return line if first_author in line else f"{line} [{paper}]"


def describe_run(setting: Setting, run: FinishedRun, columns: Sequence[str]) -> dict[str, Any]:
    """Return scores, diagnosis, figures and provenance of the best run of a method."""
    seed = run.recipe["method"].get("seed")
    scores = ", ".join(f"{c} {run.scores[c]:.3f}" for c in columns if c in run.scores)
    return {
        "label": setting.label,
        "scores": f"Best run of {setting.method}, seed {seed}: {scores}." if scores else "",
        "figures": _embed(draw_run(run)),
        "provenance": json.dumps({"recipe": run.recipe, "environment": run.env}, indent=2, ensure_ascii=False),
        "diagnosis": run.diagnosis,
        "seed": seed,
        "hash": run.env["data"]["sha256"][:HASH_LENGTH],
    }


def _embed(figures: Sequence[tuple[str, Figure]]) -> list[dict[str, Any]]:
    return [
        {"caption": caption, "uri": to_data_uri(figure), "is_wide": figure.get_figwidth() > WIDE_FIGURE}
        for caption, figure in figures
    ]
