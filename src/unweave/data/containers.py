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
    """Abstract: all combinations of discrete factors in row-major order (the last factor changes fastest)."""

    def __init__(self, factors: Sequence[Factor], shape: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        sizes = [f.size or 0 for f in factors]
        if 0 in sizes:
            raise InputError(f"a grid needs discrete factors; {factors[sizes.index(0)].name!r} has no size")
        self.factors, self.shape, self.counts = tuple(factors), shape, tuple(sizes)
        self.sizes = torch.tensor(sizes, device=device)
        self.strides = torch.tensor([prod(sizes[i + 1 :]) for i in range(len(sizes))], device=device)

    @abstractmethod
    def rows(self, index: Tensor) -> Tensor:
        """Return observations by row number, (...) -> (..., *shape)."""

    def __len__(self) -> int:
        return prod(self.counts)

    @final
    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw all factors uniformly and independently."""
        columns = [torch.randint(s, (n,), generator=rng, device=rng.device) for s in self.counts]
        return torch.stack(columns, -1)

    @final
    def render(self, points: Tensor) -> Tensor:
        """Return the observations of combinations, by row number."""
        return self.rows((points * self.strides).sum(-1))

    @final
    def combinations(self) -> Tensor:
        """Return all points in order, (rows, k)."""
        return torch.arange(len(self), device=self.sizes.device)[:, None] // self.strides % self.sizes

    @final
    def all_points(self, limit: int) -> Tensor | None:
        """Return all combinations if there are at most `limit`."""
        return self.combinations() if len(self) <= limit else None


@final
class Grid(Factorial):
    """A full factorial table in memory, one row per combination; bytes stay bytes.

    Example:
        >>> grid = Grid(torch.rand(6, 4), [Factor("a", 2, "ordinal"), Factor("b", 3, "ordinal")])
        >>> len(grid), grid.combinations().shape
        (6, torch.Size([6, 2]))
    """

    def __init__(self, x: Tensor, factors: Sequence[Factor]) -> None:
        super().__init__(factors, tuple(x.shape[1:]), x.device)
        if len(self) != len(x):
            shape = " x ".join(map(str, self.counts))
            raise InputError(
                f"{plural(len(x), 'row')} cannot fill a grid of {shape} = {len(self):,}: "
                "give every combination once, or use a Table, which may lack some"
            )
        self.x = x

    def rows(self, index: Tensor) -> Tensor:
        """Return the stored rows."""
        return as_float(self.x[index])


class Table(IndexedData):
    """Rows with arbitrary labels, such as your own arrays. A point is a row number.

    Example:
        >>> table = Table(torch.rand(10, 3), torch.zeros(10, 1), [Factor("label", 2, "nominal")])
        >>> len(table), table.shape
        (10, (3,))
    """

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
        """Draw rows uniformly, with replacement."""
        return torch.randint(len(self), (n, 1), generator=rng, device=rng.device)

    def render(self, points: Tensor) -> Tensor:
        """Return the stored rows."""
        return as_float(self.x[points[..., 0]])

    def labels(self, points: Tensor) -> Tensor:
        """Return the labels of rows."""
        return self.c[points[..., 0]]

    def listing(self) -> tuple[Tensor, Tensor]:
        """Return the row numbers and the labels."""
        return torch.arange(len(self), device=self.c.device)[:, None], self.c

    def levels(self, j: int) -> Tensor:
        """Return the values that occur in the rows."""
        return torch.unique(self.c[:, j]).long()

    def all_points(self, limit: int) -> Tensor | None:
        """Return every row, whatever the limit: a user's data are never subsampled silently."""
        return torch.arange(len(self), device=self.x.device)[:, None]


@final
class Paired(Table):
    """A table in two halves: row i of both halves is a pair that differs in some factors."""

    def __init__(self, x: Tensor, c: Tensor, factors: Sequence[Factor], changed: Tensor) -> None:
        super().__init__(x, c, factors)
        if 2 * len(changed) != len(x):
            raise InputError(f"{plural(len(x), 'row')} for {plural(len(changed), 'pair')}: expected two for each")
        self.changed = changed  # (pairs,): number of factors in which a pair differs

    def groups(self, points: Tensor) -> Tensor | None:
        """Return the pair of each row, so that a split keeps pairs together."""
        return points[:, 0] % len(self.changed)

    def partner(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the other half of each pair, (n, 1), and the number of factors in which it differs, (n,)."""
        return (points + len(self.changed)) % len(self), self.changed[points[:, 0] % len(self.changed)]


class Mixing(FactorData):
    """Sources from `prior`, mapped to observations by `mix`; with `points`, a finite sample of that many sources.

    Example:
        >>> prior = lambda n, rng: torch.rand(n, 2, generator=rng)
        >>> data = Mixing([Factor("a"), Factor("b")], (2,), prior, lambda z: z**3, points=100)
        >>> data.all_points(100).shape
        torch.Size([100, 2])
    """

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
        """Draw sources of the finite sample, or new ones from the prior."""
        if self.sources is None:
            return self.prior(n, rng)
        return self.sources[torch.randint(len(self.sources), (n,), generator=rng, device=rng.device)]

    def render(self, points: Tensor) -> Tensor:
        """Mix any sources, those of the sample or others."""
        return self.mix(points)

    def all_points(self, limit: int) -> Tensor | None:
        """Return the finite sample, if there is one, whatever the limit."""
        return self.sources

    def materialize(self) -> FactorData:
        """Return a table of the finite sample if it fits into memory."""
        if self.sources is None or len(self.sources) * prod(self.shape) > MAX_ELEMENTS:
            return self
        parts = split_rows(
            self.sources, MAX_ELEMENTS // 100 // prod(self.shape)
        )  # what it takes to mix may be much more
        return Table(torch.cat([self.render(part) for part in parts]), self.labels(self.sources), self.factors)
