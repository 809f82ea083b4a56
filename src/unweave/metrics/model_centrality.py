"""Model centrality: how well the codes of one run predict those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unweave.metrics.contract import metric
from unweave.metrics.factor_vae_score import factor_vae_score
from unweave.metrics.factors import PreparedFactors, alive
from unweave.metrics.udr import validate_runs


@metric(paper="Lin, Thekumparampil, Fanti and Oh (2020), Sec. 4", truth="runs")
def model_centrality(codes: Sequence[Any], *, votes: int = 1_000, seed: int = 0) -> np.ndarray:
    """How well each run's codes would score if those of another run were the truth, averaged over the others, (runs,).

    The score is FactorVAE's, both ways round. The paper draws images from the run that plays the truth; here the codes
    of the same observations are grouped by it, its codes cut into bins of equal count, so no generator is needed.
    """
    runs = [z[:, alive(z)] for z in validate_runs(codes)]
    truths = [PreparedFactors(z) for z in runs]
    pairs = np.zeros((len(runs), len(runs)))
    for i, truth in enumerate(truths):
        for j, z in enumerate(runs):
            if i != j and truth.count and z.size:
                pairs[i, j] = factor_vae_score(truth, z, votes=votes, seed=seed).accuracy
    return np.asarray((pairs + pairs.T).sum(1) / (2 * (len(runs) - 1)))
