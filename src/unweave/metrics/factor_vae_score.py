"""The FactorVAE score: which code stays still while a factor is held fixed?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..scoring import checked, metric
from ._tables import alive, classes


class FactorVAEScore(NamedTuple):
    """The accuracy, and how many codes took part."""

    accuracy: float
    active: int


@metric(paper="Kim and Mnih (2018), Sec. 4")
def factor_vae_score(
    factors: Any, codes: Any, *, votes: int = 1_000, batch: int = 64, prune: float = 0.0, seed: int = 0
) -> FactorVAEScore:
    """Accuracy of telling which factor was held fixed from the code that varied least, relative to its variance.

    From a table, by grouping: a vote takes up to `batch` rows that share a value of a factor. Half of the votes train
    the majority rule, the other half test it. Codes with a standard deviation below `prune` take no part: 0 leaves out
    dead ones only, 0.05 is what the reference study uses for codes with a standard normal prior.
    """
    c, z = checked(factors, codes)
    rng = np.random.default_rng(seed)
    living = alive(z) & (z.std(0) >= prune)
    if not living.any():
        return FactorVAEScore(0.0, 0)
    z = z[:, living] / z[:, living].std(0)
    groups = [fixed_groups(classes(column), batch) for column in c.T]
    factor = rng.integers(c.shape[1], size=votes)
    still = np.array([_stillest(groups[j], z, batch, rng) for j in factor])
    table = np.zeros((z.shape[1], c.shape[1]))
    np.add.at(table, (still[: votes // 2], factor[: votes // 2]), 1)
    rule = table.argmax(1)  # the factor that a code stands for
    return FactorVAEScore(float(np.mean(rule[still[votes // 2 :]] == factor[votes // 2 :])), int(living.sum()))


def fixed_groups(factor: np.ndarray, wanted: int) -> list[np.ndarray]:
    """The rows of each value of a factor, where there are enough of them to have a variance worth the name."""
    groups = [np.flatnonzero(factor == value) for value in np.unique(factor)]
    large = [rows for rows in groups if len(rows) >= min(wanted, 8)]
    if not large:
        raise InputError("no value of a factor has eight rows or more: give more samples")
    return large


def _stillest(groups: list[np.ndarray], z: np.ndarray, batch: int, rng: np.random.Generator) -> int:
    rows = groups[rng.integers(len(groups))]
    chosen = rng.choice(rows, min(batch, len(rows)), replace=False)
    return int(z[chosen].var(0).argmin())
