"""A self-contained HTML page about runs: question, summary, tables, figures, provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from unweave import __version__
from unweave.experiments.failures import unresolved_failures
from unweave.experiments.grouping import Setting, data_labels, group_settings, metric_of, primary_score
from unweave.experiments.run import FinishedRun, find_runs, read_run
from unweave.experiments.study_file import read_note
from unweave.report.embedded import embed_explorers
from unweave.report.explorer import page as explorer
from unweave.report.explorer.page import content_hash, read_assets, to_json
from unweave.report.plots.overview import Plot, describe_overview, describe_runs
from unweave.report.plots.single_run import describe_figures
from unweave.report.summary import PARTLY_RECOVERED, RECOVERED, rank_settings, score_loss, summarize
from unweave.report.tables import chance_levels, runs_table, settings_table
from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError, plural

STYLE = "report.css"
SCRIPTS = (  # in the order of their dependencies
    "explorer/views/dom.js", "plots/views/scales.js", "plots/views/panel.js", "plots/views/charts.js",
    "plots/views/scatter.js", "plots/views/matrix.js", "plots/views/tables.js", "plots/views/main.js",
)  # fmt: skip
HASH_LENGTH = 12  # characters of the data's checksum on the page


def write_report(
    runs: Sequence[str | Path],
    out: str | Path = "report.html",
    notify: Callable[[str], None] = lambda text: None,
    *,
    explorers: bool = True,
) -> Path:
    """Write one HTML page about runs; it opens without a network.

    Args:
        runs: Run folders, or folders that contain runs.
        out: The page to write.
        notify: Receives messages about the progress.
        explorers: Whether the best run of each method has an explorer in the page, at most 6 MB of them. Runs on data
            of the catalog have one; for your own data, see `explore`.

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
    titles = data_labels([members[0].recipe["data"] for members in groups.values()])
    described = [
        describe_group(title, members, notify, f"g{i}")
        for i, (title, members) in enumerate(zip(titles, groups.values(), strict=True), 1)
    ]
    if explorers:
        sections = [section for group in described for section in group["sections"]]
        embed_explorers(sections, {run.recipe["key"]: run for run in finished}, notify)
    studies = [describe_study(folder, finished, failures) for folder in folders if read_note(folder)]
    write_atomic(out, render_report(described, studies, failures, explorers=explorers))
    return out


def render_report(
    groups: Sequence[dict[str, Any]],
    studies: Sequence[dict[str, Any]],
    failures: Sequence[dict[str, Any]],
    *,
    explorers: bool,
) -> str:
    """Return the HTML of the page; its policy admits only scripts and styles whose hashes it lists."""
    style, script = read_assets(STYLE, SCRIPTS)
    styles, scripts = [style], [script]
    if any(section["explorer"] for group in groups for section in group["sections"]):
        # The frame of an explorer obeys the policy of this page in addition to its own one.
        explorer_style, explorer_script = read_assets(explorer.STYLE, explorer.SCRIPTS)
        styles, scripts = [*styles, explorer_style], [*scripts, explorer_script]
    environment = Environment(loader=PackageLoader("unweave", "report"), autoescape=True, trim_blocks=True)
    environment.filters["to_json"] = lambda value: Markup(to_json(value))
    return environment.get_template("template.html.jinja").render(
        version=__version__,
        title=_title([group["title"] for group in groups]),
        studies=studies,
        groups=groups,
        failures=failures,
        explorers=explorers,
        thresholds=(RECOVERED, PARTLY_RECOVERED),
        style=Markup(style),
        script=Markup(script),
        style_hashes=[content_hash(text) for text in styles],
        script_hashes=[content_hash(text) for text in scripts],
        data=collect_plots(groups),
    )


def collect_plots(groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page draws: the runs of each group, and all plots by the id of their figure."""
    figures = [figure for group in groups for part in (group, *group["sections"]) for figure in part["figures"]]
    plots = {figure["id"]: figure["plot"] for figure in figures if figure["plot"]["kind"] != "images"}
    return {"groups": {group["id"]: group["plotted_runs"] for group in groups}, "plots": plots}


def _read_runs(places: Sequence[Path]) -> list[FinishedRun]:
    """Return the finished runs, copies only once; none if all runs of the folders have failed."""
    try:
        unique: dict[str, FinishedRun] = {}
        for run in map(read_run, find_runs(places)):
            unique.setdefault(run.recipe["key"], run)
        return list(unique.values())
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


def describe_group(
    title: str, runs: list[FinishedRun], notify: Callable[[str], None], name: str = "g1"
) -> dict[str, Any]:
    """Return everything that the page shows about the runs on one dataset; `name` begins the ids of its elements."""
    data, columns = runs[0].env["data"], list(dict.fromkeys(c for run in runs for c in run.scores))
    text = ", ".join(factor.name for factor in runs[0].factors if not factor.noise)
    about = f"{plural(data['observations'], 'observation')} of shape {' x '.join(map(str, data['shape']))}"
    criterion = primary_score(columns) or ""
    settings = rank_settings(group_settings(runs), criterion)
    notify(f"{title}: computing chance levels")
    chance = chance_levels(settings[0].runs[0], columns)
    notify(f"{title}: drawing figures")
    best = best_runs(settings, criterion).values()
    sections = [describe_run(*pair, columns, f"{name}-best-{i}") for i, pair in enumerate(best, 1)]
    places = {section["key"]: section["id"] for section in sections}
    return {
        "id": name,
        "title": title,
        "about": "; ".join([about, *describe_scale(runs[0]), f"known factors: {text}" if text else "no known factors"]),
        "summary": summarize(runs),
        "columns": columns,
        "explanations": [(c, explain_score(c)) for c in columns],
        "settings": settings_table(settings, columns) if len(settings) < len(runs) else [],
        "chance": [chance.get(c) for c in columns],
        "runs": runs_table(settings, columns),
        "plotted_runs": [run | {"section": places.get(run["key"])} for run in describe_runs(settings)],
        "figures": name_figures(describe_overview(settings, columns), name),
        "sections": sections,
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


def describe_run(setting: Setting, run: FinishedRun, columns: Sequence[str], name: str = "g1-best-1") -> dict[str, Any]:
    """Return scores, diagnosis, figures and provenance of the best run of a method."""
    seed = run.recipe["method"].get("seed")
    scores = ", ".join(f"{c} {run.scores[c]:.3f}" for c in columns if c in run.scores)
    return {
        "id": name,
        "key": run.recipe["key"],
        "label": setting.label,
        "explorer": None,  # see `embed_explorers`
        "folder": str(run.folder),
        "scores": f"Best run of {setting.method}, seed {seed}: {scores}." if scores else "",
        "figures": name_figures(describe_figures(run), name),
        "provenance": json.dumps({"recipe": run.recipe, "environment": run.env}, indent=2, ensure_ascii=False),
        "diagnosis": run.diagnosis,
        "seed": seed,
        "hash": run.env["data"]["sha256"][:HASH_LENGTH],
    }


def name_figures(plots: Sequence[Plot], name: str) -> list[dict[str, Any]]:
    """Return plots with captions and the ids of their figures."""
    return [{"id": f"{name}-plot-{i}", "caption": plot["caption"], "plot": plot} for i, plot in enumerate(plots, 1)]
