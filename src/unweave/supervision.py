"""What a method may see of the data: plans of points, drawn before any pixel exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from .data import FactorData, Grid, Table
from .errors import InputError


class Plan(NamedTuple):
    """What a training step will look at."""

    views: dict[str, Tensor]
    """points to render, (n, p) each"""
    given: dict[str, Tensor] = {}  # noqa: RUF012 (a NamedTuple's default is never mutated)
    """passed to the loss as they are, (n, ...) each"""


Supervision = Callable[[FactorData, int, Generator], Plan]


def single(data: FactorData, n: int, rng: Generator) -> Plan:
    """Observations alone."""
    return Plan({"x": data.sample(n, rng)})


def labelled(data: FactorData, n: int, rng: Generator, *, factor: str | None = None) -> Plan:
    """Observations with one discrete factor as their class u, (n,); the first discrete factor unless named."""
    if factor is None:
        discrete = [f.name for f in data.factors if f.size is not None]
        if not discrete:
            names = ", ".join(f.name for f in data.factors) or "none"
            raise InputError(f"labels are needed, and no factor is discrete (there are: {names}); pass classes as y")
        factor = discrete[0]
    points = data.sample(n, rng)
    return Plan({"x": points}, {"u": data.labels(points)[:, data.column(factor)].long()})


def augmented(
    data: FactorData, n: int, rng: Generator, *, along: Sequence[str], copies: int = 10, spread: float = 1.0
) -> Plan:
    """Each point as a set of `copies`, moved by Gaussian noise along chosen latent dimensions.

    Self-supervised GIN, Sec. 4.2: "adding a standard Gaussian noise to its latent variables along the chosen
    dimensions". The copies of one point stand together; `origin`, (n * copies,), says which point they came from.
    """
    columns = [data.column(name) for name in along]
    if isinstance(data, Grid | Table) or any(data.factors[j].size is not None for j in columns):
        raise InputError("augmentation along factors needs data that can be rendered at any real value of them")
    points = data.sample(n, rng).repeat_interleave(copies, 0)  # (n * copies, p)
    moves = torch.randn(len(points), len(columns), generator=rng, device=rng.device)
    points[:, columns] += spread * moves.to(points)
    return Plan({"x": points}, {"origin": torch.arange(n, device=rng.device).repeat_interleave(copies)})


def pairs(
    data: FactorData,
    n: int,
    rng: Generator,
    *,
    k: int | Literal["uniform"] = 1,
    redraw: Literal["other", "any"] = "other",
) -> Plan:
    """Two observations x, x2 that share all but k factors, and how many were changed, `k`, (n,).

    The k factors are a uniformly random subset. `redraw="other"` gives each a different value, as swap+contrast does
    ("randomly change the value of k elements", Sec. 3.2); `redraw="any"` draws from the factor's own distribution,
    which may hit the old value, as Locatello et al. (2020) do. `k="uniform"` draws k from 1, ..., (factors - 1) for
    each pair. On a `Table`, x2 is a random row that has the wanted factors and an error says which are missing.
    """
    a = data.sample(n, rng)
    c = data.labels(a)
    factors = c.shape[1]
    if factors < 1 or (k != "uniform" and not 1 <= k <= factors):
        raise InputError(f"pairs that differ in k={k} factors: the data have {factors}, so k must be 1 to {factors}")
    if k == "uniform":
        changed = torch.randint(1, max(factors, 2), (n,), generator=rng, device=rng.device)
    else:
        changed = torch.full((n,), k, device=rng.device)
    rank = torch.rand(n, factors, generator=rng, device=rng.device).argsort(-1).argsort(-1)
    c2 = torch.where(rank < changed[:, None], _redrawn(data, c, rng, redraw), c)
    return Plan({"x": a, "x2": data.locate(c2, rng)}, {"k": changed})


def _redrawn(data: FactorData, c: Tensor, rng: Generator, redraw: str) -> Tensor:
    """Every factor drawn anew, (n, k): a uniform step around the circle of its values never meets the old one."""
    if redraw == "any":
        return data.labels(data.sample(len(c), rng))
    fresh = data.labels(data.sample(len(c), rng)).clone()
    for j, factor in enumerate(data.factors):
        if factor.size is None:
            continue  # two draws of a real-valued factor differ with probability one
        if factor.size < 2:
            raise InputError(f"factor {factor.name!r} has one value only and cannot change: leave it out of the pairs")
        step = torch.randint(1, factor.size, (len(c),), generator=rng, device=rng.device)
        fresh[:, j] = (c[:, j] + step.to(c)) % factor.size
    return fresh


class Correlated(FactorData):
    """The same observations, drawn so that two discrete factors follow a joint distribution, (size_a, size_b)."""

    def __init__(self, data: Grid | Table, factors: tuple[str, str], joint: Tensor) -> None:
        self.data, self.factors, self.shape = data, data.factors, data.shape
        self._a, self._b = (data.column(name) for name in factors)
        sizes = (data.factors[self._a].size, data.factors[self._b].size)
        if tuple(joint.shape) != sizes or None in sizes:
            raise InputError(f"a joint of shape {tuple(joint.shape)} for factors of sizes {sizes}: wanted the same")
        if not torch.isfinite(joint).all() or (joint < 0).any() or joint.sum() <= 0:
            raise InputError("a joint distribution needs finite weights that are not negative, and not all zero")
        self.joint = joint / joint.sum()

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Resample: the two factors from the joint, everything else as the data have it given them."""
        if isinstance(self.data, Grid):
            points = self.data.sample(n, rng)
            cells = torch.multinomial(self.joint.flatten(), n, replacement=True, generator=rng)
            points[:, self._a], points[:, self._b] = cells // self.joint.shape[1], cells % self.joint.shape[1]
            return points
        cell = self.data.c[:, self._a].long() * self.joint.shape[1] + self.data.c[:, self._b].long()  # (rows,)
        counts = cell.bincount(minlength=self.joint.numel()).clamp(min=1)
        weights = (self.joint.flatten().double() / counts)[cell]
        if weights.sum() <= 0:
            raise InputError("no row of the table lies where the joint distribution has weight")
        return torch.multinomial(weights, n, replacement=True, generator=rng)[:, None]

    def render(self, points: Tensor) -> Tensor:
        """As the data do."""
        return self.data.render(points)

    def labels(self, points: Tensor) -> Tensor:
        """As the data do."""
        return self.data.labels(points)

    def locate(self, c: Tensor, rng: Generator) -> Tensor:
        """As the data do."""
        return self.data.locate(c, rng)


def correlated(
    data: FactorData, factors: tuple[str, str], *, joint: Tensor | None = None, strength: float | None = None
) -> Correlated:
    """Make two factors of discrete data dependent: by a `joint` table, or by `strength`.

    Strength s gives p(a, b) ~ exp(-(a - b)^2 / 2 s^2) with a and b scaled to [0, 1], the form of Traeuble et al.
    (2021): the smaller, the more correlated.
    """
    if not isinstance(data, Grid | Table):
        raise InputError(f"correlated factors need a Grid or a Table to resample, not a {type(data).__name__}")
    sizes = [data.factors[data.column(name)].size for name in factors]
    if None in sizes:
        raise InputError(f"factors {factors} must both be discrete")
    if (joint is None) == (strength is None):
        raise InputError("say either joint=... or strength=...")
    if joint is None:
        if not strength or strength <= 0:
            raise InputError(f"strength={strength}: wanted a positive number (0.1 is strong, 1 is weak)")
        a, b = (torch.linspace(0, 1, int(s or 1), dtype=torch.float64) for s in sizes)
        joint = torch.exp(-((a[:, None] - b) ** 2) / (2 * strength**2))
    return Correlated(data, factors, torch.as_tensor(joint))
