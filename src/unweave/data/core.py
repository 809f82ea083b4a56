"""What every dataset becomes: named factors, a sampler over points, and a renderer x = g(point)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Self, final

import torch
from torch import Generator, Tensor

from unweave.utils.errors import InputError

Kind = Literal["nominal", "ordinal", "circular", "real"]


@dataclass(frozen=True)
class Factor:
    """One axis of variation. `size` counts the values of a discrete factor and is None for a real-valued one."""

    name: str
    size: int | None = None
    kind: Kind = "real"
    noise: bool = False
    """rendered, but not sought: a score leaves it out"""
    values: tuple[float | str, ...] = ()
    """what the numbers 0, 1, ... of a discrete factor stand for, where that is something else"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if self.size is None and self.kind in ("nominal", "ordinal"):
            raise InputError(f"factor {self.name!r} is {self.kind} and needs a size: how many values has it?")
        if self.size is not None and (self.kind == "real" or self.size < 1):
            raise InputError(f"factor {self.name!r} has kind {self.kind!r} and size {self.size}: use a discrete kind")

    def measured(self, c: Tensor) -> Tensor:
        """What the numbers stand for, to be scored by: ages for ages, numbers for names, (n,) -> (n,)."""
        if not self.values or any(isinstance(value, str) for value in self.values):
            return c
        return torch.tensor(self.values, dtype=torch.float64, device=c.device)[c.long()]


class Sample(NamedTuple):
    """Observations with the factors that made them."""

    x: Tensor  # (n, *shape)
    c: Tensor  # (n, k)


class FactorData(ABC):
    """A two-step process: draw a point, render it.

    A point is whatever addresses one observation, (p,). In a `Grid` or a `Mixing` it is the factors themselves, so
    p = k; in a `Table`, where two rows may share all their labels, it is the row number, so p = 1.
    """

    factors: tuple[Factor, ...]
    shape: tuple[int, ...]

    @abstractmethod
    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw points, (n, p)."""

    @abstractmethod
    def render(self, points: Tensor) -> Tensor:
        """Observations, (..., p) -> (..., *shape); floats, in [0, 1] for images."""

    def labels(self, points: Tensor) -> Tensor:
        """The factors of points, (..., p) -> (..., k)."""
        return points

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Points that have the factors c, (n, k) -> (n, p), and are otherwise `like` these where there is more."""
        return c

    def all_points(self, limit: int) -> Tensor | None:
        """All points in order, (n, p), where the data are a finite sample; None where they are to be drawn from."""
        return None

    def materialize(self) -> FactorData:
        """The same finite sample with its observations made once and kept, where that is cheaper; else itself."""
        return self

    def groups(self, points: Tensor) -> Tensor | None:
        """What must not be torn apart into training and test: the digit of a painted digit, (n, p) -> (n,)."""
        return None

    def levels(self, j: int) -> Tensor:
        """The values that a discrete factor may take here; of colors, say, those of the training set."""
        return torch.arange(self.factors[j].size or 0)

    @final
    def to(self, device: torch.device | str) -> Self:
        """The same data with all that they hold on a device; draw from them with a generator of that device."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor | FactorData):
                setattr(moved, name, value.to(device))
            elif isinstance(value, list) and value and isinstance(value[0], Tensor):
                setattr(moved, name, [part.to(device) for part in value])
        moved.__dict__.pop("_index", None)  # made anew where it is needed
        return moved

    @final
    def draw(self, n: int, rng: Generator) -> Sample:
        """n observations with their factors."""
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
        """A finite training set: n draws, kept."""
        return Subset(self, self.sample(n, rng))

    @final
    def describe(self, c: Tensor) -> str:
        """One combination of factors in words, (k,)."""
        return ", ".join(f"{f.name}={v:g}" for f, v in zip(self.factors, c.tolist(), strict=True))

    @final
    def column(self, name: str) -> int:
        """Where a factor stands in c."""
        names = [f.name for f in self.factors]
        if name not in names:
            raise InputError(f"no factor named {name!r} (there are: {', '.join(names) or 'none'})")
        return names.index(name)


class IndexedData(FactorData):
    """Abstract: a list of points, which can be found by their factors where these are discrete."""

    @abstractmethod
    def listing(self) -> tuple[Tensor, Tensor]:
        """All points in order, (m, p), and their factors, (m, k)."""

    @final
    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """For each combination of factors a random point that has it."""
        missing = ~self.has(c)
        if missing.any():
            text = self.describe(c[missing][0])
            raise InputError(f"no row of the table has {text} ({int(missing.sum())} of {len(c)} asked for miss)")
        known, order, first, counts = self._index
        group = torch.searchsorted(known, self._keys(c))
        pick = (torch.rand(len(c), generator=rng, device=rng.device) * counts[group]).long()
        return self.listing()[0][order[first[group] + pick]]

    @final
    def has(self, c: Tensor) -> Tensor:
        """Which combinations of factors some point has, (n, k) -> (n,)."""
        known, expected = self._index[0], self._keys(c)
        return known[torch.searchsorted(known, expected).clamp(max=len(known) - 1)] == expected

    @cached_property
    def _index(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The keys there are, the points in their order, and each key's first place and number of points."""
        known, group = torch.unique(self._keys(self.listing()[1]), return_inverse=True)
        counts = group.bincount(minlength=len(known))
        return known, group.argsort(stable=True), counts.cumsum(0) - counts, counts

    def _keys(self, c: Tensor) -> Tensor:
        """One number for each combination of discrete factors, (n, k) -> (n,)."""
        key = torch.zeros(len(c), dtype=torch.int64, device=c.device)
        for j, factor in enumerate(self.factors):
            if factor.size is None:
                text = f"factor {factor.name!r} is real-valued: rows of a table cannot be found by it"
                raise InputError(f"{text}; leave it out of the factors, or cut it into classes")
            key = key * factor.size + c[:, j].long()
        return key


class Subset(IndexedData):
    """Some of the points of other data, in order: a training or a test set."""

    def __init__(self, data: FactorData, points: Tensor) -> None:
        self.data, self.points, self.factors, self.shape = data, points, data.factors, data.shape

    def __len__(self) -> int:
        return len(self.points)

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Points of the subset, uniformly and with replacement."""
        return self.points[torch.randint(len(self), (n,), generator=rng, device=rng.device)]

    def render(self, points: Tensor) -> Tensor:
        """As the whole does."""
        return self.data.render(points)

    def labels(self, points: Tensor) -> Tensor:
        """As the whole does."""
        return self.data.labels(points)

    def listing(self) -> tuple[Tensor, Tensor]:
        """The points of the subset alone: what was held out of it is never found."""
        return self.points, self.labels(self.points)

    def levels(self, j: int) -> Tensor:
        """The values that some point has."""
        return torch.unique(self.labels(self.points)[:, j]).long()

    def all_points(self, limit: int) -> Tensor | None:
        """All points, where they are few enough."""
        return self.points if len(self) <= limit else None


def as_float(x: Tensor) -> Tensor:
    """Bytes become floats in [0, 1]; floats stay as they are."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x


def split_rows(x: Tensor, rows: int) -> list[Tensor]:
    """The same rows in parts of so many, at least one each."""
    rows = max(1, rows)
    return [x[start : start + rows] for start in range(0, len(x), rows)]
