"""Names for codes, measured: which attributes of images, or columns of a table, each code moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from unweave.data.core import Factor
from unweave.experiments.ordered import IMAGE_DIMENSIONS, varying_codes
from unweave.methods.base import Method
from unweave.methods.encoding import encode_array
from unweave.report.effects import Effects, measure_effects
from unweave.report.explorer.data import sample_data
from unweave.report.explorer.matching import Counterpart, match_codes
from unweave.utils import html
from unweave.utils.errors import InputError, plural

if TYPE_CHECKING:
    from unweave.report.figures.registry import DrawnData

MAX_OBSERVATIONS = 2_000
MAX_CODES = 24  # codes that are described, those that vary most
MAX_NAMES = 3  # attributes in the name of a code
# From which on an attribute belongs to the name, and from which on "a little" of it does: the change along the code in
# deviations of the attribute or, without a decoder, the correlation.
CHANGE_THRESHOLDS, CORRELATION_THRESHOLDS = (1.0, 0.4), (0.5, 0.3)
MIN_CORRELATION = 0.1  # with the data, below which a decoded change is no attribute of the code but of mixed images
MIN_STRENGTH = 0.02  # of the strongest code, below which a code does nothing
MIN_SHARE, MIN_LIFT = 0.3, 1.5  # of a place in the change, alone and relative to all codes, from which it is named
MIN_CLASS_SHARE = 0.5  # of the class that changes most, from which a code acts on a class
MAX_CLASSES = 20
PLACES = (
    ("upper left", "top", "upper right"), ("left", "center", "right"), ("lower left", "bottom", "lower right"),
)  # fmt: skip


class Name(NamedTuple):
    """An attribute that a code moves."""

    words: str
    correlation: float
    """With the code over the data; absolute for angles."""
    is_little: bool
    """Whether the code moves it a little only, beyond what the attributes before it bring with them."""
    ends: tuple[float, float] | None
    """Means of the attribute where they are furthest apart along the code; None without a decoder."""
    unit: str


class CodeDescription(NamedTuple):
    """What one code does."""

    code: int
    """Number of the code, counted from 1 as in figures."""
    words: str
    """The attributes that it moves, e.g. "slant (|r| = .93), a little width"."""
    names: tuple[Name, ...]
    """These attributes, strongest first."""
    strength: float | None
    """How much it changes the observation, the strongest code being 1; None without a decoder."""
    place: str
    """Where images change, if that is in one place; '' otherwise."""
    classes: tuple[str, ...] | None
    """Classes that it acts on; None where these are all, or where the data have none."""
    counterpart: Counterpart | None
    """The code of the method to compare with; None without one."""

    @property
    def short_name(self) -> str:
        """The strongest attributes alone, for labels; '' for none."""
        return ", ".join(name.words for name in self.names if not name.is_little) or (
            f"a little {self.names[0].words}" if self.names else ""
        )


class Description(NamedTuple):
    """What the codes of a method do."""

    codes: list[CodeDescription]
    """The codes that vary most, by number."""
    others: int
    """Number of codes that are not described."""
    effects: Effects
    """The measurements, a row for each described code."""
    class_factor: str
    """Name of the factor whose values are the classes; '' for none."""

    def lines(self) -> list[str]:
        """Return one sentence for each code, and one about the codes that are left out."""
        lines = [_describe_line(entry, self.class_factor) for entry in self.codes]
        return [*lines, f"{plural(self.others, 'code')} that vary less are not described."] if self.others else lines

    def table(self) -> pd.DataFrame:
        """Return one row for each code and attribute that it moves."""
        rows = []
        for entry in self.codes:
            head = {"code": entry.code, "strength": entry.strength, "place": entry.place}
            head["classes"] = "all" if entry.classes is None else " ".join(entry.classes)
            if entry.counterpart is not None:
                head |= {"counterpart": entry.counterpart.code + 1 or None, "match": entry.counterpart.correlation}
            for name in entry.names or (None,):
                rows.append(head | _name_cells(name))
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        """Return the sentences as a list, for notebooks."""
        return html.page("Codes", plural(len(self.codes), "code"), html.items(self.lines()))


def describe(
    method: Method,
    data: Any,
    *,
    compare: Method | None = None,
    seed: int = 0,
    notify: Callable[[str], None] = lambda text: None,
) -> Description:
    """Describe in words what each code of a fitted method changes.

    Observations of at most 2,000 rows are encoded. For images, `unweave.attributes` are compared with the codes, for
    tables the columns. With a decoder, every code is moved from its 5 % to its 95 % quantile, and an attribute belongs
    to its name if that changes it by a deviation or more; by 0.4 deviations, "a little". Without one, correlations of
    0.5 and 0.3 decide. An attribute that only follows another one, as it does in the data, is left out.

    Args:
        method: A fitted method.
        data: Observations of the shape that it has learned from: an array (n, ...), a DataFrame, a `FactorData` or a
            `Dataset`. The first nominal factor of at most 20 classes, if there is one, tells global from local codes.
        compare: A second method fitted to the same data, e.g. with another seed; says which codes it finds, too.
        seed: Seed that selects the observations.
        notify: Receives messages about the progress.

    Example:
        >>> import unweave
        >>> data = unweave.datasets.SquaresXY(points=200, size=16, side=6).load()
        >>> method = unweave.methods.HessianICA(latent_dim=2).fit(data)
        >>> print("; ".join(sorted(entry.short_name for entry in describe(method, data).codes)))
        horizontal position; vertical position
    """
    check_is_fitted(method)
    notify("encoding a sample")
    sample = sample_data(method, data, seed, MAX_OBSERVATIONS)
    codes = encode_array(method, sample.x)
    counterparts = None
    if compare is not None:
        check_is_fitted(compare)
        if compare.shape_ != method.shape_:
            raise InputError(
                f"{compare.name} has learned from shape {compare.shape_}, {method.name} from {method.shape_}"
            )
        others = encode_array(compare, sample.x)
        is_constant = ~np.isin(np.arange(codes.shape[1]), varying_codes(codes))
        counterparts = match_codes(codes, others, method.code_periods(), compare.code_periods(), is_constant)
    notify("moving codes" if method.has_decoder() else "measuring attributes")
    return describe_sample(method, sample, codes, counterparts)


def describe_sample(
    method: Method, sample: DrawnData, codes: np.ndarray, counterparts: list[Counterpart] | None = None
) -> Description:
    """Describe what codes (n, d) of observations do; see `describe`."""
    varying = varying_codes(codes)
    shown = np.sort(varying[np.argsort(-codes[:, varying].std(0), kind="stable")[:MAX_CODES]]).tolist()
    if not shown:
        raise InputError(f"all codes of {type(method).__name__} are constant: there is nothing to describe")
    column = class_column(sample.factors, sample.truth)
    classes = None if column is None else sample.truth[:, column].astype(int)
    effects = measure_effects(method, sample.x, codes, shown, classes, sample.feature_names)
    factor = None if column is None else sample.factors[column]
    acts = None if factor is None or effects.by_class is None else acting_classes(effects.by_class, factor)
    entries = []
    for i, j in enumerate(shown):
        names = tuple(name_code(effects, i))
        strength = None if effects.strength is None else float(effects.strength[i])
        place = find_place(effects, i)
        words = describe_names(names) or _describe_rest(strength, place, is_image=sample.x.ndim - 1 in IMAGE_DIMENSIONS)
        counterpart = None if counterparts is None else counterparts[j]
        entries.append(
            CodeDescription(j + 1, words, names, strength, place, None if acts is None else acts[i], counterpart)
        )
    return Description(entries, codes.shape[1] - len(shown), effects, "" if factor is None else factor.name)


def class_column(factors: Any, truth: np.ndarray) -> int | None:
    """Return the first nominal factor that has at least two and at most 20 values in the data, (n, k)."""
    for j, factor in enumerate(factors):
        if factor.kind == "nominal" and not factor.noise and 2 <= len(np.unique(truth[:, j])) <= MAX_CLASSES:
            return j
    return None


# Names ----------------------------------------------------------------------------------------------------------------


def name_code(effects: Effects, i: int) -> list[Name]:
    """Return the attributes that code i moves, strongest first, at most three and one of each family.

    After the first one, only what an attribute changes beyond its regression on those before it counts: images that
    lean more are also wider, and that alone is no second name.
    """
    moved = effects.correlations[i] if effects.changes is None else effects.changes[i]  # (a,)
    strong, little = CORRELATION_THRESHOLDS if effects.changes is None else CHANGE_THRESHOLDS
    if effects.strength is not None and effects.strength[i] < MIN_STRENGTH:
        return []
    is_alien = np.abs(effects.correlations[i]) < MIN_CORRELATION
    chosen: list[int] = []
    names: list[Name] = []
    while len(names) < MAX_NAMES:
        rest = np.minimum(np.abs(moved), np.abs(_residual(moved, effects.within, chosen)))
        families = {effects.quantities[a].family for a in chosen}
        rest[is_alien | [quantity.family in families for quantity in effects.quantities]] = 0
        best = int(rest.argmax()) if len(rest) else -1
        if best < 0 or rest[best] < little:
            break
        ends = None if effects.ends is None else (float(effects.ends[i, best, 0]), float(effects.ends[i, best, 1]))
        quantity, r = effects.quantities[best], float(effects.correlations[i, best])
        names.append(Name(quantity.words, r, bool(rest[best] < strong), ends, quantity.unit))
        chosen.append(best)
    return names


def _residual(moved: np.ndarray, within: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Return what changes (a,) exceed their linear regression on the chosen ones by, in standardized units."""
    if not chosen:
        return moved
    weights = np.linalg.lstsq(within[np.ix_(chosen, chosen)], moved[chosen], rcond=1e-6)[0]
    return moved - within[:, chosen] @ weights


def describe_names(names: tuple[Name, ...]) -> str:
    """Return the attributes in words, e.g. "slant (|r| = .93), a little width"; '' for none."""
    return ", ".join(
        f"a little {name.words}{_strength_text(name) * (i == 0)}"
        if name.is_little
        else name.words + _strength_text(name)
        for i, name in enumerate(names)
    )


def _strength_text(name: Name) -> str:
    r = f"{abs(name.correlation):.2f}".removeprefix("0")
    if name.ends is None:
        return f" (|r| = {r})"
    return f" (|r| = {r}, {format_ends(name.ends, name.unit)})"


def format_ends(ends: tuple[float, float], unit: str) -> str:
    """Return two numbers with their unit.

    >>> format_ends((-0.123, 0.4), "%"), format_ends((-20.4, 31.0), "°")
    ('-12 to 40 %', '-20 to 31°')
    """
    if unit == "%":
        return f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"
    if unit == "°":
        return f"{ends[0]:.0f} to {ends[1]:.0f}°"
    return " to ".join(f"{end:.3g}" if abs(end) < 1_000 else f"{end:,.0f}" for end in ends)


def _describe_rest(strength: float | None, place: str, *, is_image: bool) -> str:
    """Return what is known of a code without a name."""
    what = "image" if is_image else "row"
    if strength is None:
        return f"no {'attribute' if is_image else 'column'} follows it"
    if strength < MIN_STRENGTH:
        return f"nothing: it does not change the {what}"
    return f"a change at the {place}" if place else f"no {'attribute' if is_image else 'column'} stands out"


# Places and classes ---------------------------------------------------------------------------------------------------


def find_place(effects: Effects, i: int) -> str:
    """Return the place of an image where code i has much of its change, and more than codes have there on average."""
    if effects.places is None or effects.strength is None or effects.strength[i] < MIN_STRENGTH:
        return ""
    weights = effects.strength**2 / (effects.strength**2).sum()
    overall = np.einsum("d,dij->ij", weights, effects.places)
    lift = effects.places[i] / np.maximum(overall, 1e-12)
    lift = np.where(effects.places[i] >= MIN_SHARE, lift, 0)
    row, column = np.unravel_index(lift.argmax(), lift.shape)
    return PLACES[row][column] if lift[row, column] >= MIN_LIFT else ""


def acting_classes(by_class: np.ndarray, factor: Factor) -> list[tuple[str, ...] | None]:
    """Return the classes that each code acts on, from changes (d, k); None for all of them.

    The changes of a class are taken relative to those that all codes together make to it, so that a class with little
    ink is not left out.
    """
    relative = by_class / np.sqrt(np.maximum(np.nansum(by_class**2, 0), 1e-24))
    largest = np.nanmax(relative, 1, keepdims=True)
    acts = relative >= MIN_CLASS_SHARE * largest  # a class without observations does not count
    known = ~np.isnan(by_class[0])
    names = [str(factor.values[k] if factor.values else k) for k in range(by_class.shape[1])]
    return [None if row[known].all() else tuple(np.array(names)[row]) for row in acts]


def _describe_line(entry: CodeDescription, class_factor: str) -> str:
    text = f"code {entry.code}: {entry.words}"
    if entry.place and entry.names:
        text += f", at the {entry.place}"
    if entry.classes is not None:
        text += f"; local, {class_factor} {', '.join(entry.classes)}"
    if entry.counterpart is not None:
        r = f"{abs(entry.counterpart.correlation):.2f}".removeprefix("0")
        match = (
            f"code {entry.counterpart.code + 1} of the other (|r| = {r})" if entry.counterpart.code >= 0 else "no match"
        )
        text += f"; {match}"
    return text


def _name_cells(name: Name | None) -> dict[str, Any]:
    if name is None:
        return {"attribute": "", "r": None, "is_little": None, "from": None, "to": None}
    low, high = name.ends or (None, None)
    return {"attribute": name.words, "r": name.correlation, "is_little": name.is_little, "from": low, "to": high}
