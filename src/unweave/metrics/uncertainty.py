"""Uncertainty of scores: chance levels, bootstrap intervals, and means with confidence intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit
from torch import Tensor

from unweave.metrics.contract import Metric, as_matrix, as_numbers, column_name
from unweave.utils.errors import InputError


def score_table(
    name: str, metric: Metric, truth: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return the parts of a score by name: value, best, and on request the chance level and a bootstrap interval."""
    score = metric(truth, codes)
    values, counts = (
        as_numbers(score),
        [part for part in as_numbers(score) if isinstance(getattr(score, part, None), int)],
    )
    has_chance = chance and metric.facts.truth != "decoder"  # a decoder has no rows to shuffle the codes against
    base = chance_level(metric, truth, codes, seed=seed) if has_chance else dict.fromkeys(values, np.nan)
    bounds = interval(metric, truth, codes, repeats=bootstrap, seed=seed) if bootstrap else {}
    rows: dict[str, dict[str, float]] = {}
    for part, value in values.items():
        row = {"value": value, "best": np.nan if part in counts else metric.facts.best}
        row |= {"chance": base[part]} if chance else {}
        row |= dict(zip(("low", "high"), bounds[part], strict=True)) if bootstrap else {}
        rows[column_name(name, part)] = row
    return rows


def chance_level(metric: Metric, truth: Any, codes: Any, *, repeats: int = 3, seed: int = 0) -> dict[str, float]:
    """Return the score of the same codes, shuffled against the truth: the mean over `repeats` shuffles."""
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    rounds = [as_numbers(metric(truth, z[rng.permutation(len(z))])) for _ in range(repeats)]
    return {name: float(np.mean([r[name] for r in rounds])) for name in rounds[0]}


def interval(
    metric: Metric, truth: Any, codes: Any, *, repeats: int = 20, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Return a bootstrap interval: quantiles of the score over random halves of the rows, centered at its value.

    Halves are drawn without replacement: copies of a row would be in training and test at once, and be each other's
    nearest neighbors. The variance over halves of a sample estimates that of the whole sample over samples.
    """
    if repeats < 2:
        raise InputError(f"bootstrap={repeats}: an interval needs at least two resamples, better twenty")
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    value = as_numbers(metric(truth, codes))
    picks = [rng.permutation(len(z))[: len(z) // 2] for _ in range(repeats)]
    rounds = [as_numbers(metric(rows_of(truth, rows), z[rows])) for rows in picks]
    tail, bounds = (1 - level) / 2, {}
    for name in value:
        values = np.array([r[name] for r in rounds])
        low, high = np.quantile(values - values.mean(), [tail, 1 - tail]) + value[name]
        bounds[name] = float(low), float(high)
    return bounds


def rows_of(truth: Any, rows: np.ndarray) -> Any:
    """Return some rows of the first argument of a metric: an array, a tensor, prepared factors, a method or None."""
    if truth is None or hasattr(truth, "inverse_transform"):  # a method has no rows
        return truth
    if hasattr(truth, "take_rows"):
        return truth.take_rows(rows)
    return (truth.numpy(force=True) if isinstance(truth, Tensor) else np.asarray(truth))[rows]


def plus_minus(values: Any) -> str:
    """Return the mean of repeated runs and half of its 95 % interval by Student's t; a single run has no interval.

    >>> plus_minus([0.8, 0.9, 1.0])
    '0.900 +- 0.248'
    """
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return f"{mean:.3f}"
    half = stdtrit(n - 1, 0.975) * float(np.std(values, ddof=1)) / n**0.5
    return f"{mean:.3f} +- {half:.3f}"
