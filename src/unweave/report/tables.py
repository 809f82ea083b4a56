"""Tables of a report: settings, runs, chance levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unweave import catalog
from unweave.experiments.evaluation import MetricInputs
from unweave.experiments.grouping import Setting, are_counts, best_value, needs_labels
from unweave.experiments.run import FinishedRun
from unweave.metrics.contract import column_name
from unweave.metrics.uncertainty import chance_level, plus_minus
from unweave.utils.errors import shorten_number


def settings_table(settings: Sequence[Setting], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per setting: means and intervals over its runs, and whether a mean is the best."""
    means = {c: [float(np.mean(s.scores(c))) for s in settings if s.scores(c)] for c in columns}
    best = {c: best_value(c, values) for c, values in means.items()}
    rows = []
    for setting in settings:
        cells = []
        for c in columns:
            values = setting.scores(c)
            cells.append((plus_minus(values) if values else None, bool(values) and float(np.mean(values)) == best[c]))
        rows.append({"label": setting.label, "count": len(setting.runs), "cells": cells})
    return rows


def runs_table(settings: Sequence[Setting], columns: Sequence[str]) -> dict[str, Any]:
    """Return one row per run, for a table that sorts and filters."""
    names = list(dict.fromkeys(name for setting in settings for name in setting.values))
    best = {c: best_value(c, [value for setting in settings for value in setting.scores(c)]) for c in columns}
    rows = []
    for setting in settings:
        parameters = [shorten_number(setting.values.get(name)) for name in names]
        for run in setting.runs:
            head = [setting.method, *parameters, run.recipe["method"].get("seed")]
            cells = [(run.scores.get(c), c in run.scores and run.scores[c] == best[c]) for c in columns]
            rows.append({"head": head, "cells": cells, "seconds": run.env["seconds"], "key": run.recipe["key"]})
    return {"names": ["method", *names, "seed"], "rows": rows}


def chance_levels(run: FinishedRun, columns: Sequence[str]) -> dict[str, float]:
    """Return what the codes of a run score when they are shuffled against the factors; not for slow metrics."""
    inputs = MetricInputs(None, torch.tensor(run.truth), run.factors)
    levels: dict[str, float] = {}
    for name in dict.fromkeys(c.rpartition(".")[0] if "." in c else c for c in columns if needs_labels(c)):
        metric = catalog.find_metrics([name])[name]
        variant = name.partition("[")[2].rstrip("]")
        if inputs.has(metric) and variant not in metric.facts.slow:
            scores = chance_level(metric, inputs.argument_for(metric), run.codes)
            levels |= {column_name(name, part): value for part, value in scores.items() if not are_counts([value])}
    return levels
