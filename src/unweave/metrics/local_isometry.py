"""Local isometry: are distances between near observations preserved in the codes?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.methods.spectral.isometry import CLOSEST_FRACTION, Pairs, closest_pairs, isometry_score, rescaled_distances
from unweave.metrics.contract import as_matrix, metric, validate_pair, validate_rows
from unweave.utils.errors import InputError


class NearPairs(NamedTuple):
    """The closest pairs of observations, with their distances in the data and in the rescaled codes."""

    i: np.ndarray  # (m,)
    j: np.ndarray  # (m,)
    dx: np.ndarray  # (m,)
    dz: np.ndarray  # (m,)


@metric(paper="Horan, Richardson and Weiss (2021), Sec. 4", truth="inputs")
def local_isometry(
    inputs: Any, codes: Any, *, closest: float = CLOSEST_FRACTION, points: int = 3_000, seed: int = 0
) -> float:
    """Correlation of distances in the data with distances in the codes, over near pairs (Horan et al., 2021, Sec. 4).

    Each code is first multiplied by a factor of its own that minimizes the mean squared difference of the two
    distances. No labels are needed. Codes that are independent of the inputs score near 0.

    Args:
        inputs: Observations, (n, ...).
        codes: Codes, (n, d).
        closest: Share of all pairs that count as near.
        points: Largest number of observations to compare; more are subsampled.
        seed: Seed of the subsample.

    Returns:
        A correlation from -1 to 1; 1 is best.

    Example:
        >>> import numpy as np
        >>> inputs = np.random.default_rng(0).uniform(size=(100, 2))
        >>> round(local_isometry(inputs, inputs * [2, -5]), 2)
        1.0
    """
    pairs = near_pairs(inputs, codes, closest=closest, points=points, seed=seed)
    return isometry_score(pairs.dz, pairs.dx)


class PreparedInputs(np.ndarray):
    """Observations (n, ...) that remember their closest pairs, for the comparison with many codes, and the last one.

    It is an array, so that every metric takes it. Do not change its values, nor those of codes it was compared with.
    """

    def __array_finalize__(self, obj: Any) -> None:
        self._closest: dict[tuple[float, int, int], tuple[np.ndarray, Pairs]] = {}
        self._last: tuple[Any, tuple[float, int, int], NearPairs] | None = None  # codes, settings, result

    def compare(self, codes: Any, share: float, points: int, seed: int) -> NearPairs:
        """Return the closest pairs with their distances; codes that were compared last are not compared again."""
        settings = share, points, seed
        if self._last is None or self._last[0] is not codes or self._last[1] != settings:
            z = as_matrix(codes, "codes")
            validate_rows(self.reshape(len(self), -1), z, "inputs")
            rows, pairs = self.closest(*settings)
            near = NearPairs(pairs.i, pairs.j, pairs.dx, rescaled_distances(z[rows], pairs))
            self._last = codes, settings, near
        return self._last[2]

    def closest(self, share: float, points: int, seed: int) -> tuple[np.ndarray, Pairs]:
        """Return the rows of a subsample and the closest share of its pairs, computed the first time only."""
        key = share, points, seed
        if key not in self._closest:
            rows = np.arange(len(self))
            if len(self) > points:
                rows = np.sort(np.random.default_rng(seed).choice(len(self), points, replace=False))
            self._closest[key] = rows, closest_pairs(as_matrix(np.asarray(self)[rows], "inputs"), share)
        return self._closest[key]


def near_pairs(
    inputs: Any, codes: Any, *, closest: float = CLOSEST_FRACTION, points: int = 3_000, seed: int = 0
) -> NearPairs:
    """Return the closest share of all pairs of inputs with their distances in the data and in the rescaled codes."""
    if not isinstance(inputs, PreparedInputs):
        inputs = validate_pair(inputs, codes, what="inputs")[0].view(PreparedInputs)
    if not 0 < closest <= 1:
        raise InputError(f"closest={closest}: expected a share of the pairs between 0 and 1")
    return inputs.compare(codes, closest, points, seed)
