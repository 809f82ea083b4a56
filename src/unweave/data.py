"""What every dataset becomes: named factors, a sampler over points, and a renderer x = g(point)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from torch import Generator, Tensor

from .errors import InputError, plural

Kind = Literal["nominal", "ordinal", "circular", "real"]


@dataclass(frozen=True)
class Factor:
    """One axis of variation. `size` counts the values of a discrete factor and is None for a real-valued one."""

    name: str
    size: int | None = None
    kind: Kind = "real"
    noise: bool = False
    """rendered, but not sought: a score leaves it out"""

    def __post_init__(self) -> None:
        if self.size is None and self.kind in ("nominal", "ordinal"):
            raise InputError(f"factor {self.name!r} is {self.kind} and needs a size: how many values has it?")
        if self.size is not None and (self.kind == "real" or self.size < 1):
            raise InputError(f"factor {self.name!r} has kind {self.kind!r} and size {self.size}: use a discrete kind")


class Draw(NamedTuple):
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

    def locate(self, c: Tensor, rng: Generator) -> Tensor:
        """Points that have the factors c, (n, k) -> (n, p)."""
        return c

    def observed(self, limit: int) -> Tensor | None:
        """All points in order, (n, p), where the data are a finite sample; None where they are to be drawn from."""
        return None

    @final
    def draw(self, n: int, rng: Generator) -> Draw:
        """n observations with their factors."""
        points = self.sample(n, rng)
        return Draw(self.render(points), self.labels(points))

    @final
    def collect(self, limit: int, rng: Generator) -> Draw:
        """A finite sample whole and in order; otherwise `limit` draws."""
        points = self.observed(limit)
        if points is None:
            points = self.sample(limit, rng)
        return Draw(self.render(points), self.labels(points))

    @final
    def column(self, name: str) -> int:
        """Where a factor stands in c."""
        names = [f.name for f in self.factors]
        if name not in names:
            raise InputError(f"no factor named {name!r} (there are: {', '.join(names) or 'none'})")
        return names.index(name)


class Grid(FactorData):
    """Every combination of discrete factors, one row each, the last factor running fastest; bytes stay bytes."""

    def __init__(self, x: Tensor, factors: Sequence[Factor]) -> None:
        sizes = [f.size or 0 for f in factors]
        if 0 in sizes:
            raise InputError(f"a grid needs discrete factors; {factors[sizes.index(0)].name!r} has no size")
        if prod(sizes) != len(x):
            shape = " x ".join(map(str, sizes))
            raise InputError(
                f"{plural(len(x), 'row')} cannot fill a grid of {shape} = {prod(sizes):,}: "
                "give every combination once, or use a Table, which needs none"
            )
        self.x, self.factors, self.shape = x, tuple(factors), tuple(x.shape[1:])
        self._sizes = torch.tensor(sizes, device=x.device)
        self._strides = torch.tensor([prod(sizes[i + 1 :]) for i in range(len(sizes))], device=x.device)

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Every factor uniform and independent."""
        columns = [torch.randint(int(s), (n,), generator=rng, device=rng.device) for s in self._sizes.tolist()]
        return torch.stack(columns, -1)

    def render(self, points: Tensor) -> Tensor:
        """The stored rows."""
        return as_float(self.x[(points * self._strides).sum(-1)])

    def observed(self, limit: int) -> Tensor | None:
        """The whole grid, where it is small enough."""
        if len(self) > limit:
            return None
        rows = torch.arange(len(self), device=self.x.device)[:, None]
        return rows // self._strides % self._sizes


class Table(FactorData):
    """Rows with whatever labels they have: your own arrays, digits, flowers. A point is a row number."""

    def __init__(self, x: Tensor, c: Tensor, factors: Sequence[Factor]) -> None:
        if len(x) != len(c) or c.ndim != 2 or c.shape[1] != len(factors):
            raise InputError(
                f"{plural(len(x), 'row')} of data with factors of shape {tuple(c.shape)} and "
                f"{plural(len(factors), 'name')}: wanted one row of factors per row of data, one column per name"
            )
        self.x, self.c, self.factors, self.shape = x, c, tuple(factors), tuple(x.shape[1:])

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Rows, uniformly and with replacement."""
        return torch.randint(len(self), (n, 1), generator=rng, device=rng.device)

    def render(self, points: Tensor) -> Tensor:
        """The stored rows."""
        return as_float(self.x[points[..., 0]])

    def labels(self, points: Tensor) -> Tensor:
        """The rows' labels."""
        return self.c[points[..., 0]]

    def locate(self, c: Tensor, rng: Generator) -> Tensor:
        """For each combination of factors a random row that has it."""
        known, group = torch.unique(self.c, dim=0, return_inverse=True)  # (g, k), (rows,)
        everything, wanted = torch.unique(torch.cat([known, c.to(known)]), dim=0, return_inverse=True)
        to_group = torch.full((len(everything),), -1, device=c.device)
        to_group[wanted[: len(known)]] = torch.arange(len(known), device=c.device)
        group_of = to_group[wanted[len(known) :]]  # (n,)
        if (group_of < 0).any():
            missing = c[group_of < 0][0].tolist()
            text = ", ".join(f"{f.name}={v:g}" for f, v in zip(self.factors, missing, strict=True))
            raise InputError(f"no row of the table has {text} ({int((group_of < 0).sum())} of {len(c)} asked for miss)")
        order, counts = group.argsort(stable=True), group.bincount(minlength=len(known))
        first = counts.cumsum(0) - counts
        pick = (torch.rand(len(c), generator=rng, device=rng.device) * counts[group_of]).long()
        return order[first[group_of] + pick][:, None]

    def observed(self, limit: int) -> Tensor | None:
        """Every row: a user's data are never thinned out in silence."""
        return torch.arange(len(self), device=self.x.device)[:, None]


class Mixing(FactorData):
    """Sources from `prior`, pushed through the map `mix`. With `points`, a finite sample of that many sources."""

    def __init__(
        self,
        factors: Sequence[Factor],
        shape: tuple[int, ...],
        prior: Callable[[int, Generator], Tensor],
        mix: Callable[[Tensor], Tensor],
        *,
        points: int | None = None,
        seed: int = 0,
    ) -> None:
        if points is not None and points < 1:
            raise InputError(f"points={points}: a sample needs at least one point")
        self.factors, self.shape, self.prior, self.mix = tuple(factors), shape, prior, mix
        self.sources = None if points is None else prior(points, Generator().manual_seed(seed))  # (points, k)

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Sources of the finite sample, or fresh ones from the prior."""
        if self.sources is None:
            return self.prior(n, rng)
        return self.sources[torch.randint(len(self.sources), (n,), generator=rng, device=rng.device)]

    def render(self, points: Tensor) -> Tensor:
        """Mix; any sources will do, those of the sample or others."""
        return self.mix(points)

    def observed(self, limit: int) -> Tensor | None:
        """The finite sample, if there is one."""
        return self.sources


def as_float(x: Tensor) -> Tensor:
    """Bytes become floats in [0, 1]; floats stay as they are."""
    return x.float() / 255 if x.dtype == torch.uint8 else x


def as_data(X: Any, y: Any = None) -> FactorData:
    """What users have, as `FactorData`: an array becomes a `Table`, the columns of y (n,) or (n, k) its factors.

    Whole numbers and text in y are classes, floats are real-valued factors; a DataFrame brings its names.
    """
    if isinstance(X, FactorData):
        return X
    array = np.asarray(X)
    x = torch.from_numpy(array if array.flags.writeable else array.copy())
    if x.ndim < 2:
        raise InputError(f"data of shape {tuple(x.shape)}: wanted one row per observation, (n, d) or (n, ..., h, w)")
    x = x if x.is_floating_point() or x.dtype == torch.uint8 else x.double()
    coded = [_coded(name, column) for name, column in _columns(y)]
    c = np.stack([values for values, _ in coded], 1) if coded else np.zeros((len(x), 0))
    return Table(x, torch.as_tensor(c), [factor for _, factor in coded])


def _columns(y: Any) -> list[tuple[str, np.ndarray]]:
    """The columns of labels with their names: a DataFrame's own, or y1, y2, ..."""
    if y is None:
        return []
    if hasattr(y, "columns"):
        return [(str(name), y[name].to_numpy()) for name in y.columns]
    array = np.asarray(y)
    if array.ndim == 1:
        return [("y", array)]
    return [(f"y{i + 1}", column) for i, column in enumerate(array.reshape(len(array), -1).T)]


def _coded(name: str, column: np.ndarray) -> tuple[np.ndarray, Factor]:
    """Real values as they are, classes as numbers from zero, in float64, which holds both exactly."""
    if column.dtype.kind == "f":
        check_finite(column[:, None], [name], what="factor")
        return column.astype(np.float64), Factor(name)
    classes, index = np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)
    kind: Kind = "nominal" if column.dtype.kind in "OSUb" else "ordinal"
    return index.astype(np.float64), Factor(name, len(classes), kind)


def check_finite(x: np.ndarray, names: Sequence[str] | None = None, *, what: str = "Input X") -> None:
    """Refuse NaN and infinite values, and say where the first one is."""
    if x.dtype.kind not in "fc":
        return
    bad = ~np.isfinite(x)
    if not bad.any():
        return
    row, *rest = (int(i) for i in np.argwhere(bad)[0])
    kind = "NaN" if np.isnan(x[(row, *rest)]) else "infinity"
    place = f"column {rest[0]}" if len(rest) == 1 else f"position {tuple(rest)}"
    if names is not None and len(rest) == 1:
        place = f"column {names[rest[0]]!r}"
    raise InputError(
        f"{what} contains {kind}: first in row {row}, {place}; {plural(int(bad.sum()), 'value')} that are NaN or "
        f"infinite in {plural(int(bad.reshape(len(x), -1).any(1).sum()), 'row')}. Drop those rows or fill the gaps."
    )
