"""The FactorVAE score: which code stays still while a factor is held fixed?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.data.core import FactorData
from unweave.metrics.contract import metric
from unweave.metrics.factors import ENOUGH, PreparedFactors, alive, prepare_factors
from unweave.metrics.fixed_factor import shared
from unweave.utils.errors import InputError


class FactorVAEScore(NamedTuple):
    """The accuracy, and how many codes took part."""

    accuracy: float
    active: int


@metric(paper="Kim and Mnih (2018), Sec. 4")
def factor_vae_score(
    factors: Any, codes: Any, *, votes: int = 1_000, batch: int = 64, prune: float = 0.05, seed: int = 0
) -> FactorVAEScore:
    """Accuracy of telling which factor was held fixed from the code that varied least, relative to its variance.

    From a table, by grouping: a vote takes up to `batch` rows that share a value of a factor. From `FactorData` in
    place of the factors and a fitted method in place of the codes, as in the paper: a vote draws `batch` observations
    with the factor held fixed. Half of the votes train the majority rule, the other half test it. Codes whose standard
    deviation is below `prune` times the largest take no part, since collapsed ones would win votes by their rounding
    errors: 0.05 is the threshold of the reference study, whose codes have a deviation of about one at most. 0 leaves
    out dead ones only, as the reference library does.
    """
    if votes < 2:
        raise InputError(f"votes={votes}: half of them train and half test, so at least two")
    if isinstance(factors, FactorData):
        drawn = shared(factors, codes, votes=votes, sets=1, size=batch, prune=prune, seed=seed)
        variances, factor = drawn.codes[:, 0].var(1), drawn.factor  # (votes, d), (votes,)
    else:
        c, z = prepare_factors(factors, codes)
        living = alive(z) & (z.std(0) >= prune * z.std(0).max(initial=0))
        z = z[:, living] / z[:, living].std(0)
        factor, drawn_rows = c.once(_drawn, votes, batch, seed)
        variances = np.array([z[rows].var(0) for rows in drawn_rows])
    active = variances.shape[1]
    return FactorVAEScore(_majority(variances.argmin(1), factor), active) if active else FactorVAEScore(0.0, 0)


def _majority(still: np.ndarray, factor: np.ndarray) -> float:
    """How often a code's most frequent factor is right: learned from the first half, tested on the second."""
    half = len(still) // 2
    table = np.zeros((still.max() + 1, factor.max() + 1))
    np.add.at(table, (still[:half], factor[:half]), 1)
    rule = table.argmax(1)  # the factor that a code stands for
    return float(np.mean(rule[still[half:]] == factor[half:]))


def large_groups(groups: list[np.ndarray], expected: int) -> list[np.ndarray]:
    """The groups of rows of equal factor that are large enough to have a variance worth the name."""
    large = [rows for rows in groups if len(rows) >= min(expected, ENOUGH)]
    if not large:
        raise InputError("no value of a factor has eight rows or more: give more samples")
    return large


def _drawn(c: PreparedFactors, votes: int, batch: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """For every vote a factor and up to `batch` rows that share a value of it: the same for all codes."""
    rng = np.random.default_rng(seed)
    groups = [large_groups(rows, batch) for rows in c.groups]
    factor = rng.integers(c.count, size=votes)
    picks = [groups[j][rng.integers(len(groups[j]))] for j in factor]
    return factor, [rng.choice(rows, min(batch, len(rows)), replace=False) for rows in picks]
