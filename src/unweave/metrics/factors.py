"""What metrics share: the factors, checked once, with classes, groups and bins; mutual information; training rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar, cast

import numpy as np

from unweave.metrics.contract import as_matrix, same_rows, validate_pair
from unweave.utils.errors import InputError, plural

BINS = 20  # of a histogram, the field's convention
T = TypeVar("T")
ENOUGH = 8  # rows that a group must have for its variance to be worth the name
MOST_CLASSES = 100  # a factor with more values, or with fractions, counts as continuous


class PreparedFactors:
    """True factors, checked once, and what metrics derive from them, worked out once however many codes are scored."""

    def __init__(self, factors: np.ndarray, discrete: Sequence[bool | None] | None = None) -> None:
        self.c = factors  # (n, k)
        told = [None] * factors.shape[1] if discrete is None else discrete
        self.discrete = [is_discrete(c) if d is None else d for c, d in zip(factors.T, told, strict=True)]
        self._kept: dict[tuple[Any, ...], Any] = {}
        self.binned, self.entropies = cache(self._binned), cache(self._entropies)

    def __len__(self) -> int:
        return len(self.c)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The factors as they are, for whoever wants plain numbers."""
        return np.array(self.c, dtype=dtype, copy=copy)

    def once(self, function: Callable[..., T], *args: Any) -> T:
        """What a function makes of these factors, worked out the first time only."""
        key = (function, *args)
        if key not in self._kept:
            self._kept[key] = function(self, *args)
        return cast(T, self._kept[key])

    def take_rows(self, rows: np.ndarray) -> PreparedFactors:
        """The factors of some of the samples."""
        return PreparedFactors(self.c[rows], self.discrete)

    def __getstate__(self) -> tuple[np.ndarray, list[bool]]:
        """What another process is sent: the factors alone."""
        return self.c, self.discrete

    def __setstate__(self, state: tuple[np.ndarray, list[bool]]) -> None:
        PreparedFactors.__init__(self, *state)

    @property
    def count(self) -> int:
        """How many factors there are."""
        return int(self.c.shape[1])

    @cached_property
    def classes(self) -> list[np.ndarray]:
        """Each factor as classes 0, 1, ..., (n,)."""
        found = [classes(column, discrete=d) for column, d in zip(self.c.T, self.discrete, strict=True)]
        for j, y in enumerate(found):
            if len(y) < 2 * (y.max() + 1):
                text = f"factor {j} has {y.max() + 1} classes in {plural(len(y), 'sample')}"
                warnings.warn(f"{text}: scores that go by classes mean little; give more samples", stacklevel=2)
        return found

    @cached_property
    def groups(self) -> list[list[np.ndarray]]:
        """For each factor the row numbers of each of its classes."""
        return [np.split(np.argsort(y, kind="stable"), np.cumsum(np.bincount(y))[:-1]) for y in self.classes]

    def _binned(self, bins: int) -> list[np.ndarray]:
        """Each factor as whole numbers for a histogram: not binned again where it is discrete."""
        either = zip(self.c.T, self.classes, self.discrete, strict=True)
        return [y if discrete else histogram(c, bins) for c, y, discrete in either]

    def _entropies(self, bins: int) -> np.ndarray:
        """The entropy of every factor, in nats, (k,)."""
        return np.array([_entropy(np.bincount(f)) for f in self.binned(bins)])


def prepare_factors(factors: Any, codes: Any) -> tuple[PreparedFactors, np.ndarray]:
    """The factors, with what was worked out for them before if that is what is given, and the codes, (n, d)."""
    if isinstance(factors, PreparedFactors):
        z = as_matrix(codes, "codes")
        same_rows(factors.c, z, "factors")
        return factors, z
    c, z = validate_pair(factors, codes)
    return PreparedFactors(c), z


def prepared(factors: Any, discrete: Sequence[bool | None] | None = None) -> PreparedFactors:
    """Factors, checked and ready to be scored against many codes: every metric takes them in place of an array.

    `discrete` says which of them are; where it says None, those with at most 100 whole values.
    """
    if isinstance(factors, PreparedFactors):
        return factors
    return PreparedFactors(prepare_factors(factors, np.zeros((len(factors), 1)))[0].c, discrete)


def is_discrete(column: np.ndarray) -> bool:
    """Whether a factor takes few whole values."""
    return bool((column == np.round(column)).all()) and len(np.unique(column)) <= MOST_CLASSES


def histogram(column: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The number of the bin of equal width that each value falls into."""
    if not alive(column[:, None])[0]:
        return np.zeros(len(column), int)  # what is left of a dead code is rounding
    edges = np.histogram(column, bins)[1]
    return np.digitize(column, edges[:-1])


def classes(column: np.ndarray, *, discrete: bool, bins: int = BINS) -> np.ndarray:
    """A factor as classes 0, 1, ...: its values where it is discrete, bins of equal count where it is continuous."""
    if not discrete:
        edges = np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])
        column = np.digitize(column, edges)  # where values repeat, some bins are empty: they are closed up below
    return np.unique(column, return_inverse=True)[1]


def factor_code_information(c: PreparedFactors, z: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Mutual information of every factor with every code, in nats, (k, d); codes by histogram."""
    codes = [histogram(column, bins) for column in z.T]
    return np.array([[mutual_information(f, code) for code in codes] for f in c.binned(bins)])


def mutual_information(a: np.ndarray, b: np.ndarray) -> float:
    """Of two columns of small whole numbers, in nats: H(a) + H(b) - H(a, b), from one table of counts."""
    width = int(b.max()) + 1
    joint = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    return max(_entropy(joint.sum(1)) + _entropy(joint.sum(0)) - _entropy(joint), 0.0)


def _entropy(counts: np.ndarray) -> float:
    """In nats, of a histogram."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def train_and_test(n: int, share: float, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train and to test on: shuffled by the seed, or in order where it is None."""
    if not 0 < share < 1:
        raise InputError(f"train={share}: expected a share of the rows between 0 and 1")
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    cut = round(share * n)
    if cut < 2 or n - cut < 1:
        raise InputError(f"{n} samples are too few to train on {share:.0%} of them and to test on the rest")
    return order[:cut], order[cut:]


def check_trainable(y: np.ndarray, j: int) -> None:
    """A factor of which the training rows show one class only teaches nothing."""
    if len(np.unique(y)) < 2:
        raise InputError(f"factor {j} has one class only among the training rows; give more samples")


def alive(z: np.ndarray) -> np.ndarray:
    """Which codes ever change by more than rounding, (n, d) -> (d,)."""
    return np.asarray(np.ptp(z, axis=0) > 1e-12 * np.abs(z).max(0))


def in_groups(features: Sequence[Sequence[int]] | None, z: np.ndarray) -> list[np.ndarray]:
    """The codes of each feature: those that are named together, or every code by itself."""
    groups = [[j] for j in range(z.shape[1])] if features is None else [list(g) for g in features]
    if sorted(j for g in groups for j in g) != list(range(z.shape[1])) or not all(groups):
        raise InputError(f"features={groups}: expected every code from 0 to {z.shape[1] - 1} in one of them")
    return [np.array(g) for g in groups]
