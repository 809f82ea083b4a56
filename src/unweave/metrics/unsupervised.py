"""Dependence between codes: total correlation and pairwise mutual information, without labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.metrics.contract import as_matrix, metric
from unweave.metrics.factors import BINS, active_codes, histogram, mutual_information
from unweave.utils.errors import InputError


class Unsupervised(NamedTuple):
    """Dependence in nats, from 0 to infinity; 0 is best."""

    total_correlation: float
    """Of a Gaussian with the covariance of the codes."""
    mutual_information: float
    """Of two codes, by histograms, averaged over pairs."""


@metric(paper="Locatello et al. (2019), Sec. 5.3", best=0.0, truth="nothing")
def unsupervised(truth: Any, codes: Any, *, bins: int = BINS) -> Unsupervised:
    """Total correlation and mean pairwise mutual information of the codes (Locatello et al., 2019, Sec. 5.3).

    Independent codes score 0, and so do codes of noise: read it beside a metric that needs factors. Constant codes are
    left out. Codes that determine each other linearly have an infinite total correlation.

    Args:
        truth: Ignored; may be None.
        codes: Codes, (n, d).
        bins: Bins of equal width per code.

    Example:
        >>> import numpy as np
        >>> codes = np.random.default_rng(0).normal(size=(500, 2))
        >>> round(unsupervised(None, codes).total_correlation, 2)
        0.0
    """
    z = as_matrix(codes, "codes")
    if len(z) < 3:
        raise InputError(f"{len(z)} samples: a score needs at least three")
    z = z[:, active_codes(z)]
    d = z.shape[1]
    if d < 2:
        return Unsupervised(0.0, 0.0)
    spectrum = np.linalg.eigvalsh(np.corrcoef(z.T))
    # KL(N(0, S) || N(0, diag S)) = -1/2 log det of the correlation matrix
    total = -0.5 * np.log(spectrum).sum() if spectrum[0] > 1e-12 * d else np.inf
    binned = [histogram(column, bins) for column in z.T]
    pairs = [mutual_information(binned[i], binned[j]) for i in range(d) for j in range(i)]
    return Unsupervised(max(float(total), 0.0), float(np.mean(pairs)))
