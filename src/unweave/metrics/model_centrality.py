"""Model centrality: do the codes of several runs predict each other?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from unweave.metrics.contract import metric
from unweave.metrics.factor_vae_score import draw_votes, majority_accuracy, scale_codes
from unweave.metrics.factors import PreparedFactors, active_codes
from unweave.metrics.udr import validate_runs

MAX_VOTES, MIN_VOTES = 1_000, 100  # of a pair of runs
VOTES_PER_RUN = 30_000  # with all others
BATCH, PRUNE = 64, 0.05  # of the FactorVAE score


@metric(paper="Lin, Thekumparampil, Fanti and Oh (2020), Sec. 4", truth="runs")
def model_centrality(codes: Sequence[Any], *, votes: int | Literal["auto"] = "auto", seed: int = 0) -> np.ndarray:
    """FactorVAE score of each run with the codes of every other run as factors (Lin et al., 2020, Sec. 4).

    It is averaged over the other runs and over both directions. The paper draws images from the run that provides the
    factors. Here its codes of the observations are cut into bins of equal count, so that no generator is needed.

    Args:
        codes: One array (n, d) per run, of the same observations in the same order.
        votes: Votes of the FactorVAE score of a pair of runs, whose mean over the pairs is returned. "auto": 1,000 for
            up to 30 runs, fewer for more of them, and at least 100.
        seed: Seed of the votes.

    Returns:
        One number from 0 to 1 per run, (runs,); 1 is best.

    Example:
        >>> import numpy as np
        >>> codes = np.random.default_rng(0).normal(size=(200, 2))
        >>> model_centrality([codes, codes[:, ::-1]], votes=50)
        array([1., 1.])
    """
    runs = [z[:, active_codes(z)] for z in validate_runs(codes)]
    count = votes if votes != "auto" else min(MAX_VOTES, max(MIN_VOTES, VOTES_PER_RUN // len(runs)))
    votes_of_runs = [draw_votes(PreparedFactors(z), count, BATCH, seed) for z in runs if z.size]
    scores = iter(_accuracies(runs, votes_of_runs) if votes_of_runs else ())
    pairs = np.array([next(scores) if z.size else np.zeros(len(runs)) for z in runs])
    np.fill_diagonal(pairs, 0)
    return np.asarray((pairs + pairs.T).sum(1) / (2 * (len(runs) - 1)))


def _accuracies(
    runs: Sequence[np.ndarray], votes_of_runs: Sequence[tuple[np.ndarray, list[np.ndarray]]]
) -> list[np.ndarray]:
    """Return the FactorVAE scores of all runs with the factors that each of the votes were drawn for, (runs,) each.

    Args:
        runs: Codes of every run, (n, d).
        votes_of_runs: Factor and rows of every vote, for any number of runs that provide the factors.
    """
    scaled = [scale_codes(z, PRUNE) if z.size else z for z in runs]
    is_active = np.array([z.shape[1] > 0 for z in scaled])
    rows, vote = _distinct_rows([rows for _, each in votes_of_runs for rows in each])
    sizes = np.array([len(each) for each in rows])
    ends = np.concatenate([[0], sizes.cumsum()])
    shape = len(rows), len(runs[0])
    mean = csr_array((np.repeat(1 / sizes, sizes), np.concatenate(rows), ends), shape)
    code = np.zeros((len(rows), len(runs)), np.int16)
    for j, z in enumerate(scaled):  # one after the other, so that the codes stay in the cache of the processor
        if is_active[j]:
            code[:, j] = (mean @ z**2 - (mean @ z) ** 2).argmin(1)  # variances, (rows, d)
    cuts = np.cumsum([len(factor) for factor, _ in votes_of_runs])[:-1]
    codes = np.split(code[vote], cuts)
    return [np.where(is_active, majority_accuracy(own, factor), 0.0)
            for own, (factor, _) in zip(codes, votes_of_runs, strict=True)]  # fmt: skip


def _distinct_rows(rows_of_votes: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the distinct sets of rows, and the number of the set of each vote: small groups are drawn whole."""
    numbers: dict[bytes, int] = {}
    distinct: list[np.ndarray] = []
    vote = np.zeros(len(rows_of_votes), int)
    for i, rows in enumerate(rows_of_votes):
        vote[i] = numbers.setdefault(np.sort(rows).tobytes(), len(numbers))
        if vote[i] == len(distinct):
            distinct.append(rows)
    return distinct, vote
