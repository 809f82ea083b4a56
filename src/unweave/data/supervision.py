"""What a method may see of the data: plans of points, drawn before any pixel exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from unweave.data.augment import COMBINATIONS, KINDS, draw_affine
from unweave.data.containers import Factorial, Paired, Table
from unweave.data.core import FactorData, IndexedData, Subset
from unweave.data.splits import Correlated
from unweave.utils.errors import InputError


class Plan(NamedTuple):
    """What a training step will look at."""

    views: dict[str, Tensor]
    """points to render, (n, p) each"""
    extras: dict[str, Tensor] = {}  # noqa: RUF012 (a NamedTuple's default is never mutated)
    """passed to the loss as they are, (n, ...) each"""


Supervision = Callable[[FactorData, int, Generator], Plan]


def single(data: FactorData, n: int, rng: Generator) -> Plan:
    """Observations alone."""
    return Plan({"x": data.sample(n, rng)})


def label_column(data: FactorData, factor: str | None = None) -> int:
    """The column of the factor that is the class: the first discrete one unless named."""
    if factor is None:
        discrete = [f.name for f in data.factors if f.size is not None]
        if not discrete:
            names = ", ".join(f.name for f in data.factors) or "none"
            text = f"labels are needed, and no factor is discrete (there are: {names})"
            raise InputError(f"{text}; pass classes as y, or name a column by --data.factors")
        factor = discrete[0]
    column = data.column(factor)
    if data.factors[column].size is None:
        raise InputError(f"factor {factor!r} is real-valued and cannot be a label; name a discrete one")
    return column


def labeled(data: FactorData, n: int, rng: Generator, *, factor: str | None = None) -> Plan:
    """Observations with one discrete factor as their class u, (n,); the first discrete factor unless named."""
    column = label_column(data, factor)
    points = data.sample(n, rng)
    return Plan({"x": points}, {"u": data.labels(points)[:, column].long()})


def augmented(
    data: FactorData, n: int, rng: Generator, *, along: Sequence[str], copies: int = 10, spread: float = 1.0
) -> Plan:
    """Each point as a set of `copies`, moved by Gaussian noise along chosen latent dimensions.

    Self-supervised GIN, Sec. 4.2: "adding a standard Gaussian noise to its latent variables along the chosen
    dimensions". The copies of one point stand together; `origin`, (n * copies,), says which point they came from.
    """
    columns = [data.column(name) for name in along]
    if isinstance(_source(data), Factorial | Table) or any(data.factors[j].size is not None for j in columns):
        raise InputError("augmentation along factors needs data that can be rendered at any real value of them")
    points = data.sample(n, rng).repeat_interleave(copies, 0)  # (n * copies, p)
    moves = torch.randn(len(points), len(columns), generator=rng, device=rng.device)
    points[:, columns] += spread * moves.to(points)
    return Plan({"x": points}, {"origin": torch.arange(n, device=rng.device).repeat_interleave(copies)})


def transformed(
    data: FactorData, n: int, rng: Generator, *, kinds: Sequence[str] = KINDS, copies: int | None = None
) -> Plan:
    """Each image as a set: itself, and moved, turned, scaled in all combinations of these `kinds`.

    Self-supervised GIN, Sec. 4.3 and Appendix B: three kinds and eight images. More `copies` go through all of them
    again. The set of one image stands together; `theta`, (n * copies, 2, 3), is to be given to `augment.warp` with the
    rendered images, `origin`, (n * copies,), says which image they came from.
    """
    chosen = [combination for combination in COMBINATIONS if set(combination) <= set(kinds)]
    count = len(chosen) + 1 if copies is None else copies
    aspect = data.shape[-1] / data.shape[-2]
    still = draw_affine(n, rng, ())
    moved = [draw_affine(n, rng, chosen[i % len(chosen)], aspect=aspect) for i in range(count - 1)]
    theta = torch.stack([still, *moved], 1)  # (n, copies, 2, 3)
    points = data.sample(n, rng).repeat_interleave(count, 0)
    origin = torch.arange(n, device=rng.device).repeat_interleave(count)
    return Plan({"x": points}, {"theta": theta.flatten(0, 1), "origin": origin})


def pairs(
    data: FactorData,
    n: int,
    rng: Generator,
    *,
    k: int | tuple[int, int] | Literal["uniform"] = 1,
    among: Sequence[str] | None = None,
    redraw: Literal["other", "any"] = "other",
    alone: Literal["error", "self"] = "error",
) -> Plan:
    """Two observations x, x2 that share all but k factors, and how many were changed, `k`, (n,).

    The k factors are a uniformly random subset of those in `among` (all, unless named; leave out the label to pair by
    label). `redraw="other"` gives each a different value, as swap+contrast does ("randomly change the value of k
    elements", Sec. 3.2); `redraw="any"` draws from the factor's own distribution, which may hit the old value, as
    Locatello et al. (2020) do. `k=(1, 3)` draws k from 1, 2, 3 for each pair, `k="uniform"` from 1, ..., (factors - 1);
    k = 0 gives another observation with the same factors. What is no factor, as the handwriting of a painted digit, is
    shared too where the data can do that. Of data that are pairs, pairs are drawn as they are.

    A table, and a training set that was split off, may lack combinations. Then a pair whose second half is not there
    is drawn anew, and at last looked for among all rows, so that pairs follow the rows there are and never reach what
    was held out; a row without a partner is named in an error, or paired with itself (`alone="self"`). Where factors
    were correlated, x follows the joint distribution; x2 need not, since its changed factors are drawn by themselves.
    """
    a = data.sample(n, rng)
    own = paired(data)
    if own is not None:
        other, changed = own.partner(a)
        return Plan({"x": a, "x2": other}, {"k": changed})
    c = data.labels(a)
    free = [data.column(name) for name in among] if among is not None else list(range(c.shape[1]))
    if redraw not in ("other", "any"):
        raise InputError(f"redraw={redraw!r}: expected 'other' or 'any'")
    if k == "uniform" and len(free) < 2:
        raise InputError(f"k='uniform' needs at least two factors that can change; there are {len(free)}")
    low, high = (1, len(free) - 1) if k == "uniform" else (k, k) if isinstance(k, int) else k
    if not 0 <= low <= high <= len(free):
        raise InputError(f"pairs that differ in k={k} factors: {len(free)} can change, so k must be 0 to {len(free)}")
    c2, changed = _changed(data, c, free, (low, high), redraw, rng)
    rows = data.data if isinstance(data, Correlated) else data
    if isinstance(rows, IndexedData):
        for _ in range(20):
            missing = ~rows.has(c2)
            if not missing.any():
                break
            c2[missing], changed[missing] = _changed(data, c[missing], free, (low, high), redraw, rng)
        for i in (~rows.has(c2)).nonzero()[:, 0].tolist():  # few are left: look through all rows for a partner
            c2[i], changed[i] = _partner(rows, c[i], free, (low, high), rng, alone)
    return Plan({"x": a, "x2": rows.locate(c2, rng, a if high else None)}, {"k": changed})


def _partner(
    rows: IndexedData, c: Tensor, free: list[int], k: tuple[int, int], rng: Generator, alone: str
) -> tuple[Tensor, Tensor]:
    """The factors of a random row that differs from c (k,) in so many of the free factors and in no other; how many."""
    every = rows.listing()[1]
    differs = every != c
    count = differs.sum(1)
    fixed = [j for j in range(len(c)) if j not in free]
    fits = ~differs[:, fixed].any(1) & (count >= k[0]) & (count <= k[1])
    found = fits.nonzero()[:, 0]
    if len(found) == 0 and alone == "self":
        return c, count.new_zeros(())
    if len(found) == 0:
        text = f"no row differs from the one with {rows.describe(c)} in exactly k={k[0]} factors"
        text = text if k[0] == k[1] else text.replace(f"exactly k={k[0]}", f"k={k[0]} to {k[1]}")
        raise InputError(f"{text} and shares the others; take another k, or other rows")
    chosen = found[torch.randint(len(found), (1,), generator=rng, device=rng.device)][0]
    return every[chosen], count[chosen]


def _changed(
    data: FactorData, c: Tensor, free: list[int], k: tuple[int, int], redraw: str, rng: Generator
) -> tuple[Tensor, Tensor]:
    """Factors c (n, factors) with some of the free ones redrawn, and how many, (n,)."""
    n = len(c)
    if k[0] < k[1]:
        count = torch.randint(k[0], k[1] + 1, (n,), generator=rng, device=rng.device)
    else:  # nothing to draw
        count = torch.full((n,), k[0], device=rng.device)
    rank = torch.rand(n, len(free), generator=rng, device=rng.device).argsort(-1).argsort(-1)
    chosen = torch.zeros(c.shape, dtype=torch.bool, device=c.device)
    chosen[:, free] = rank < count[:, None]
    return torch.where(chosen, _redrawn(data, c, free, redraw, rng), c), count


def _redrawn(data: FactorData, c: Tensor, free: list[int], redraw: str, rng: Generator) -> Tensor:
    """The free factors drawn anew, (n, factors); a random step around the circle of values never meets the old one."""
    fresh = data.labels(data.sample(len(c), rng)).clone()
    for j in free if redraw == "other" else ():
        if data.factors[j].size is None:
            continue  # two draws of a real-valued factor differ with probability one
        levels = data.levels(j).to(c.device)
        if len(levels) < 2:
            name = data.factors[j].name
            raise InputError(f"factor {name!r} has one value only and cannot change: leave it out of the pairs")
        step = torch.randint(1, len(levels), (len(c),), generator=rng, device=rng.device)
        place = torch.searchsorted(levels, c[:, j].to(levels).contiguous())
        fresh[:, j] = levels[(place + step) % len(levels)].to(fresh)
    return fresh


def paired(data: FactorData) -> Paired | None:
    """The pairs that data are made of, if they are."""
    source = _source(data)
    return source if isinstance(source, Paired) else None


def _source(data: FactorData) -> FactorData:
    """What lies below subsets and correlated views."""
    while isinstance(data, Subset | Correlated):
        data = data.data
    return data
