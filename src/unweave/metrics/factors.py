"""Prepared factors and what several metrics share: classes, histograms, mutual information, training rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar, cast

import numpy as np

from unweave.data.kinds import KindSpec, as_kind_list, encode_column, is_discrete
from unweave.metrics.contract import as_matrix, validate_pair, validate_rows
from unweave.utils.errors import InputError, plural

BINS = 20  # of a histogram, as in the reference libraries
T = TypeVar("T")
Periods = Sequence[float | None] | None
MIN_GROUP_SIZE = 8  # rows of a group, for an estimate of its variance


class PreparedFactors:
    """True factors (n, k) with everything that metrics derive from them, computed once for any number of codes."""

    def __init__(
        self,
        factors: np.ndarray,
        discrete: Sequence[bool | None] | None = None,
        periods: Periods = None,
        code_periods: Periods = None,
        nominal: Sequence[bool] | None = None,
    ) -> None:
        self.c = factors  # (n, k)
        declared = [None] * factors.shape[1] if discrete is None else discrete
        self.discrete = [is_discrete(c) if d is None else d for c, d in zip(factors.T, declared, strict=True)]
        self.periods = periods or (None,) * factors.shape[1]  # a full turn of circular factors, None for others
        self.code_periods = code_periods  # likewise for codes; None: no code is an angle
        self.nominal = nominal or [False] * factors.shape[1]  # classes without an order
        self._results: dict[tuple[Any, ...], Any] = {}
        self.binned, self.entropies = cache(self._binned), cache(self._entropies)

    def __len__(self) -> int:
        return len(self.c)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the factors as an array."""
        return np.array(self.c, dtype=dtype, copy=copy)

    def once(self, function: Callable[..., T], *args: Any) -> T:
        """Return `function(self, *args)`, computed the first time only."""
        key = (function, *args)
        if key not in self._results:
            self._results[key] = function(self, *args)
        return cast(T, self._results[key])

    def take_rows(self, rows: np.ndarray) -> PreparedFactors:
        """Return the factors of some samples."""
        return PreparedFactors(self.c[rows], *self.__getstate__()[1:])

    def __getstate__(self) -> tuple[Any, ...]:
        """Return what another process needs: the factors alone."""
        return self.c, self.discrete, self.periods, self.code_periods, self.nominal

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        PreparedFactors.__init__(self, *state)

    @property
    def has_angles(self) -> bool:
        """Whether a factor or a code is circular."""
        return any(period is not None for period in (*self.periods, *(self.code_periods or ())))

    def targets(self, j: int) -> np.ndarray:
        """Return factor j as numbers for a regression, (n,); a circular one as cosine and sine, (n, 2)."""
        period = self.periods[j]
        return self.c[:, j] if period is None else unit_circle(self.c[:, j], period)

    @property
    def count(self) -> int:
        """The number of factors."""
        return int(self.c.shape[1])

    @cached_property
    def classes(self) -> list[np.ndarray]:
        """Each factor as classes 0, 1, ..., (n,)."""
        every = [classes(column, discrete=d) for column, d in zip(self.c.T, self.discrete, strict=True)]
        for j, y in enumerate(every):
            if len(y) < 2 * (y.max() + 1):
                text = f"factor {j} has {y.max() + 1} classes in {plural(len(y), 'sample')}"
                warnings.warn(f"{text}: scores that go by classes mean little; give more samples", stacklevel=2)
        return every

    @cached_property
    def groups(self) -> list[list[np.ndarray]]:
        """For each factor, the row numbers of each of its classes."""
        return [np.split(np.argsort(y, kind="stable"), np.cumsum(np.bincount(y))[:-1]) for y in self.classes]

    def _binned(self, bins: int) -> list[np.ndarray]:
        """Return each factor as bin numbers, (n,): its classes if it is discrete."""
        columns = zip(self.c.T, self.classes, self.discrete, strict=True)
        return [y if discrete else histogram(c, bins) for c, y, discrete in columns]

    def _entropies(self, bins: int) -> np.ndarray:
        """Return the entropy of every factor, in nats, (k,)."""
        return np.array([_entropy(np.bincount(f)) for f in self.binned(bins)])


def prepare_factors(factors: Any, codes: Any) -> tuple[PreparedFactors, np.ndarray]:
    """Return factors and codes (n, d) after validation; factors that are prepared already are returned as they are."""
    if isinstance(factors, PreparedFactors):
        z = as_matrix(codes, "codes")
        validate_rows(factors.c, z, "factors")
        return factors, z
    c, z = validate_pair(factors, codes)
    return PreparedFactors(c), z


def prepared(
    factors: Any,
    discrete: Sequence[bool | None] | None = None,
    *,
    kinds: KindSpec | Sequence[KindSpec | None] | None = None,
    code_periods: Periods = None,
) -> PreparedFactors:
    """Return factors ready to be scored against many codes; every metric takes them in place of an array.

    Args:
        factors: True factors, (n, k).
        discrete: Whether each factor is discrete; None: if it has at most 100 values, each in at least five rows.
        kinds: Kind of each factor, or one for all: "nominal", "ordinal", "continuous", "circular", or with the length
            of a full turn ("circular", 360); None as for `discrete`.
        code_periods: Length of a full turn of each code that is an angle, None for the others.

    Example:
        >>> import numpy as np
        >>> from unweave.metrics import mcc
        >>> factors = prepared(np.random.default_rng(0).uniform(size=(100, 2)))
        >>> [round(mcc(factors, factors.c * scale), 2) for scale in (1, 2)]
        [1.0, 1.0]
        >>> angle = np.arange(0.0, 360, 5)
        >>> truth = prepared(angle, kinds=("circular", 360), code_periods=(2 * np.pi,))
        >>> round(mcc(truth, np.deg2rad(angle + 90) % (2 * np.pi)), 3)
        1.0
    """
    if isinstance(factors, PreparedFactors):
        return factors
    c = prepare_factors(factors, np.zeros((len(factors), 1)))[0].c
    if kinds is None:
        return PreparedFactors(c, discrete, code_periods=code_periods)
    specs = as_kind_list(kinds, c.shape[1])
    columns = [encode_column(f"factor {j}", c[:, j], spec)[1] for j, spec in enumerate(specs)]
    discrete, periods = [f.size is not None for f in columns], [f.period for f in columns]
    return PreparedFactors(c, discrete, periods, code_periods, [f.kind == "nominal" for f in columns])


def unit_circle(values: np.ndarray, period: float) -> np.ndarray:
    """Return angles as points on the unit circle, (n,) -> (n, 2)."""
    angle = values * (2 * np.pi / period)
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def expand_angles(z: np.ndarray, periods: Periods) -> np.ndarray:
    """Return codes (n, d) for regressions and distances: each that is an angle as cosine and sine."""
    if periods is None or all(period is None for period in periods):
        return z
    columns = zip(z.T, periods, strict=True)
    return np.concatenate([v[:, None] if period is None else unit_circle(v, period) for v, period in columns], 1)


def histogram(column: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Return the bin of equal width of each value, (n,)."""
    if not active_codes(column[:, None])[0]:
        return np.zeros(len(column), int)  # a constant code varies by rounding errors
    edges = np.histogram(column, bins)[1]
    return np.digitize(column, edges[:-1])


def classes(column: np.ndarray, *, discrete: bool, bins: int = BINS) -> np.ndarray:
    """Return classes 0, 1, ... of a factor, (n,): its values if it is discrete, else bins of equal count."""
    if not discrete:
        edges = np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])
        column = np.digitize(column, edges)  # empty bins, of repeated values, are removed below
    return np.unique(column, return_inverse=True)[1]


def factor_code_information(c: PreparedFactors, z: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Return the mutual information of every factor with every code by histograms, in nats, (k, d)."""
    codes = [histogram(column, bins) for column in z.T]
    return np.array([[mutual_information(f, code) for code in codes] for f in c.binned(bins)])


def mutual_information(a: np.ndarray, b: np.ndarray) -> float:
    """Return H(a) + H(b) - H(a, b) of two columns of bin numbers, in nats."""
    width = int(b.max()) + 1
    joint = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    return max(_entropy(joint.sum(1)) + _entropy(joint.sum(0)) - _entropy(joint), 0.0)


def _entropy(counts: np.ndarray) -> float:
    """Return the entropy of counts, in nats."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def train_test_rows(n: int, share: float, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train and to test on: shuffled by the seed, or in order if it is None."""
    if not 0 < share < 1:
        raise InputError(f"train={share}: expected a share of the rows between 0 and 1")
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    cut = round(share * n)
    if cut < 2 or n - cut < 1:
        raise InputError(f"{n} samples are too few to train on {share:.0%} of them and to test on the rest")
    return order[:cut], order[cut:]


def check_trainable(y: np.ndarray, j: int) -> None:
    """Raise InputError if the training rows have one class only."""
    if len(np.unique(y)) < 2:
        raise InputError(f"factor {j} has one class only among the training rows; give more samples")


def active_codes(z: np.ndarray) -> np.ndarray:
    """Return which codes change by more than rounding errors, (n, d) -> (d,)."""
    return np.asarray(np.ptp(z, axis=0) > 1e-12 * np.abs(z).max(0))


def group_columns(features: Sequence[Sequence[int]] | None, z: np.ndarray) -> list[np.ndarray]:
    """Return the columns of each feature: the groups in `features`, or every code alone."""
    groups = [[j] for j in range(z.shape[1])] if features is None else [list(g) for g in features]
    if sorted(j for g in groups for j in g) != list(range(z.shape[1])) or not all(groups):
        raise InputError(f"features={groups}: expected every code from 0 to {z.shape[1] - 1} in one of them")
    return [np.array(g) for g in groups]
