"""Runs that differ in nothing but their seed are one setting: its name, its mean, its interval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from unweave import catalog
from unweave.experiments.run import FinishedRun
from unweave.metrics.contract import Metric
from unweave.utils.errors import kebab

OWN = ("name", "source", "seed")  # what does not make another setting


class Setting(NamedTuple):
    """A method with its parameters, and its runs, one for each seed."""

    method: str
    values: dict[str, Any]  # the parameters in which settings of this method differ
    runs: list[FinishedRun]

    @property
    def label(self) -> str:
        """The method, and what tells the setting from others."""
        told = ", ".join(f"{k}={shorten_number(v)}" for k, v in self.values.items())
        return f"{self.method} ({told})" if told else self.method

    def scores(self, column: str) -> list[float]:
        """A score of every run that has it."""
        return [run.scores[column] for run in self.runs if column in run.scores]


def shorten_number(value: Any) -> Any:
    """4 for 4.0, which is how people write it."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else value


def group_settings(runs: Sequence[FinishedRun]) -> list[Setting]:
    """The settings among runs, in the order in which they come."""
    groups: dict[str, list[FinishedRun]] = {}
    for run in runs:
        told = {k: v for k, v in run.recipe["method"].items() if k != "seed"}
        groups.setdefault(json.dumps(told, sort_keys=True), []).append(run)
    every = [members[0].recipe["method"] for members in groups.values()]
    apart = {name: differing([m for m in every if m["name"] == name]) for name in {m["name"] for m in every}}
    found = []
    for members in groups.values():
        mine = members[0].recipe["method"]
        found.append(Setting(mine["name"], {k: mine.get(k) for k in apart[mine["name"]]}, members))
    return found


def differing(recipes: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters that are not the same in all of them."""
    names = dict.fromkeys(k for recipe in recipes for k in recipe if k not in OWN)
    return [k for k in names if len({json.dumps(recipe.get(k)) for recipe in recipes}) > 1]


def metric_of(column: str) -> Metric | None:
    """The metric that a column of scores comes from; None where the catalog does not know it."""
    return catalog.metrics().get(kebab(column.partition(".")[0].partition("[")[0]))


def needs_labels(column: str) -> bool:
    """Whether a score compares codes with known factors."""
    found = metric_of(column)
    return found is not None and found.facts.truth == "factors"


def best_value(column: str, values: Sequence[float]) -> float | None:
    """The value closest to the best there is; None of a metric that the catalog does not know, and of counts."""
    found = metric_of(column)
    if found is None or not values or are_counts(values):
        return None
    return min(values, key=lambda v: abs(v - found.facts.best))


def are_counts(values: Sequence[float]) -> bool:
    """Whether these are counts, codes in use say, of which neither many nor few are good."""
    return max(values) > 1 and all(float(v).is_integer() for v in values)


def primary_score(columns: Sequence[str]) -> str | None:
    """The score that a reader looks at first: MCC, else the first that needed labels, else the first."""
    known = [c for c in columns if needs_labels(c)]
    return "mcc" if "mcc" in columns else next(iter([*known, *columns]), None)
