"""Scores of trained methods on held-out observations."""

from __future__ import annotations

DEFAULT_METRICS = ("mcc", "local-isometry")
EVALUATION_SIZE = 10_000  # observations to score on, where the data are a generator or a large grid
EVALUATION_SEED = 1_000_003  # a stream of its own: no one scores on the draws that were learned from
