"""The local isometry score: does a small step in the codes mean the same step in the data, everywhere?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.methods.spectral.isometry import CLOSEST_FRACTION, closest_pairs, isometry_score, rescaled_distances
from unweave.metrics.contract import metric, validate_pair
from unweave.utils.errors import InputError


class NearPairs(NamedTuple):
    """The closest pairs of points, and their distances in the data and in the rescaled codes."""

    i: np.ndarray  # (m,)
    j: np.ndarray  # (m,)
    dx: np.ndarray  # (m,)
    dz: np.ndarray  # (m,)


@metric(paper="Horan, Richardson and Weiss (2021), Sec. 4", truth="inputs")
def local_isometry(
    inputs: Any, codes: Any, *, closest: float = CLOSEST_FRACTION, points: int = 3_000, seed: int = 0
) -> float:
    """Correlation of distances in the data with distances in the codes, over the closest 5 % of pairs of inputs.

    The codes are first rescaled, each dimension by its own factor, so that the mean squared difference of the two
    distances is least. No labels are needed. Beyond `points` samples, a random subset of that size is used.
    """
    pairs = near_pairs(inputs, codes, closest=closest, points=points, seed=seed)
    return isometry_score(pairs.dz, pairs.dx)


def near_pairs(
    inputs: Any, codes: Any, *, closest: float = CLOSEST_FRACTION, points: int = 3_000, seed: int = 0
) -> NearPairs:
    """The closest share of all pairs of inputs, d(x_i, x_j) < epsilon, with both their distances."""
    x, z = validate_pair(inputs, codes, what="inputs")
    if not 0 < closest <= 1:
        raise InputError(f"closest={closest}: expected a share of the pairs between 0 and 1")
    if len(x) > points:
        chosen = np.random.default_rng(seed).choice(len(x), points, replace=False)
        chosen.sort()
        x, z = x[chosen], z[chosen]
    pairs = closest_pairs(x, closest)
    return NearPairs(*pairs, rescaled_distances(z, pairs))
