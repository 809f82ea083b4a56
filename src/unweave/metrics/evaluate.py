"""What each metric is told of a run's observations, and the scores that come of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import Factor, Sample
from unweave.methods.base import Method
from unweave.metrics.contract import Metric, as_numbers, column_name
from unweave.metrics.score_tables import prepared


def score(
    draw: Sample, codes: np.ndarray, factors: Sequence[Factor], scorers: dict[str, Metric], method: Method | None = None
) -> dict[str, float | None]:
    """Every metric, None where the data do not allow it; one that returns several numbers gives several columns."""
    scores: dict[str, float | None] = {}
    truth = MetricInputs(draw.x, draw.c, factors, method)
    for name, scorer in scorers.items():
        if not truth.has(scorer):
            scores[name] = None  # no labels, or none of the kind that the metric is made for
            continue
        try:
            value = scorer(truth.of(scorer), codes)
        except ValueError as error:
            # A score that cannot be had must not cost the model that was learned.
            warnings.warn(f"{name} was not computed: {error}", stacklevel=2)
            scores[name] = None
            continue
        scores |= flatten(name, value)
    return scores


class MetricInputs:
    """What each metric is to be told of the observations; the factors are prepared once for all that share them."""

    def __init__(self, x: Any, c: Tensor, factors: Sequence[Factor], method: Method | None = None) -> None:
        self.x, self.c, self.factors, self.method = x, c, factors, method
        self._prepared: dict[tuple[int, ...], Any] = {}

    def has(self, scorer: Metric) -> bool:
        """Whether the data have what the metric asks for."""
        have = {"inputs": self.x is not None, "nothing": True, "factors": bool(self._columns(scorer))}
        have["decoder"] = self.method is not None and self.method.has_decoder()
        return have.get(scorer.facts.truth, False)

    def of(self, scorer: Metric) -> Any:
        """Observations, method, nothing, or the factors of the kinds that it is made for, as what they stand for."""
        if scorer.facts.truth != "factors":
            return {"inputs": self.x, "decoder": self.method}.get(scorer.facts.truth)
        columns = self._columns(scorer)
        if columns not in self._prepared:
            values = [self.factors[j].measured(self.c[:, j]) for j in columns]
            self._prepared[columns] = prepared(
                torch.stack(values, 1), [True if self.factors[j].size else None for j in columns]
            )
        return self._prepared[columns]

    def _columns(self, scorer: Metric) -> tuple[int, ...]:
        return tuple(j for j, f in enumerate(self.factors) if f.kind in scorer.facts.kinds and not f.noise)


def flatten(name: str, value: Any) -> dict[str, float | None]:
    """One number, or the fields of a named tuple: 'dci' -> 'dci.disentanglement', ...; JSON has no NaN."""
    return {column_name(name, part): v if np.isfinite(v) else None for part, v in as_numbers(value).items()}
