"""The metric contract: a function of (truth, codes) that carries its facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from torch import Tensor

from .checks import check_finite
from .data import Kind
from .errors import InputError, plural

Truth = Literal["factors", "inputs"]


class Facts(NamedTuple):
    """What tables and reports say of a metric."""

    paper: str
    best: float
    truth: Truth
    """what stands first: the true factors, or the observations themselves (then no labels are needed)"""
    kinds: tuple[Kind, ...]
    """kinds of factors it makes sense for"""
    worst: float | None
    """what a code that says nothing gets; None: as much as guessing among the factors"""


class Metric(Protocol):
    """A score as the catalog sees it."""

    __name__: str
    facts: Facts

    def __call__(self, truth: Any, codes: Any) -> Any:
        """A number, or a named tuple of numbers."""


F = TypeVar("F", bound=Callable[..., Any])


def metric(
    *,
    paper: str,
    best: float = 1.0,
    truth: Truth = "factors",
    kinds: tuple[Kind, ...] = ("nominal", "ordinal", "circular", "real"),
    worst: float | None = 0.0,
) -> Callable[[F], F]:
    """Mark a function `score(factors, codes)` as a metric. It is not wrapped: it stays the function you wrote."""

    def mark(function: F) -> F:
        cast(Any, function).facts = Facts(paper, best, truth, kinds, worst)
        return function

    return mark


def chance_level(scorer: Metric, truth: Any, codes: Any, *, repeats: int = 3, seed: int = 0) -> dict[str, float]:
    """What the same codes score when they are shuffled against the truth: the mean over some shuffles."""
    rng, z = np.random.default_rng(seed), _matrix(codes, "codes")
    rounds = [numbers(scorer(truth, z[rng.permutation(len(z))])) for _ in range(repeats)]
    return {name: float(np.mean([r[name] for r in rounds])) for name in rounds[0]}


def interval(
    scorer: Metric, truth: Any, codes: Any, *, repeats: int = 20, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """A bootstrap interval: quantiles of the score over resamples of the rows."""
    rng, z = np.random.default_rng(seed), _matrix(codes, "codes")
    c = truth.numpy(force=True) if isinstance(truth, Tensor) else np.asarray(truth)
    picks = [rng.integers(len(z), size=len(z)) for _ in range(repeats)]
    rounds = [numbers(scorer(c[rows], z[rows])) for rows in picks]
    tail = (1 - level) / 2
    bounds = {name: np.quantile([r[name] for r in rounds], [tail, 1 - tail]) for name in rounds[0]}
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


def numbers(value: Any) -> dict[str, float]:
    """A score as named numbers: one without a name, or the fields of a named tuple."""
    return {k: float(v) for k, v in value._asdict().items()} if hasattr(value, "_asdict") else {"": float(value)}


def checked(truth: Any, codes: Any, *, what: Truth = "factors") -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 matrices, (n, k) and (n, d), or an error that says which of them is wrong and how."""
    c, z = _matrix(truth, what), _matrix(codes, "codes")
    if len(c) != len(z):
        swapped = " (are its axes swapped? wanted one row per sample)" if len(c) in z.shape or len(z) in c.shape else ""
        raise InputError(
            f"{plural(len(c), 'row')} of {what} and {plural(len(z), 'row')} of codes{swapped}: want the same"
        )
    if len(c) < 3:
        raise InputError(f"{plural(len(c), 'sample')}: a score needs at least three")
    if what == "factors":
        constant = np.flatnonzero((c == c[:1]).all(0))
        if len(constant):
            raise InputError(f"factor {constant[0]} is constant: there is nothing to recover; leave it out")
    return c, z


def _matrix(array: Any, what: str) -> np.ndarray:
    if isinstance(array, Tensor):
        array = array.numpy(force=True)
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{what} hold {values.dtype}, not numbers: code classes as 0, 1, 2, ...")
    values = values.astype(np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim > 2 and what == "inputs":
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{what} of shape {values.shape}: wanted (samples, columns)")
    check_finite(values, what=what)
    return values
