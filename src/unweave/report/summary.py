"""The summary of a report: which method is best, and what its score means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.experiments.grouping import Setting, group_settings, metric_of, needs_labels, primary_score
from unweave.experiments.run import FinishedRun
from unweave.metrics.uncertainty import plus_minus

RECOVERED, PARTLY_RECOVERED = 0.95, 0.8  # MCC from which factors count as recovered, and as partly recovered
MAX_OTHERS = 5  # settings that are listed behind the best one


def summarize(runs: Sequence[FinishedRun]) -> str:
    """Return what the best method recovers and its score, then the scores of the other methods."""
    criterion = primary_score(list(dict.fromkeys(c for run in runs for c in run.scores)))
    if criterion is None:
        return "No metrics were computed."
    best, *others = [s for s in rank_settings(group_settings(runs), criterion) if s.scores(criterion)]
    by_method: dict[str, Setting] = {}  # the best setting of every other method
    for setting in others:
        by_method.setdefault(setting.method, setting)
    by_method.pop(best.method, None)
    listed = (list(by_method.values()) or others)[:MAX_OTHERS]  # of a single method, its other settings
    text = "; ".join(f"{s.label} {_format_mean(s.scores(criterion))}" for s in listed)
    return describe_best(best, criterion) + (f". Others: {text}." if text else ".")


def describe_best(setting: Setting, criterion: str) -> str:
    """Return what the best setting achieves, without a final period."""
    value, mean = float(np.mean(setting.scores(criterion))), _format_mean(setting.scores(criterion))
    factors = [factor for factor in setting.runs[0].factors if not factor.noise]
    if criterion == "mcc":
        verb = "recovers" if value >= RECOVERED else "partly recovers"
        verb = verb if value >= PARTLY_RECOVERED else "does not recover"
        names = [factor.name for factor in factors if factor.kind != "nominal"]
        return f"{setting.label} {verb} the factors {' and '.join(names)} (MCC {mean}; 1 is perfect)"
    perfect = f"{mean}; {_perfect_value(criterion)} is perfect"
    if needs_labels(criterion):
        return f"{setting.label} has the best {criterion} ({perfect})"
    names = [factor.name for factor in factors]
    reason = f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no order to correlate with"
    reason = reason if names else "The data have no known factors"
    if criterion == "local-isometry":
        return f"{reason}. {setting.label} preserves distances between neighbors best (local isometry {perfect})"
    return f"{reason}. {setting.label} has the best {criterion} ({perfect})"


def rank_settings(settings: list[Setting], criterion: str) -> list[Setting]:
    """Return settings by their mean score, best first, each with its best run first."""
    ordered = [s._replace(runs=sorted(s.runs, key=lambda run: score_loss(run, criterion))) for s in settings]
    return sorted(ordered, key=lambda s: float(np.mean([score_loss(run, criterion) for run in s.runs])))


def score_loss(run: FinishedRun, criterion: str) -> float:
    """Return how far a run is from the best possible score; infinite without the score."""
    metric = metric_of(criterion)
    if criterion not in run.scores:
        return float("inf")
    return abs(run.scores[criterion] - metric.facts.best) if metric else -run.scores[criterion]


def _format_mean(values: Sequence[float]) -> str:
    return plus_minus(values) + (f" over {len(values)} runs" if len(values) > 1 else "")


def _perfect_value(name: str) -> str:
    metric = metric_of(name)
    return f"{metric.facts.best:g}" if metric else "more"
