"""The BetaVAE score: can a linear classifier tell which factor two observations share?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unweave.data.core import FactorData
from unweave.metrics.contract import metric
from unweave.metrics.factor_vae_score import large_groups
from unweave.metrics.factors import alive, prepare_factors
from unweave.metrics.fixed_factor import shared
from unweave.utils.errors import InputError


@metric(paper="Higgins et al. (2017), Sec. 3", worst=None)
def beta_vae_score(factors: Any, codes: Any, *, points: int = 1_000, pairs: int = 64, seed: int = 0) -> float:
    """Accuracy of telling the shared factor from the mean absolute difference of codes over pairs that share it.

    From a table, by grouping: both rows of a pair have the same value of the factor. From `FactorData` in place of the
    factors and a fitted method in place of the codes: pairs are drawn with the factor held fixed, as in the paper. Half
    of the points train the classifier, the other half test it. A constant code guesses: one over the number of factors.
    """
    if isinstance(factors, FactorData):
        drawn = shared(factors, codes, votes=points, sets=pairs, size=2, seed=seed)
        x, factor = np.abs(drawn.codes[:, :, 0] - drawn.codes[:, :, 1]).mean(1), drawn.factor  # (points, d), (points,)
        x = x if x.shape[1] else np.zeros((points, 1))
    else:
        c, z = prepare_factors(factors, codes)
        if c.count < 2:
            raise InputError("the BetaVAE score tells factors apart, and there is one only")
        rng = np.random.default_rng(seed)
        living = alive(z)
        z = z[:, living] / z[:, living].std(0) if living.any() else np.zeros((len(z), 1))
        groups = [large_groups(rows, 2 * pairs) for rows in c.groups]
        factor = rng.integers(c.count, size=points)
        x = np.zeros((points, z.shape[1]))
        for j, rows in enumerate(groups):
            x[factor == j] = _differences(rows, z, int((factor == j).sum()), pairs, rng)
    half = points // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(x[:half], factor[:half])
    return float(model.score(x[half:], factor[half:]))


def _differences(
    groups: list[np.ndarray], z: np.ndarray, points: int, pairs: int, rng: np.random.Generator
) -> np.ndarray:
    """For each point, the mean absolute difference of codes over pairs of rows of the same group, (points, d)."""
    rows, sizes = np.concatenate(groups), np.array([len(group) for group in groups])
    start = np.cumsum(sizes) - sizes
    group = rng.integers(len(groups), size=(points, pairs, 1))
    place = start[group] + (rng.random((points, pairs, 2)) * sizes[group]).astype(int)
    first, second = np.moveaxis(rows[place], -1, 0)  # (points, pairs) each
    return np.asarray(np.abs(z[first] - z[second]).mean(1))
