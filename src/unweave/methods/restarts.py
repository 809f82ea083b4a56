"""Restarts: train methods from several seeds and keep the best of each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from unweave.training.loop import Failure
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.methods.neural import Neural

N = TypeVar("N", bound="Neural")


def train_restarts(
    pack: Sequence[N], train_lanes: Callable[[Sequence[N]], list[Failure | None]]
) -> list[Failure | None]:
    """Train all restarts of all methods together; return for each method None, or how all of its restarts failed."""
    restarts = [make_restarts(method) for method in pack]
    failures = iter(train_lanes([start for starts in restarts for start in starts]))
    return [
        keep_best_restart(method, starts, [next(failures) for _ in starts])
        for method, starts in zip(pack, restarts, strict=True)
    ]


def make_restarts(method: N) -> list[N]:
    """Return copies of the method with different seeds, the first of which is its own."""
    if method.restarts < 1:
        raise InputError(f"restarts={method.restarts}: expected at least 1")
    further_seeds = np.random.SeedSequence(method.seed).generate_state(method.restarts - 1).tolist()
    starts = [copy.copy(method) for _ in range(method.restarts)]
    for start, seed in zip(starts, [method.seed, *further_seeds], strict=True):
        start.seed = seed
    return starts


def keep_best_restart(method: N, starts: Sequence[N], failures: Sequence[Failure | None]) -> Failure | None:
    """Give the method what its best restart has learned; return a failure only if all of them failed."""
    fitted = [start for start, failure in zip(starts, failures, strict=True) if failure is None]
    best = max(fitted, key=lambda start: start.restart_score(), default=starts[0])
    scores = [start.restart_score() if start in fitted else None for start in starts]
    method.reset()
    method.__dict__.update({k: v for k, v in vars(best).items() if k.endswith("_")})
    method.restarts_ = [{"seed": start.seed, "merit": s} for start, s in zip(starts, scores, strict=True)]
    method.diagnosis_ = [*getattr(best, "diagnosis_", []), _describe_scores(scores)]
    return None if fitted else failures[0]


def _describe_scores(scores: Sequence[float | None]) -> str:
    ranked = sorted((score for score in scores if score is not None), reverse=True)
    if not ranked:
        return f"None of {len(scores)} starts has a finite loss."
    others = f", the others {ranked[1]:.4g} to {ranked[-1]:.4g}" if len(ranked) > 1 else ""
    return f"The best of {len(scores)} starts was selected: its score is {ranked[0]:.4g}{others}."
