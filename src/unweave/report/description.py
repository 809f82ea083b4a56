"""What each code does, in words: `describe` measures which attributes of images, or columns of a table, it moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from unweave.data.core import Factor
from unweave.experiments.ordered import varying_codes
from unweave.methods.base import Method
from unweave.methods.encoding import encode_array
from unweave.report.effects import Effects, is_measurable, measure_effects
from unweave.report.explorer.matching import Counterpart, match_codes
from unweave.report.naming import (
    MovedAttribute,
    changed_region,
    classes_of_local_codes,
    describe_attributes,
    describe_unnamed,
    format_correlation,
    moved_attributes,
    shorten_attributes,
)
from unweave.report.sample import DrawnData, sample_data
from unweave.utils import html
from unweave.utils.errors import InputError, plural

MAX_ROWS = 2_000  # observations that are measured
MAX_CODES = 24  # codes that are described, those that vary most
MAX_CLASSES = 20


class CodeDescription(NamedTuple):
    """What one code does."""

    code: int
    """Number of the code, counted from 1 as in figures."""
    words: str
    """What it changes, e.g. "slant (|r| = .93, -20 to 31°), a little width, especially at the top"."""
    attributes: tuple[MovedAttribute, ...]
    """The attributes that it moves, strongest first; empty if there are none."""
    strength: float | None
    """How much it changes the observation, the strongest code being 1; None without a decoder."""
    region: str
    """Where images change, if that is in one region; '' otherwise."""
    classes: tuple[str, ...]
    """Classes that a local code acts on; empty for a global code, and where the data have no classes."""
    counterpart: Counterpart | None
    """The code of the method to compare with, counted from 0, or -1; None without a method to compare with."""

    @property
    def short_name(self) -> str:
        """The strongest attributes alone, for labels; '' for none."""
        return shorten_attributes(self.attributes)


class Description(NamedTuple):
    """What the codes of a method do."""

    codes: tuple[CodeDescription, ...]
    """The codes that vary most, at most 24, by their numbers."""
    n_others: int
    """Number of codes that are not described."""
    effects: Effects
    """The measurements, a row for each described code."""
    class_factor: str
    """Name of the factor whose values are the classes of local codes; '' where there are none."""

    def lines(self) -> list[str]:
        """Return one sentence for each code, and one about the codes that are left out."""
        lines = [f"code {entry.code}: {self._describe(entry)}" for entry in self.codes]
        rest = f"{plural(self.n_others, 'code')} that {'varies' if self.n_others == 1 else 'vary'} less: not described"
        return [*lines, rest] if self.n_others else lines

    def table(self) -> pd.DataFrame:
        """Return one row for each code and attribute that it moves."""
        return pd.DataFrame([row for entry in self.codes for row in self._rows(entry)])

    def scope(self, entry: CodeDescription) -> str:
        """Return the classes that a code acts on, e.g. "local (digit 1, 7)", or "global"; '' without classes."""
        if not self.class_factor:
            return ""
        return f"local ({self.class_factor} {', '.join(entry.classes)})" if entry.classes else "global"

    def _describe(self, entry: CodeDescription) -> str:
        """Return everything about a code, separated by semicolons."""
        match = "" if entry.counterpart is None else describe_counterpart(entry.counterpart)
        return "; ".join(text for text in (entry.words, self.scope(entry), match) if text)

    def _rows(self, entry: CodeDescription) -> list[dict[str, Any]]:
        head: dict[str, Any] = {name: getattr(entry, name) for name in ("code", "words", "strength", "region")}
        if self.class_factor:
            head["classes"] = " ".join(entry.classes) or "all"
        if entry.counterpart is not None:
            head |= {"counterpart": entry.counterpart.code + 1 or None, "match": abs(entry.counterpart.correlation)}
        nothing: dict[str, Any] = {"attribute": "", "r": None, "is_little": None, "from": None, "to": None}
        rows = [
            {"attribute": a.words, "r": a.correlation, "is_little": a.is_little}
            | dict(zip(("from", "to"), a.ends or (None, None), strict=True))
            for a in entry.attributes
        ]
        return [head | row for row in rows or [nothing]]

    def _repr_html_(self) -> str:
        """Return the sentences as a list, for notebooks."""
        return html.page("Codes in words", plural(len(self.codes), "code"), html.items(self.lines()))


def describe(
    method: Method,
    data: Any,
    compare: Method | None = None,
    *,
    seed: int = 0,
    notify: Callable[[str], None] = lambda text: None,
) -> Description:
    """Describe in words what each code of a fitted method changes.

    At most 2,000 observations are encoded. For images, `unweave.attributes` are compared with the codes, for tables the
    columns. With a decoder, every code is also moved from its 5 % to its 95 % quantile. The strength of an attribute is
    the geometric mean of its correlation with the code and of its decoded change, where 3.29 standard deviations count
    as 1; without a decoder it is the correlation. From 0.5 on the attribute belongs to the name of the code, and from
    0.3 on "a little" of it does. An attribute that only follows a stronger one, as it does in the data, is left out.

    Args:
        method: A fitted method.
        data: Observations of the shape that it has learned from: an array (n, ...), a DataFrame, a `FactorData` or a
            `Dataset`. If they have a nominal factor of at most 20 classes, codes are local if they act on at most
            half of the classes, and global otherwise.
        compare: A second method fitted to the same data, e.g. with another seed, whose codes are matched one to one.
        seed: Seed that selects the observations.
        notify: Receives messages about the progress.

    Example:
        >>> import unweave
        >>> data = unweave.datasets.SquaresXY(points=200, size=16, side=6).load()
        >>> method = unweave.methods.HessianICA(latent_dim=2).fit(data)
        >>> sorted(entry.short_name for entry in describe(method, data).codes)
        ['horizontal position', 'vertical position']
    """
    for each in (method, compare or method):
        if not isinstance(each, Method):
            raise InputError(f"{each!r} is no method: load a run with unweave.load(folder)")
        check_is_fitted(each)
    notify("encoding a sample")
    sample = sample_data(method, data, seed, MAX_ROWS)
    codes = encode_array(method, sample.x)
    counterparts = None if compare is None else match_methods(method, compare, sample, codes)
    notify("moving the codes" if method.has_decoder() else "measuring attributes")
    return describe_encoded(method, sample, codes, counterparts)


def match_methods(method: Method, other: Method, sample: DrawnData, codes: np.ndarray) -> list[Counterpart]:
    """Return the counterparts of codes (n, d) among those of a second method for the same observations."""
    if other.shape_ != method.shape_:
        raise InputError(
            f"{other.name} was trained on shape {other.shape_}, {method.name} on {method.shape_}: compare methods that "
            "were trained on the same data"
        )
    is_constant = ~np.isin(np.arange(codes.shape[1]), varying_codes(codes))
    others = encode_array(other, sample.x)
    return match_codes(codes, others, method.code_periods(), other.code_periods(), is_constant)


def describe_encoded(
    method: Method, sample: DrawnData, codes: np.ndarray, counterparts: Sequence[Counterpart] | None = None
) -> Description:
    """Describe codes (n, d) of observations, as `describe` does; those that are constant are left out."""
    varying = varying_codes(codes)
    if not len(varying):
        raise InputError(f"all codes of {method.name} are constant: expected codes that vary over the data")
    shown = np.sort(varying[np.argsort(-codes[:, varying].std(0), kind="stable")[:MAX_CODES]]).tolist()
    column = class_column(sample.factors, sample.truth)
    classes = None if column is None else sample.truth[:, column].astype(int)
    effects = measure_effects(method, sample.x, codes, shown, classes, sample.feature_names)
    factor = None if column is None or effects.by_class is None else sample.factors[column]
    acts: list[tuple[str, ...]] = [()] * len(shown)
    if factor is not None and effects.by_class is not None:
        acts = classes_of_local_codes(effects.by_class, factor)
    kind, entries = "attribute" if is_measurable(sample.x.shape[1:]) else "column", []
    for i, j in enumerate(shown):
        attributes, region = moved_attributes(effects, i), changed_region(effects, i)
        words = describe_attributes(attributes, region) or describe_unnamed(effects, i, region, kind)
        strength = None if effects.strength is None else float(effects.strength[i])
        counterpart = None if counterparts is None else counterparts[j]
        entries.append(CodeDescription(j + 1, words, attributes, strength, region, acts[i], counterpart))
    n_others = codes.shape[1] - len(shown)
    return Description(tuple(entries), n_others, effects, "" if factor is None else factor.name)


def class_column(factors: Sequence[Factor], truth: np.ndarray) -> int | None:
    """Return the first nominal factor that has between two and twenty values in the data (n, k)."""
    for j, factor in enumerate(factors):
        if factor.kind == "nominal" and not factor.noise and 2 <= len(np.unique(truth[:, j])) <= MAX_CLASSES:
            return j
    return None


def describe_counterpart(counterpart: Counterpart) -> str:
    """Return which code of the other method is the same, in words."""
    if counterpart.code < 0:
        return "no match in the other method"
    return f"code {counterpart.code + 1} of the other method ({format_correlation(counterpart.correlation)})"
