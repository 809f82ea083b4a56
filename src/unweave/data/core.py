"""The contract of data: named factors, a sampler of points, and a renderer x = g(point)."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, final

import torch
from torch import Generator, Tensor

from unweave.utils.errors import InputError, list_names, plural, refuse_former_names

if TYPE_CHECKING:
    from unweave.data.rows import RowReader
    from unweave.data.scaling import ScaleMode, Scaling

Kind = Literal["nominal", "ordinal", "circular", "real"]


@dataclass(frozen=True)
class Factor:
    """One axis of variation.

    Example:
        >>> Factor("color", 3, "nominal", values=("red", "green", "blue")).summary()
        'color (nominal: red, green, blue)'
    """

    name: str
    """Name in tables and figures."""
    size: int | None = None
    """Number of values of a discrete factor; None for a real-valued one."""
    kind: Kind = "real"
    """Kind of scale: without order, ordered, around a circle, or real-valued."""
    noise: bool = False
    """Whether scores leave the factor out because it only carries noise."""
    values: tuple[float | str, ...] = ()
    """Meaning of the values 0, 1, ... of a discrete factor, if they are not numbers of their own."""
    period: float | None = None
    """Length of a full turn of a circular factor in units of its values; by default its size, or 2 pi without one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if self.kind == "circular" and self.period is None:
            object.__setattr__(self, "period", float(self.size) if self.size else 2 * math.pi)
        if self.period is not None and (self.kind != "circular" or not 0 < self.period < math.inf):
            raise InputError(f"factor {self.name!r} is {self.kind} with period {self.period}: use kind='circular'")
        if self.size is None and self.kind in ("nominal", "ordinal"):
            raise InputError(f"factor {self.name!r} is {self.kind} and needs a size: how many values has it?")
        if self.size is not None and (self.kind == "real" or self.size < 1):
            raise InputError(f"factor {self.name!r} has kind {self.kind!r} and size {self.size}: use a discrete kind")

    def summary(self) -> str:
        """Return name, kind and values in words, e.g. "color (nominal: red, green, blue)"."""
        text: str = "continuous" if self.kind == "real" else self.kind
        if any(isinstance(value, str) for value in self.values):
            text += f": {list_names(self.values)}"
        elif self.size is not None:
            text += f", {plural(self.size, 'value')}"
        text += f", period {self.period:g}" if self.period is not None and self.period != self.size else ""
        return f"{self.name} ({text}{', noise' if self.noise else ''})"

    def numeric_values(self, c: Tensor) -> Tensor:
        """Return the numbers that the values represent, (n,) -> (n,); values with names stay 0, 1, ..."""
        if not self.values or any(isinstance(value, str) for value in self.values):
            return c
        return torch.tensor(self.values, dtype=torch.float64, device=c.device)[c.long()]


class Sample(NamedTuple):
    """Observations with their factors."""

    x: Tensor  # (n, *shape)
    c: Tensor  # (n, k)


class FactorData(ABC):
    """Data with k factors, generated in two steps: draw a point, then render it.

    A point, (p,), identifies one observation. In a `Grid` or a `Mixing` it holds the factors themselves, so p = k. In
    a `Table`, where two rows may have the same labels, it is the row number, so p = 1.

    Example:
        >>> from unweave.data.containers import Grid
        >>> data = Grid(torch.rand(6, 4), [Factor("a", 2, "ordinal"), Factor("b", 3, "ordinal")])
        >>> data.draw(5, torch.Generator().manual_seed(0)).x.shape
        torch.Size([5, 4])
    """

    factors: tuple[Factor, ...]
    shape: tuple[int, ...]
    feature_names: tuple[str, ...] = ()
    """Names of the columns of a table; empty for other data."""
    row_names: tuple[str, ...] | None = None
    """Identifiers of the rows of a user's own data, e.g. names of image files; None where there are none."""
    notes: tuple[str, ...] = ()
    """What the user should know about how the data were read: matched rows, kinds of factors, columns left out."""
    row_key: str = "row"
    """Name of the identifiers, e.g. "file" or the column of a table that holds them."""
    scale: ScaleMode = "none"
    """How methods scale the columns before they learn; see `unweave.data.scaling`."""
    scaling: Scaling | None = None
    """Scaling that `render` applies, in the data that a method learns from; None for data in their own units."""
    reader: RowReader | None = None
    """Reads rows on demand, where a point is a row number; None for data in memory or generated."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_former_names(cls, {"observed": "all_points", "rendered": "materialize", "units": "groups"})

    def __repr__(self) -> str:
        from unweave.data.preview import data_text

        return data_text(self)

    def _repr_html_(self) -> str:
        from unweave.data.preview import data_html

        return data_html(self)

    def count_text(self) -> str:
        """Return the number of observations in words, for the representation of the data."""
        return plural(len(self), "observation") if isinstance(self, Sized) else "observations drawn on demand"

    @abstractmethod
    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw points, (n, p)."""

    @abstractmethod
    def render(self, points: Tensor) -> Tensor:
        """Return the observations at points, (..., p) -> (..., *shape); floats, in [0, 1] for images."""

    def labels(self, points: Tensor) -> Tensor:
        """Return the factors of points, (..., p) -> (..., k)."""
        return points

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Return points that have the factors c, (n, k) -> (n, p).

        Everything that the factors do not determine is copied from the points `like`, (n, p), where possible.
        """
        return c

    def all_points(self, limit: int) -> Tensor | None:
        """Return all points in order, (n, p), if the data are finite and at most `limit`; otherwise None."""
        return None

    def materialize(self) -> FactorData:
        """Return the same finite sample with rendered observations in memory if that is cheaper; otherwise itself."""
        return self

    def groups(self, points: Tensor) -> Tensor | None:
        """Return group numbers, (n, p) -> (n,), or None; a split keeps a group (a digit in all colors) together."""
        return None

    def levels(self, j: int) -> Tensor:
        """Return the values of the discrete factor j that occur in these data."""
        return torch.arange(self.factors[j].size or 0)

    @final
    def to(self, device: torch.device | str) -> Self:
        """Return the data with all tensors on a device; sampling then needs a generator on that device."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor | FactorData):
                setattr(moved, name, value.to(device))
            elif isinstance(value, list) and value and isinstance(value[0], Tensor):
                setattr(moved, name, [part.to(device) for part in value])
        moved.__dict__.pop("_index", None)  # it is rebuilt on the device when needed
        return moved

    @final
    def draw(self, n: int, rng: Generator) -> Sample:
        """Draw n observations with their factors."""
        points = self.sample(n, rng)
        return Sample(self.render(points), self.labels(points))

    @final
    def points_or_sample(self, n: int, rng: Generator, *, limit: int | None = None) -> Tensor:
        """Return all points in order, (m, p), if there are at most `limit` (default: n); otherwise draw n points."""
        points = self.all_points(n if limit is None else limit)
        return self.sample(n, rng) if points is None else points

    @final
    def collect(self, limit: int, rng: Generator) -> Sample:
        """Return all observations in order if they are finite and at most `limit`; otherwise draw `limit` of them."""
        points = self.points_or_sample(limit, rng)
        return Sample(self.render(points), self.labels(points))

    @final
    def freeze(self, n: int, rng: Generator) -> Subset:
        """Draw n points and return them as a finite data set."""
        return Subset(self, self.sample(n, rng))

    @final
    def describe(self, c: Tensor) -> str:
        """Return one combination of factors, (k,), as text: "x=3, y=0"."""
        return ", ".join(f"{f.name}={v:g}" for f, v in zip(self.factors, c.tolist(), strict=True))

    @final
    def column(self, name: str) -> int:
        """Return the column of a factor in c."""
        names = [f.name for f in self.factors]
        if name not in names:
            raise InputError(f"no factor named {name!r} (there are: {', '.join(names) or 'none'})")
        return names.index(name)


class IndexedData(FactorData):
    """Abstract: a list of points that can be looked up by their discrete factors."""

    @abstractmethod
    def listing(self) -> tuple[Tensor, Tensor]:
        """Return all points in order, (m, p), and their factors, (m, k)."""

    @final
    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Return a random point for each combination of factors; raise an error if there is none."""
        if (missing := ~self.has(c)).any():
            count = f"{int(missing.sum())} of {len(c)} combinations are missing"
            raise InputError(f"no row of the table has {self.describe(c[missing][0])} ({count})")
        keys, order, first, counts = self._index
        group = torch.searchsorted(keys, self._keys(c))
        pick = (torch.rand(len(c), generator=rng, device=rng.device) * counts[group]).long()
        return self.listing()[0][order[first[group] + pick]]

    @final
    def has(self, c: Tensor) -> Tensor:
        """Return which combinations of factors exist, (n, k) -> (n,)."""
        keys, queries = self._index[0], self._keys(c)
        return keys[torch.searchsorted(keys, queries).clamp(max=len(keys) - 1)] == queries

    @cached_property
    def _index(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the sorted keys, the points sorted by key, and each key's first position and number of points."""
        keys, group = torch.unique(self._keys(self.listing()[1]), return_inverse=True)
        counts = group.bincount(minlength=len(keys))
        return keys, group.argsort(stable=True), counts.cumsum(0) - counts, counts

    def _keys(self, c: Tensor) -> Tensor:
        """Return one number for each combination of discrete factors, (n, k) -> (n,)."""
        key = torch.zeros(len(c), dtype=torch.int64, device=c.device)
        for j, factor in enumerate(self.factors):
            if factor.size is None:
                text = f"factor {factor.name!r} is real-valued: rows of a table cannot be found by it"
                stated = f"state that its values are classes (--data.nominal {factor.name}, in Python kinds=...)"
                raise InputError(f"{text}. Leave it out of the factors, cut it into classes, or {stated}")
            key = key * factor.size + c[:, j].long()
        return key


class Subset(IndexedData):
    """Some points of other data, in order: a training or a test set."""

    def __init__(self, data: FactorData, points: Tensor) -> None:
        self.data, self.points, self.factors, self.shape = data, points, data.factors, data.shape
        self.feature_names, self.reader = data.feature_names, data.reader
        self.scale, self.scaling = data.scale, data.scaling

    def __len__(self) -> int:
        return len(self.points)

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw points of the subset uniformly, with replacement."""
        return self.points[torch.randint(len(self), (n,), generator=rng, device=rng.device)]

    def render(self, points: Tensor) -> Tensor:
        """Return what the underlying data render."""
        return self.data.render(points)

    def labels(self, points: Tensor) -> Tensor:
        """Return the factors in the underlying data."""
        return self.data.labels(points)

    def listing(self) -> tuple[Tensor, Tensor]:
        """Return only the points of the subset, so that held-out points are never located."""
        return self.points, self.labels(self.points)

    def levels(self, j: int) -> Tensor:
        """Return the values that occur in the subset."""
        return torch.unique(self.labels(self.points)[:, j]).long()

    def all_points(self, limit: int) -> Tensor | None:
        """Return all points if there are at most `limit`."""
        return self.points if len(self) <= limit else None


def as_float(x: Tensor) -> Tensor:
    """Return bytes as floats in [0, 1]; floats are unchanged."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x


def split_rows(x: Tensor, rows: int) -> list[Tensor]:
    """Split a tensor into parts of at most max(1, rows) rows."""
    return [x[start : start + max(1, rows)] for start in range(0, len(x), max(1, rows))]
