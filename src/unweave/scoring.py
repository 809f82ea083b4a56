"""The metric contract: a function of (truth, codes) that carries its facts, and its variants by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from torch import Tensor

from .checks import check_finite
from .data import Kind
from .errors import InputError, kebab, plural, unknown

Truth = Literal["factors", "inputs", "nothing", "labels", "runs"]


class Facts(NamedTuple):
    """What tables and reports say of a metric."""

    paper: str
    best: float
    truth: Truth
    """what stands first: the true factors; the observations themselves, or nothing (then no labels are needed); the
    labels of a classifier; or the codes of several runs"""
    kinds: tuple[Kind, ...]
    """kinds of factors it makes sense for"""
    worst: float | None
    """what a code that says nothing gets; None: as much as guessing among the factors"""
    variants: Mapping[str, Mapping[str, Any]]
    """settings by the name that tables put into brackets; '' is the score under its plain name"""
    default: tuple[str, ...]
    """variants that the plain name stands for"""
    slow: tuple[str, ...]
    """variants that are computed only where they are named"""


class Metric(Protocol):
    """A score as the catalog sees it."""

    __name__: str
    facts: Facts

    def __call__(self, truth: Any, codes: Any) -> Any:
        """A number, or a named tuple of numbers."""


F = TypeVar("F", bound=Callable[..., Any])
PLAIN: Mapping[str, Mapping[str, Any]] = {"": {}}


def metric(
    *,
    paper: str,
    best: float = 1.0,
    truth: Truth = "factors",
    kinds: tuple[Kind, ...] = ("nominal", "ordinal", "circular", "real"),
    worst: float | None = 0.0,
    variants: Mapping[str, Mapping[str, Any]] = PLAIN,
    default: tuple[str, ...] = (),
    slow: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Mark a function `score(factors, codes)` as a metric. It is not wrapped: it stays the function you wrote.

    `variants={"gbt": {"estimator": "gbt"}}` makes `score[gbt]` a name; the plain name stands for the first of them, or
    for `default`.
    """

    def mark(function: F) -> F:
        facts = Facts(paper, best, truth, kinds, worst, variants, default or (next(iter(variants)),), slow)
        cast(Any, function).facts = facts
        return function

    return mark


class Variant:
    """A metric with its settings: what tables call `dci[gbt]`."""

    def __init__(self, scorer: Metric, name: str) -> None:
        self.scorer, self.settings, self.facts = scorer, scorer.facts.variants[name], scorer.facts
        self.__name__ = kebab(scorer.__name__) + (f"[{name}]" if name else "")
        self.__doc__ = scorer.__doc__

    def __call__(self, truth: Any, codes: Any) -> Any:
        """The score with these settings."""
        return cast(Any, self.scorer)(truth, codes, **self.settings)


def variants(scorer: Metric, name: str | None = None, *, every: bool = False) -> dict[str, Metric]:
    """By their names in tables: the variant that is named, the default ones, or all but the slow ones."""
    facts = scorer.facts
    if name is not None and name not in facts.variants:
        raise unknown(f"variant of {kebab(scorer.__name__)}", name, [v for v in facts.variants if v])
    chosen = [name] if name is not None else facts.variants if every else facts.default
    found = [Variant(scorer, v) for v in chosen if name is not None or v not in facts.slow]
    return {variant.__name__: variant for variant in found}


class Scorer:
    """A metric as scikit-learn wants it: scorer(estimator, X, factors), larger is better."""

    def __init__(self, scorer: Metric, part: str = "") -> None:
        if scorer.facts.truth not in ("factors", "inputs", "nothing"):
            raise InputError(f"{scorer.__name__} does not score one estimator's codes: it takes {scorer.facts.truth}")
        self.scorer, self.part = scorer, part

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """How well `estimator.transform(X)` does; y holds the true factors, if the metric asks for them."""
        needs = self.scorer.facts.truth
        if needs == "factors" and y is None:
            raise InputError(f"{self.scorer.__name__} needs the true factors: pass them as y")
        truth = {"factors": y, "inputs": X, "nothing": None}[needs]
        found = numbers(self.scorer(truth, estimator.transform(X)))
        if self.part not in found:
            raise unknown(f"part of {self.scorer.__name__}", self.part, found)
        return found[self.part] if self.scorer.facts.best > 0 else -found[self.part]


def scored(
    name: str, scorer: Metric, truth: Any, codes: Any, *, chance: bool = False, bootstrap: int = 0, seed: int = 0
) -> dict[str, dict[str, float]]:
    """A score's parts by name: value, best, and on request the chance level and a bootstrap interval."""
    values = numbers(scorer(truth, codes))
    base = chance_level(scorer, truth, codes, seed=seed) if chance else {}
    bounds = interval(scorer, truth, codes, repeats=bootstrap, seed=seed) if bootstrap else {}
    rows: dict[str, dict[str, float]] = {}
    for part, value in values.items():
        row = {"value": value, "best": scorer.facts.best}
        row |= {"chance": base[part]} if chance else {}
        row |= dict(zip(("low", "high"), bounds[part], strict=True)) if bootstrap else {}
        rows[column(name, part)] = row
    return rows


def column(name: str, part: str) -> str:
    """What tables call a part of a score: dci[gbt].disentanglement."""
    return f"{name}.{part}" if part else name


def chance_level(scorer: Metric, truth: Any, codes: Any, *, repeats: int = 3, seed: int = 0) -> dict[str, float]:
    """What the same codes score when they are shuffled against the truth: the mean over some shuffles."""
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    rounds = [numbers(scorer(truth, z[rng.permutation(len(z))])) for _ in range(repeats)]
    return {name: float(np.mean([r[name] for r in rounds])) for name in rounds[0]}


def interval(
    scorer: Metric, truth: Any, codes: Any, *, repeats: int = 20, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """A bootstrap interval: quantiles of the score over resamples of the rows."""
    rng, z = np.random.default_rng(seed), as_matrix(codes, "codes")
    c = truth.numpy(force=True) if isinstance(truth, Tensor) else None if truth is None else np.asarray(truth)
    picks = [rng.integers(len(z), size=len(z)) for _ in range(repeats)]
    rounds = [numbers(scorer(None if c is None else c[rows], z[rows])) for rows in picks]
    tail = (1 - level) / 2
    bounds = {name: np.quantile([r[name] for r in rounds], [tail, 1 - tail]) for name in rounds[0]}
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


def numbers(value: Any) -> dict[str, float]:
    """A score as named numbers: one without a name, or the fields of a named tuple."""
    return {k: float(v) for k, v in value._asdict().items()} if hasattr(value, "_asdict") else {"": float(value)}


def checked(truth: Any, codes: Any, *, what: Truth = "factors") -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 matrices, (n, k) and (n, d), or an error that says which of them is wrong and how."""
    c, z = as_matrix(truth, what), as_matrix(codes, "codes")
    same_rows(c, z, what)
    if what == "factors":
        constant = np.flatnonzero((c == c[:1]).all(0))
        if len(constant):
            raise InputError(f"factor {constant[0]} is constant: there is nothing to recover; leave it out")
    return c, z


def same_rows(c: np.ndarray, z: np.ndarray, what: str) -> None:
    """Refuse two matrices that do not describe the same samples, or too few of them."""
    if len(c) != len(z):
        swapped = " (are its axes swapped? wanted one row per sample)" if len(c) in z.shape or len(z) in c.shape else ""
        raise InputError(
            f"{plural(len(c), 'row')} of {what} and {plural(len(z), 'row')} of codes{swapped}: want the same"
        )
    if len(c) < 3:
        raise InputError(f"{plural(len(c), 'sample')}: a score needs at least three")


def as_matrix(array: Any, what: str) -> np.ndarray:
    """Numbers as a float64 matrix, (samples, columns); one column may come flat, inputs in any shape."""
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
