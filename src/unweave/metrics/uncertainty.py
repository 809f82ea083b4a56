"""Uncertainty of scores: chance levels, bootstrap intervals, and means with confidence intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit
from torch import Tensor

from unweave.metrics.contract import Metric, as_matrix, as_numbers, column_name
from unweave.utils.errors import InputError


def score_table(
    name: str, scorer: Metric, truth: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0
) -> dict[str, dict[str, float]]:
    """A score's parts by name: value, best, and on request the chance level and a bootstrap interval."""
    found = scorer(truth, codes)
    values, counts = (
        as_numbers(found),
        [part for part in as_numbers(found) if isinstance(getattr(found, part, None), int)],
    )
    guessing = chance and scorer.facts.truth != "decoder"  # there, codes have no truth to be shuffled against
    base = chance_level(scorer, truth, codes, seed=seed) if guessing else dict.fromkeys(values, np.nan)
    bounds = interval(scorer, truth, codes, repeats=bootstrap, seed=seed) if bootstrap else {}
    rows: dict[str, dict[str, float]] = {}
    for part, value in values.items():
        row = {"value": value, "best": np.nan if part in counts else scorer.facts.best}
        row |= {"chance": base[part]} if chance else {}
        row |= dict(zip(("low", "high"), bounds[part], strict=True)) if bootstrap else {}
        rows[column_name(name, part)] = row
    return rows


def chance_level(scorer: Metric, truth: Any, codes: Any, *, repeats: int = 3, seed: int = 0) -> dict[str, float]:
    """What the same codes score when they are shuffled against the truth: the mean over some shuffles."""
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    rounds = [as_numbers(scorer(truth, z[rng.permutation(len(z))])) for _ in range(repeats)]
    return {name: float(np.mean([r[name] for r in rounds])) for name in rounds[0]}


def interval(
    scorer: Metric, truth: Any, codes: Any, *, repeats: int = 20, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """A bootstrap interval: how the score varies over random halves of the rows, put around its value.

    Halves are drawn without replacement, because copies of a row would stand in training and test at once and be each
    other's nearest neighbors. The variance over halves of a sample is that of the whole sample over samples.
    """
    if repeats < 2:
        raise InputError(f"bootstrap={repeats}: an interval needs at least two resamples, better twenty")
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    value = as_numbers(scorer(truth, codes))
    picks = [rng.permutation(len(z))[: len(z) // 2] for _ in range(repeats)]
    rounds = [as_numbers(scorer(rows_of(truth, rows), z[rows])) for rows in picks]
    tail, bounds = (1 - level) / 2, {}
    for name in value:
        found = np.array([r[name] for r in rounds])
        low, high = np.quantile(found - found.mean(), [tail, 1 - tail]) + value[name]
        bounds[name] = float(low), float(high)
    return bounds


def rows_of(truth: Any, rows: np.ndarray) -> Any:
    """Some rows of whatever a metric is told: an array, a tensor, prepared factors, nothing."""
    if truth is None or hasattr(truth, "inverse_transform"):  # a method is the same whatever rows it is shown
        return truth
    if hasattr(truth, "take_rows"):
        return truth.take_rows(rows)
    return (truth.numpy(force=True) if isinstance(truth, Tensor) else np.asarray(truth))[rows]


def plus_minus(values: Any) -> str:
    """The mean of repeated runs and half of its 95 % interval, by Student's distribution; one run alone has none."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return f"{mean:.3f}"
    half = stdtrit(n - 1, 0.975) * float(np.std(values, ddof=1)) / n**0.5
    return f"{mean:.3f} +- {half:.3f}"
