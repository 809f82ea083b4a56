"""FactorVAE score: which code varies least while a factor is constant?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.data.core import FactorData
from unweave.metrics.contract import metric
from unweave.metrics.factors import MIN_GROUP_SIZE, PreparedFactors, active_codes, prepare_factors
from unweave.metrics.fixed_factor import encode_sets
from unweave.utils.errors import InputError


class FactorVAEScore(NamedTuple):
    """The score and the number of codes that it used."""

    accuracy: float
    """From 0 to 1; 1 is best, one over the number of factors is chance."""
    active: int
    """Codes that were not pruned."""


@metric(paper="Kim and Mnih (2018), Sec. 4")
def factor_vae_score(
    factors: Any, codes: Any, *, votes: int = 1_000, batch: int = 64, prune: float = 0.05, seed: int = 0
) -> FactorVAEScore:
    """Accuracy of predicting the constant factor from the code of least variance (Kim and Mnih, 2018, Sec. 4).

    A vote takes observations that share the value of a factor, and the code whose variance among them is the smallest
    share of its variance over all data. A majority rule from codes to factors is trained on half of the votes and
    tested on the other half.

    Args:
        factors: True factors, (n, k), or the result of `prepared`: a vote takes rows of one value. Or `FactorData`: a
            vote draws new observations, as in the paper.
        codes: Codes, (n, d); with `FactorData`, a fitted method.
        votes: Number of votes.
        batch: Observations per vote; fewer if a value has fewer rows.
        prune: Codes whose deviation is below this share of the largest are ignored, since collapsed codes would win
            votes by rounding errors. 0.05 is the threshold of the reference study; the reference library has 0.
        seed: Seed of the votes.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(200, 2))
        >>> factor_vae_score(factors, factors, votes=50)
        FactorVAEScore(accuracy=1.0, active=2)
    """
    if votes < 2:
        raise InputError(f"votes={votes}: half of them train and half test, so at least two")
    if isinstance(factors, FactorData):
        drawn = encode_sets(factors, codes, votes=votes, sets=1, size=batch, prune=prune, seed=seed)
        variances, factor = drawn.codes[:, 0].var(1), drawn.factor  # (votes, d), (votes,)
    else:
        c, z = prepare_factors(factors, codes)
        z = scale_codes(z, prune)
        factor, rows_per_vote = c.once(draw_votes, votes, batch, seed)
        variances = np.array([z[rows].var(0) for rows in rows_per_vote])
    active = variances.shape[1]
    if not active:
        return FactorVAEScore(0.0, 0)
    return FactorVAEScore(float(majority_accuracy(variances.argmin(1)[:, None], factor)[0]), active)


def scale_codes(z: np.ndarray, prune: float) -> np.ndarray:
    """Return the codes that are not pruned, with deviations of 1, (n, d) -> (n, active)."""
    active_mask = active_codes(z) & (z.std(0) >= prune * z.std(0).max(initial=0))
    return np.asarray(z[:, active_mask] / z[:, active_mask].std(0))


def majority_accuracy(code: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the accuracy of each code's most frequent factor: trained on the first half, tested on the second.

    Args:
        code: The code of each vote, for any number of runs, (votes, runs).
        factor: The factor of each vote, (votes,).

    Returns:
        One accuracy for each run, (runs,).
    """
    half, runs = len(code) // 2, np.arange(code.shape[1])
    table = np.zeros((len(runs), code.max() + 1, factor.max() + 1))
    np.add.at(table, (runs, code[:half], factor[:half, None]), 1)
    factor_of_code = table.argmax(2)  # (runs, codes)
    return np.asarray(np.mean(factor_of_code[runs, code[half:]] == factor[half:, None], 0))


def select_large_groups(groups: list[np.ndarray], size: int) -> list[np.ndarray]:
    """Return the groups with enough rows for an estimate of the variance."""
    large = [rows for rows in groups if len(rows) >= min(size, MIN_GROUP_SIZE)]
    if not large:
        raise InputError("no value of a factor has eight rows or more: give more samples")
    return large


def draw_votes(c: PreparedFactors, votes: int, batch: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw a factor for every vote and up to `batch` rows that share a value of it."""
    rng = np.random.default_rng(seed)
    groups = [select_large_groups(rows, batch) for rows in c.groups]
    factor = rng.integers(c.count, size=votes)
    picks = [groups[j][rng.integers(len(groups[j]))] for j in factor]
    return factor, [rng.choice(rows, min(batch, len(rows)), replace=False) for rows in picks]
