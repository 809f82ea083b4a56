"""Model centrality: do the codes of several runs predict each other?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factor_vae_score import factor_vae_score
from unweave.metrics.factors import PreparedFactors, active_codes
from unweave.metrics.udr import validate_runs


@metric(paper="Lin, Thekumparampil, Fanti and Oh (2020), Sec. 4", truth="runs")
def model_centrality(codes: Sequence[Any], *, votes: int = 1_000, seed: int = 0) -> np.ndarray:
    """FactorVAE score of each run with the codes of every other run as factors (Lin et al., 2020, Sec. 4).

    It is averaged over the other runs and over both directions. The paper draws images from the run that provides the
    factors. Here its codes of the observations are cut into bins of equal count, so that no generator is needed.

    Args:
        codes: One array (n, d) per run, of the same observations in the same order.
        votes: Votes of the FactorVAE score.
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
    references = [PreparedFactors(z) for z in runs]
    pairs = np.zeros((len(runs), len(runs)))
    for i, reference in enumerate(references):
        for j, z in enumerate(runs):
            if i != j and reference.count and z.size:
                pairs[i, j] = factor_vae_score(reference, z, votes=votes, seed=seed).accuracy
    return np.asarray((pairs + pairs.T).sum(1) / (2 * (len(runs) - 1)))
