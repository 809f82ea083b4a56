"""The metric contract: a function of (truth, codes) with facts, variants by name, and validated arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, get_type_hints

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import Kind
from unweave.methods.encoding import learned_scaling, to_scaled
from unweave.utils.errors import InputError, kebab, plural, unknown
from unweave.utils.validation import check_finite

Truth = Literal["factors", "inputs", "decoder", "nothing", "labels", "runs"]


class Facts(NamedTuple):
    """Properties of a metric, for tables, reports and the catalog."""

    paper: str
    """Authors, year, section or equation."""
    best: float
    """Best possible score."""
    truth: Truth
    """First argument: the true factors; the observations (inputs), a method with a decoder, or nothing, for metrics
    that need no labels; the labels of a classifier; or the codes of several runs."""
    kinds: tuple[Kind, ...]
    """Kinds of factors that the metric is defined for."""
    worst: float | None
    """Score of a constant code; None: that of guessing among the factors."""
    variants: Mapping[str, Mapping[str, Any]]
    """Settings by the name that tables put into brackets; '' is the metric under its plain name."""
    default: tuple[str, ...]
    """Variants that the plain name selects."""
    slow: tuple[str, ...]
    """Variants that are computed only if they are named."""
    variant_kinds: Mapping[str, tuple[Kind, ...]]
    """Kinds of factors of variants that are not defined for all kinds; other factors are left out."""


class Metric(Protocol):
    """A function of (truth, codes) with facts."""

    __name__: str
    facts: Facts

    def __call__(self, truth: Any, codes: Any) -> Any:
        """Return a number, or a named tuple of numbers."""


F = TypeVar("F", bound=Callable[..., Any])
ORDERED: tuple[Kind, ...] = ("ordinal", "circular", "real")
CIRCULAR: tuple[Kind, ...] = ("circular",)
ALL_KINDS: tuple[Kind, ...] = ("nominal", *ORDERED)
EVERY_KIND: Mapping[str, tuple[Kind, ...]] = {}
PLAIN: Mapping[str, Mapping[str, Any]] = {"": {}}


def metric(
    *,
    paper: str,
    best: float = 1.0,
    truth: Truth = "factors",
    worst: float | None = 0.0,
    variants: Mapping[str, Mapping[str, Any]] = PLAIN,
    default: tuple[str, ...] = (),
    slow: tuple[str, ...] = (),
    kinds: Mapping[str, tuple[Kind, ...]] = EVERY_KIND,
) -> Callable[[F], F]:
    """Mark a function `score(truth, codes)` as a metric; the function itself is not changed.

    Args:
        paper: Authors, year, section or equation.
        best: Best possible score.
        truth: What the first argument is, see `Facts`.
        worst: Score of a constant code; None: that of guessing among the factors.
        variants: Settings by name: `{"gbt": {"estimator": "gbt"}}` makes `score[gbt]` a name.
        default: Variants that the plain name selects; default: the first.
        slow: Variants that are computed only if they are named.
        kinds: Kinds of factors by variant, where it is not defined for all: `{"": ORDERED}`, `{"": CIRCULAR}`.

    Example:
        >>> import numpy as np
        >>> @metric(paper="mine")
        ... def first_correlation(factors, codes):
        ...     return abs(np.corrcoef(np.asarray(factors)[:, 0], codes[:, 0])[0, 1])
        >>> first_correlation.facts.best
        1.0
    """

    def mark(function: F) -> F:
        defaults = default or (next(iter(variants)),)
        allowed = kinds.get(defaults[0], ALL_KINDS)
        cast(Any, function).facts = Facts(paper, best, truth, allowed, worst, variants, defaults, slow, kinds)
        return function

    return mark


class Variant:
    """A metric with the settings of one variant, e.g. `dci[gbt]`."""

    def __init__(self, metric: Metric, name: str) -> None:
        self.metric, self.settings, self.facts = metric, metric.facts.variants[name], metric.facts
        self.facts = self.facts._replace(kinds=self.facts.variant_kinds.get(name, ALL_KINDS))
        self.__name__ = kebab(metric.__name__) + (f"[{name}]" if name else "")
        self.__doc__ = metric.__doc__

    def __call__(self, truth: Any, codes: Any) -> Any:
        """Return the score with these settings."""
        return cast(Any, self.metric)(truth, codes, **self.settings)


def variants(metric: Metric, name: str | None = None, *, every: bool = False) -> dict[str, Metric]:
    """Return variants by their names in tables: the one that is named, the default ones, or all but the slow ones."""
    facts = metric.facts
    if name is not None and name not in facts.variants:
        raise unknown(f"variant of {kebab(metric.__name__)}", name, [v for v in facts.variants if v])
    chosen = [name] if name is not None else facts.variants if every else facts.default
    made = [Variant(metric, v) for v in chosen if name is not None or v not in facts.slow]
    return {variant.__name__: variant for variant in made}


class Scorer:
    """A metric as a scikit-learn scorer: `scorer(estimator, X, factors)`, larger is better."""

    def __init__(self, metric: Metric, part: str = "") -> None:
        if metric.facts.truth not in ("factors", "inputs", "decoder", "nothing"):
            raise InputError(f"{metric.__name__} does not score one estimator's codes: it takes {metric.facts.truth}")
        self.metric, self.part = metric, part
        try:
            kind = get_type_hints(getattr(metric, "metric", metric)).get("return")
        except Exception:  # type hints of a user's metric that cannot be resolved
            kind = None
        parts = getattr(kind, "_fields", ("",))
        if (hasattr(kind, "_fields") or kind is float) and part not in parts:
            example = f"{metric.__name__}.{parts[0]}" if parts[0] else metric.__name__
            raise unknown(f"part of {metric.__name__}", part, parts, hint=f"; pass {example!r}")

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the score of `estimator.transform(X)`; y holds the true factors, if the metric needs them."""
        needs = self.metric.facts.truth
        if needs == "factors" and y is None:
            raise InputError(f"{self.metric.__name__} needs the true factors: pass them as y")
        truth = {"factors": y, "inputs": X, "decoder": estimator, "nothing": None}[needs]
        if needs == "inputs" and learned_scaling(estimator) is not None:  # distances must not depend on units
            truth = to_scaled(estimator, torch.as_tensor(as_matrix(X, "inputs")))
        values = as_numbers(self.metric(truth, estimator.transform(X)))
        if self.part not in values:
            raise unknown(f"part of {self.metric.__name__}", self.part, values)
        return values[self.part] if self.metric.facts.best > 0 else -values[self.part]


def column_name(name: str, part: str) -> str:
    """Return the name of a part of a score in tables, e.g. dci[gbt].disentanglement."""
    return f"{name}.{part}" if part else name


def as_numbers(value: Any) -> dict[str, float]:
    """Return a score as numbers by name: the fields of a named tuple, or one number under the name ''."""
    return {k: float(v) for k, v in value._asdict().items()} if hasattr(value, "_asdict") else {"": float(value)}


def validate_pair(truth: Any, codes: Any, *, what: Truth = "factors") -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 matrices, (n, k) and (n, d); raise InputError if their rows do not match."""
    c, z = as_matrix(truth, what), as_matrix(codes, "codes")
    validate_rows(c, z, what)
    if what == "factors":
        constant = np.flatnonzero((c == c[:1]).all(0))
        if len(constant):
            raise InputError(f"factor {constant[0]} is constant: there is nothing to recover; leave it out")
    return c, z


def validate_rows(c: np.ndarray, z: np.ndarray, what: str) -> None:
    """Raise InputError unless two matrices describe the same samples, at least three."""
    if len(c) != len(z):
        swapped = (
            " (are its axes swapped? expected one row per sample)" if len(c) in z.shape or len(z) in c.shape else ""
        )
        raise InputError(
            f"{plural(len(c), 'row')} of {what} and {plural(len(z), 'row')} of codes{swapped}: expected the same"
        )
    if len(c) < 3:
        raise InputError(f"{plural(len(c), 'sample')}: a score needs at least three")
    if len(c) < min(c.shape[1], z.shape[1]):
        shapes = f"{what} of shape {c.shape} and codes of shape {z.shape}"
        raise InputError(
            f"{shapes}: more columns than samples in both; are the axes swapped? expected one row per sample"
        )


def as_matrix(array: Any, what: str) -> np.ndarray:
    """Return numbers as a float64 matrix, (samples, columns); one column may be flat, inputs may have any shape."""
    if isinstance(array, Tensor):
        array = (array.float() if array.dtype in (torch.bfloat16, torch.float16) else array).numpy(force=True)
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{what} hold {values.dtype}, not numbers: code classes as 0, 1, 2, ...")
    values = values.astype(np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim > 2 and what == "inputs":
        values = values.reshape(len(values), -1)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{what} of shape {values.shape}: expected (samples, columns)")
    check_finite(values, what=what)
    return values
