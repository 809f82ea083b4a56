"""BetaVAE score: can a linear classifier predict which factor two observations share?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unweave.data.core import FactorData
from unweave.metrics.contract import metric
from unweave.metrics.factor_vae_score import select_large_groups
from unweave.metrics.factors import active_codes, prepare_factors
from unweave.metrics.fixed_factor import encode_sets
from unweave.utils.errors import InputError


@metric(paper="Higgins et al. (2017), Sec. 3", worst=None)
def beta_vae_score(factors: Any, codes: Any, *, points: int = 1_000, pairs: int = 64, seed: int = 0) -> float:
    """Accuracy of predicting the shared factor from differences of codes (Higgins et al., 2017, Sec. 3).

    A point is the mean absolute difference of codes over pairs of observations that share the value of one factor. A
    logistic regression predicts that factor; half of the points train it, the other half test it.

    Args:
        factors: True factors, (n, k) with k > 1, or the result of `prepared`: pairs are rows of equal value. Or
            `FactorData`: pairs are new observations, as in the paper.
        codes: Codes, (n, d); with `FactorData`, a fitted method.
        points: Number of points.
        pairs: Pairs per point.
        seed: Seed of the pairs.

    Returns:
        A number from 0 to 1; 1 is best, one over the number of factors is chance.

    Example:
        >>> import numpy as np
        >>> factors = np.random.default_rng(0).integers(4, size=(200, 2))
        >>> beta_vae_score(factors, factors, points=50, pairs=8)
        1.0
    """
    if isinstance(factors, FactorData):
        drawn = encode_sets(factors, codes, votes=points, sets=pairs, size=2, seed=seed)
        x, factor = np.abs(drawn.codes[:, :, 0] - drawn.codes[:, :, 1]).mean(1), drawn.factor  # (points, d), (points,)
        x = x if x.shape[1] else np.zeros((points, 1))
    else:
        c, z = prepare_factors(factors, codes)
        if c.count < 2:
            raise InputError("the BetaVAE score compares factors, and there is only one")
        rng = np.random.default_rng(seed)
        active = active_codes(z)
        z = z[:, active] / z[:, active].std(0) if active.any() else np.zeros((len(z), 1))
        groups = [select_large_groups(rows, 2 * pairs) for rows in c.groups]
        factor = rng.integers(c.count, size=points)
        x = np.zeros((points, z.shape[1]))
        for j, rows in enumerate(groups):
            x[factor == j] = _mean_differences(rows, z, int((factor == j).sum()), pairs, rng)
    half = points // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(x[:half], factor[:half])
    return float(model.score(x[half:], factor[half:]))


def _mean_differences(
    groups: list[np.ndarray], z: np.ndarray, points: int, pairs: int, rng: np.random.Generator
) -> np.ndarray:
    """Return for each point the mean absolute difference of codes over pairs of rows of one group, (points, d)."""
    rows, sizes = np.concatenate(groups), np.array([len(group) for group in groups])
    start = np.cumsum(sizes) - sizes
    group = rng.integers(len(groups), size=(points, pairs, 1))
    place = start[group] + (rng.random((points, pairs, 2)) * sizes[group]).astype(int)
    first, second = np.moveaxis(rows[place], -1, 0)  # (points, pairs) each
    return np.asarray(np.abs(z[first] - z[second]).mean(1))
