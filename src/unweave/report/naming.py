"""Names of codes in words, from what they change: attributes, the region of an image, classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unweave.data.core import Factor
from unweave.report.effects import Effects

MAX_ATTRIBUTES = 3  # in the name of a code
STRONG, LITTLE = 0.5, 0.3  # strengths from which on an attribute, and "a little" of it, belongs to the name
FULL_CHANGE = 3.29  # deviations between the 5 % and the 95 % quantile of a normal distribution
MIN_TIE = 0.9  # of the strongest attribute of a family, from which an attribute before it in the list is named instead
MIN_EQUAL = 0.99  # of the strongest, from which two attributes are equally strong
MIN_STRENGTH = 0.02  # of the strongest code, below which a code does nothing
MIN_SHARE, MIN_LIFT = 0.3, 1.5  # of a region in the change, alone and relative to all codes, from which it is named
MIN_CLASS_SHARE = 0.5  # of the class that changes most, from which a code acts on a class
MAX_LOCAL_SHARE = 0.5  # of the classes, on which a local code acts
REGIONS = (
    ("upper left", "top", "upper right"), ("left", "center", "right"), ("lower left", "bottom", "lower right"),
)  # fmt: skip


class MovedAttribute(NamedTuple):
    """An attribute of images, or a column of a table, that a code moves."""

    words: str
    """Its name, e.g. "stroke thickness"."""
    correlation: float
    """Correlation with the code over the data; absolute for angles."""
    is_little: bool
    """Whether the code moves it only a little, beyond what the attributes before it bring with them."""
    ends: tuple[float, float] | None
    """Means of the attribute at both ends of the code; None without a decoder."""
    unit: str
    """Unit of the ends in a text: "°", "%" for a share, or "" for a plain number."""

    def describe(self) -> str:
        """Return the strength in words, e.g. "|r| = .93, -20 to 31°"."""
        text = format_correlation(self.correlation)
        return text if self.ends is None else f"{text}, {format_ends(self.ends, self.unit)}"


def moved_attributes(effects: Effects, i: int) -> tuple[MovedAttribute, ...]:
    """Return the attributes that code i moves, strongest first, at most three and one of each family.

    After the first one, only what the strength of an attribute exceeds its regression on those before it by counts:
    images that lean more are also wider, and that alone is no second name.
    """
    if does_nothing(effects, i):
        return ()
    strengths = attribute_strengths(effects, i)  # (a,)
    families = np.array([quantity.family for quantity in effects.quantities])
    chosen: list[int] = []
    attributes: list[MovedAttribute] = []
    while len(chosen) < min(MAX_ATTRIBUTES, len(families)):
        rest = np.minimum(np.abs(strengths), np.abs(subtract_regression(strengths, effects.within, chosen)))
        rest[np.isin(families, families[chosen])] = 0
        best = int(np.argmax(rest >= MIN_EQUAL * rest.max()))  # the first of equals, whatever rounding says
        if rest[best] < LITTLE:
            break
        best = int(np.argmax((families == families[best]) & (rest >= MIN_TIE * rest[best])))  # the whole before a half
        quantity, r = effects.quantities[best], float(effects.correlations[i, best])
        ends = None if effects.ends is None else (float(effects.ends[i, best, 0]), float(effects.ends[i, best, 1]))
        attributes.append(MovedAttribute(quantity.words, r, bool(rest[best] < STRONG), ends, quantity.unit))
        chosen.append(best)
    return tuple(attributes)


def attribute_strengths(effects: Effects, i: int) -> np.ndarray:
    """Return how strongly code i moves each attribute, (a,) in [-1, 1].

    Without a decoder it is the correlation over the data. With one it is the geometric mean of the correlation and of
    the decoded change, where 3.29 deviations count as 1: both are 1 for a code that is the attribute. It is 0 where
    both contradict each other, as for details that the decoder blurs.
    """
    r = effects.correlations[i]
    if effects.changes is None:
        return r
    change = np.clip(effects.changes[i] / FULL_CHANGE, -1, 1)
    is_angle = np.array([quantity.period is not None for quantity in effects.quantities], bool)  # r has no sign
    return np.sign(change) * np.sqrt(np.maximum(np.where(is_angle, np.abs(change), change) * r, 0))


def subtract_regression(strengths: np.ndarray, within: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Return strengths (a,) minus their linear regression on the chosen ones.

    Args:
        strengths: Strengths of the attributes, (a,).
        within: Correlations of the attributes, (a, a).
        chosen: Indices of the attributes that predict the others.
    """
    if not chosen:
        return strengths
    weights = np.linalg.lstsq(within[np.ix_(chosen, chosen)], strengths[chosen], rcond=1e-6)[0]
    return strengths - within[:, chosen] @ weights


def does_nothing(effects: Effects, i: int) -> bool:
    """Return whether moving code i changes the observation by less than 2 % of what the strongest code does."""
    return effects.strength is not None and bool(effects.strength[i] < MIN_STRENGTH)


def changed_region(effects: Effects, i: int) -> str:
    """Return the region of an image that has much of the change of code i, and more than for codes on average."""
    if effects.regions is None or effects.strength is None or does_nothing(effects, i):
        return ""
    weights = effects.strength**2 / (effects.strength**2).sum()
    average = np.einsum("d,dij->ij", weights, effects.regions)
    lift = np.where(effects.regions[i] >= MIN_SHARE, effects.regions[i] / np.maximum(average, 1e-12), 0)
    row, column = np.unravel_index(lift.argmax(), lift.shape)
    return REGIONS[row][column] if lift[row, column] >= MIN_LIFT else ""


def classes_of_local_codes(by_class: np.ndarray, factor: Factor) -> list[tuple[str, ...]]:
    """Return the classes that each local code acts on; an empty tuple for a global one, which acts on most of them.

    Changes of a class are taken relative to those that all codes together make to it, so that a class with little ink
    counts as much as others.

    Args:
        by_class: Change of each class by each code, (d, k); NaN for classes without observations.
        factor: The factor whose values are the classes.
    """
    present = np.flatnonzero(~np.isnan(by_class[0]))
    changes = by_class[:, present]
    relative = changes / np.sqrt(np.maximum((changes**2).sum(0), 1e-24))
    acts = relative >= MIN_CLASS_SHARE * relative.max(1, keepdims=True)
    names = np.array([str(factor.values[k] if factor.values else k) for k in present.tolist()])
    return [tuple(names[row].tolist()) if row.mean() <= MAX_LOCAL_SHARE else () for row in acts]


# Words ----------------------------------------------------------------------------------------------------------------


def describe_attributes(attributes: Sequence[MovedAttribute], region: str = "") -> str:
    """Return attributes in words, e.g. "slant (|r| = .93, -20 to 31°), a little width"; '' for none."""
    texts = []
    for i, attribute in enumerate(attributes):
        text = f"a little {attribute.words}" if attribute.is_little else attribute.words
        texts.append(f"{text} ({attribute.describe()})" if not i or not attribute.is_little else text)
    return ", ".join([*texts, f"especially at the {region}"] if region and texts else texts)


def shorten_attributes(attributes: Sequence[MovedAttribute]) -> str:
    """Return the names of the strong attributes alone, or that of a single weak one; '' for none."""
    strong = [attribute.words for attribute in attributes if not attribute.is_little]
    return ", ".join(strong) if strong or not attributes else f"a little {attributes[0].words}"


def describe_unnamed(effects: Effects, i: int, region: str, kind: str) -> str:
    """Return what is known about code i, which moves no attribute; `kind` is that of the quantities."""
    if does_nothing(effects, i):
        return "nothing"
    if region:
        return f"a change at the {region}"
    return f"no {kind} follows it" if effects.strength is None else f"a change of no single {kind}"


def format_correlation(r: float) -> str:
    """Return the size of a correlation.

    >>> format_correlation(-0.934), format_correlation(1.0)
    ('|r| = .93', '|r| = 1.00')
    """
    return f"|r| = {f'{abs(r):.2f}'.removeprefix('0')}"


def format_ends(ends: tuple[float, float], unit: str) -> str:
    """Return two numbers with their unit.

    >>> format_ends((-0.123, 0.4), "%"), format_ends((-20.4, 31.0), "°")
    ('-12 to 40 %', '-20 to 31°')
    """
    if unit == "%":
        return f"{100 * ends[0]:z.0f} to {100 * ends[1]:z.0f} %"
    if unit == "°":
        return f"{ends[0]:z.0f} to {ends[1]:z.0f}°"
    return " to ".join(f"{end:z.3g}" if abs(end) < 1_000 else f"{end:,.0f}" for end in ends)
