"""How independent the codes are of each other: no labels are needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import BINS, alive, histogram, mutual_information
from unweave.utils.errors import InputError


class Unsupervised(NamedTuple):
    """In nats; 0 is best."""

    total_correlation: float
    """of a Gaussian with the covariance of the codes"""
    mutual_information: float
    """of two codes, by histograms, averaged over pairs"""


@metric(paper="Locatello et al. (2019), Sec. 5.3", best=0.0, truth="nothing")
def unsupervised(truth: Any, codes: Any, *, bins: int = BINS) -> Unsupervised:
    """How much the codes tell of each other, whatever they mean: total correlation and pairwise information.

    Independent codes score 0, and so do codes that say nothing: read it beside a score that asks for content. `truth`
    is not looked at and may be None. Dead codes take no part. Codes that determine each other have no finite total
    correlation; it is then infinite.
    """
    z = as_matrix(codes, "codes")
    if len(z) < 3:
        raise InputError(f"{len(z)} samples: a score needs at least three")
    z = z[:, alive(z)]
    d = z.shape[1]
    if d < 2:
        return Unsupervised(0.0, 0.0)
    spectrum = np.linalg.eigvalsh(np.corrcoef(z.T))
    # KL(N(0, S) || N(0, diag S)) = -1/2 log det of the correlation matrix
    total = -0.5 * np.log(spectrum).sum() if spectrum[0] > 1e-12 * d else np.inf
    binned = [histogram(column, bins) for column in z.T]
    pairs = [mutual_information(binned[i], binned[j]) for i in range(d) for j in range(i)]
    return Unsupervised(max(float(total), 0.0), float(np.mean(pairs)))
