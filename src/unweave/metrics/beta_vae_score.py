"""The BetaVAE score: can a linear classifier tell which factor two observations share?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..errors import InputError
from ..scoring import checked, metric
from ._tables import alive, classes
from .factor_vae_score import fixed_groups


@metric(paper="Higgins et al. (2017), Sec. 3", worst=None)
def beta_vae_score(factors: Any, codes: Any, *, points: int = 1_000, pairs: int = 64, seed: int = 0) -> float:
    """Accuracy of telling the shared factor from the mean absolute difference of codes over pairs that share it.

    From a table, by grouping: both rows of a pair have the same value of the factor. Half of the points train the
    classifier, the other half test it. A constant code guesses: one over the number of factors.
    """
    c, z = checked(factors, codes)
    if c.shape[1] < 2:
        raise InputError("the BetaVAE score tells factors apart, and there is one only")
    rng = np.random.default_rng(seed)
    living = alive(z)
    z = z[:, living] / z[:, living].std(0) if living.any() else np.zeros((len(z), 1))
    groups = [fixed_groups(classes(column), 2 * pairs) for column in c.T]
    factor = rng.integers(c.shape[1], size=points)
    x = np.array([_difference(groups[j], z, pairs, rng) for j in factor])
    half = points // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(x[:half], factor[:half])
    return float(model.score(x[half:], factor[half:]))


def _difference(groups: list[np.ndarray], z: np.ndarray, pairs: int, rng: np.random.Generator) -> np.ndarray:
    rows = [rng.choice(groups[g], 2) for g in rng.integers(len(groups), size=pairs)]
    first, second = np.array(rows).T
    return np.abs(z[first] - z[second]).mean(0)
