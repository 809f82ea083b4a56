"""Settings: groups of runs that differ only in their seed, and the scores that reports compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from unweave import catalog
from unweave.experiments.run import FinishedRun
from unweave.metrics.contract import Metric
from unweave.utils.errors import join_settings, kebab

IGNORED_KEYS = ("name", "source", "seed")
CHECKSUMS, CHECKSUM_LENGTH = ("source", "sha256"), 8  # of users' files, and shown characters where runs differ in them


class Setting(NamedTuple):
    """A method with its parameters, and its runs, one per seed."""

    method: str
    values: dict[str, Any]  # the parameters in which settings of this method differ
    runs: list[FinishedRun]

    @property
    def label(self) -> str:
        """The method with the parameters that distinguish this setting, e.g. "beta-vae (beta=4)"."""
        return _label(self.method, self.values)

    def scores(self, column: str) -> list[float]:
        """Return a score of every run that has it."""
        return [run.scores[column] for run in self.runs if column in run.scores]


def run_labels(recipes: Sequence[dict[str, Any]]) -> list[str]:
    """Return a name for each run: its method, and the data, settings and seed in which these runs differ.

    Example:
        >>> def recipe(**method):
        ...     return {"data": {"name": "dsprites"}, "method": {"name": "beta-vae", "steps": 100} | method}
        >>> run_labels([recipe(beta=4.0, seed=0), recipe(beta=4.0, seed=1), recipe(beta=16.0, seed=0)])
        ['beta-vae (beta=4, seed=0)', 'beta-vae (beta=4, seed=1)', 'beta-vae (beta=16, seed=0)']
    """
    datasets = {recipe["data"]["name"] for recipe in recipes}
    data_values, method_values = (_differences([r[part] for r in recipes]) for part in ("data", "method"))
    labels = []
    for recipe, data, method in zip(recipes, data_values, method_values, strict=True):
        values = method | {f"data.{k}": v for k, v in data.items()}
        values |= {"seed": values.pop("seed")} if "seed" in values else {}  # last
        place = f" on {recipe['data']['name']}" if len(datasets) > 1 else ""
        labels.append(_label(f"{recipe['method']['name']}{place}", values))
    return labels


def data_labels(recipes: Sequence[dict[str, Any]]) -> list[str]:
    """Return a name for each dataset: its title, with the settings in which datasets of this title differ."""
    return [_label(r["name"], values) for r, values in zip(recipes, _differences(recipes), strict=True)]


def _label(name: str, values: dict[str, Any]) -> str:
    return f"{name} ({join_settings(values)})" if values else name


def _differences(recipes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each recipe the parameters in which recipes of its name differ; checksums are shortened."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for recipe in recipes:
        by_name.setdefault(recipe["name"], []).append(recipe)
    varied = {name: varied_parameters(members, ignored=("name",)) for name, members in by_name.items()}
    return [
        {k: r.get(k) if k not in CHECKSUMS else str(r.get(k))[:CHECKSUM_LENGTH] for k in varied[r["name"]]}
        for r in recipes
    ]


def group_settings(runs: Sequence[FinishedRun]) -> list[Setting]:
    """Group runs by everything but the seed, in the order of their first runs."""
    groups: dict[str, list[FinishedRun]] = {}
    for run in runs:
        parameters = {k: v for k, v in run.recipe["method"].items() if k != "seed"}
        groups.setdefault(json.dumps(parameters, sort_keys=True), []).append(run)
    recipes = [members[0].recipe["method"] for members in groups.values()]
    settings = []
    for recipe, members in zip(recipes, groups.values(), strict=True):
        varied = varied_parameters([other for other in recipes if other["name"] == recipe["name"]])
        settings.append(Setting(recipe["name"], {k: recipe.get(k) for k in varied}, members))
    return settings


def varied_parameters(recipes: Sequence[dict[str, Any]], ignored: Sequence[str] = IGNORED_KEYS) -> list[str]:
    """Return the parameters that are not the same in all recipes."""
    names = dict.fromkeys(k for recipe in recipes for k in recipe if k not in ignored)
    return [k for k in names if len({json.dumps(recipe.get(k)) for recipe in recipes}) > 1]


def metric_of(column: str) -> Metric | None:
    """Return the metric of a column of scores; None if it is not in the catalog."""
    return catalog.metrics().get(kebab(column.partition(".")[0].partition("[")[0]))


def needs_labels(column: str) -> bool:
    """Return whether a score compares codes with true factors."""
    metric = metric_of(column)
    return metric is not None and metric.facts.truth == "factors"


def best_value(column: str, values: Sequence[float]) -> float | None:
    """Return the value closest to the best possible score; None for counts and for metrics not in the catalog."""
    metric = metric_of(column)
    if metric is None or not values or are_counts(values):
        return None
    return min(values, key=lambda v: abs(v - metric.facts.best))


def are_counts(values: Sequence[float]) -> bool:
    """Return whether the values are counts, e.g. of active codes, which have no best value."""
    return max(values) > 1 and all(float(v).is_integer() for v in values)


def primary_score(columns: Sequence[str]) -> str | None:
    """Return the column that ranks settings: MCC, else the first that needs labels, else the first."""
    labeled = [c for c in columns if needs_labels(c)]
    return "mcc" if "mcc" in columns else next(iter([*labeled, *columns]), None)
