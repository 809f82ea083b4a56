"""Data in memory or made by a function: `Grid`, `Table`, `Paired` and `Mixing`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from typing import final

import torch
from torch import Generator, Tensor

from unweave.data.core import Factor, FactorData, IndexedData, as_float, split_rows
from unweave.utils.errors import InputError, plural

MAX_ELEMENTS = 2**28  # cap for a sample that is rendered once and kept in memory: one gigabyte of float32


class Factorial(FactorData):
    """Every combination of discrete factors, the last one running fastest. Abstract: say how row numbers render."""

    def __init__(self, factors: Sequence[Factor], shape: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        sizes = [f.size or 0 for f in factors]
        if 0 in sizes:
            raise InputError(f"a grid needs discrete factors; {factors[sizes.index(0)].name!r} has no size")
        self.factors, self.shape, self.counts = tuple(factors), shape, tuple(sizes)
        self.sizes = torch.tensor(sizes, device=device)
        self.strides = torch.tensor([prod(sizes[i + 1 :]) for i in range(len(sizes))], device=device)

    @abstractmethod
    def rows(self, index: Tensor) -> Tensor:
        """Observations by row number, (...) -> (..., *shape)."""

    def __len__(self) -> int:
        return prod(self.counts)

    @final
    def sample(self, n: int, rng: Generator) -> Tensor:
        """Every factor uniform and independent."""
        columns = [torch.randint(s, (n,), generator=rng, device=rng.device) for s in self.counts]
        return torch.stack(columns, -1)

    @final
    def render(self, points: Tensor) -> Tensor:
        """By row number."""
        return self.rows((points * self.strides).sum(-1))

    @final
    def combinations(self) -> Tensor:
        """All points in order, (rows, k)."""
        return torch.arange(len(self), device=self.sizes.device)[:, None] // self.strides % self.sizes

    @final
    def all_points(self, limit: int) -> Tensor | None:
        """All combinations, where they are few enough."""
        return self.combinations() if len(self) <= limit else None


@final
class Grid(Factorial):
    """A full factorial table in memory, one row per combination; bytes stay bytes."""

    def __init__(self, x: Tensor, factors: Sequence[Factor]) -> None:
        super().__init__(factors, tuple(x.shape[1:]), x.device)
        if len(self) != len(x):
            shape = " x ".join(map(str, self.counts))
            raise InputError(
                f"{plural(len(x), 'row')} cannot fill a grid of {shape} = {len(self):,}: "
                "give every combination once, or use a Table, which needs none"
            )
        self.x = x

    def rows(self, index: Tensor) -> Tensor:
        """The stored rows."""
        return as_float(self.x[index])


class Table(IndexedData):
    """Rows with whatever labels they have: your own arrays, digits, flowers. A point is a row number."""

    def __init__(self, x: Tensor, c: Tensor, factors: Sequence[Factor]) -> None:
        if len(x) != len(c) or c.ndim != 2 or c.shape[1] != len(factors):
            raise InputError(
                f"{plural(len(x), 'row')} of data with factors of shape {tuple(c.shape)} and "
                f"{plural(len(factors), 'name')}: expected one row of factors per row of data, one column per name"
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

    def listing(self) -> tuple[Tensor, Tensor]:
        """The row numbers, and the labels."""
        return torch.arange(len(self), device=self.c.device)[:, None], self.c

    def levels(self, j: int) -> Tensor:
        """The values that some row has."""
        return torch.unique(self.c[:, j]).long()

    def all_points(self, limit: int) -> Tensor | None:
        """Every row: a user's data are never thinned out in silence."""
        return torch.arange(len(self), device=self.x.device)[:, None]


@final
class Paired(Table):
    """A table in two halves: row i of the first and of the second are a pair, which differs in some factors."""

    def __init__(self, x: Tensor, c: Tensor, factors: Sequence[Factor], changed: Tensor) -> None:
        super().__init__(x, c, factors)
        if 2 * len(changed) != len(x):
            raise InputError(f"{plural(len(x), 'row')} for {plural(len(changed), 'pair')}: expected two for each")
        self.changed = changed  # (pairs,): in how many factors each differs

    def groups(self, points: Tensor) -> Tensor | None:
        """A pair is either trained on or tested on."""
        return points[:, 0] % len(self.changed)

    def partner(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """The other half of each pair, (n, 1), and in how many factors it differs, (n,)."""
        return (points + len(self.changed)) % len(self), self.changed[points[:, 0] % len(self.changed)]


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

    def all_points(self, limit: int) -> Tensor | None:
        """The finite sample, if there is one."""
        return self.sources

    def materialize(self) -> FactorData:
        """A table of the finite sample, if it fits into memory."""
        if self.sources is None or len(self.sources) * prod(self.shape) > MAX_ELEMENTS:
            return self
        parts = split_rows(
            self.sources, MAX_ELEMENTS // 100 // prod(self.shape)
        )  # what it takes to mix may be much more
        return Table(torch.cat([self.render(part) for part in parts]), self.labels(self.sources), self.factors)
