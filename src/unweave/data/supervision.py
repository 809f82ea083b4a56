"""Supervision: which points a method sees together, planned before anything is rendered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from unweave.data.augment import COMBINATIONS, KINDS, draw_affine
from unweave.data.containers import Factorial, LabeledRows, Paired
from unweave.data.core import FactorData, IndexedData, Subset
from unweave.data.scaling import ScaledData
from unweave.data.splits import Correlated
from unweave.utils.errors import InputError


class Plan(NamedTuple):
    """The points and labels of n observations, for one or many steps."""

    views: dict[str, Tensor]
    """Points to render, (n, p) each."""
    extras: dict[str, Tensor] = {}  # noqa: RUF012 (a NamedTuple's default is never mutated)
    """Tensors that the loss gets as they are, (n, ...) each."""


Supervision = Callable[[FactorData, int, Generator], Plan]
MAX_REDRAWS = 20  # of pairs whose second half is missing, before all rows are searched


def single(data: FactorData, n: int, rng: Generator) -> Plan:
    """Draw observations x without labels."""
    return Plan({"x": data.sample(n, rng)})


def label_column(data: FactorData, factor: str | None = None) -> int:
    """Return the column of the class: the named factor, or the first discrete one."""
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
    """Draw observations x with a discrete factor as their class u, (n,); the first discrete factor unless named."""
    column = label_column(data, factor)
    points = data.sample(n, rng)
    return Plan({"x": points}, {"u": data.labels(points)[:, column].long()})


def augmented(
    data: FactorData, n: int, rng: Generator, *, along: Sequence[str], copies: int = 10, spread: float = 1.0
) -> Plan:
    """Draw n points, each as a set of `copies` with Gaussian noise along chosen latent dimensions.

    Self-supervised GIN, Sec. 4.2: "adding a standard Gaussian noise to its latent variables along the chosen
    dimensions". The copies of one point are consecutive; `origin`, (n * copies,), is the number of their point.
    """
    columns = [data.column(name) for name in along]
    if isinstance(_source(data), Factorial | LabeledRows) or any(data.factors[j].size is not None for j in columns):
        raise InputError("augmentation along factors needs data that can be rendered at any real value of them")
    points = data.sample(n, rng).repeat_interleave(copies, 0)  # (n * copies, p)
    noise = torch.randn(len(points), len(columns), generator=rng, device=rng.device)
    points[:, columns] += spread * noise.to(points)
    return Plan({"x": points}, {"origin": torch.arange(n, device=rng.device).repeat_interleave(copies)})


def transformed(
    data: FactorData, n: int, rng: Generator, *, kinds: Sequence[str] = KINDS, copies: int | None = None
) -> Plan:
    """Draw n images, each as a set: itself, and transformed by all combinations of `kinds`.

    Self-supervised GIN, Sec. 4.3 and Appendix B: three kinds, eight images. With more `copies` the combinations repeat.
    The set of one image is consecutive. `theta`, (n * copies, 2, 3), transforms the rendered images by `augment.warp`;
    `origin`, (n * copies,), is the number of their image.
    """
    chosen = [combination for combination in COMBINATIONS if set(combination) <= set(kinds)]
    count = len(chosen) + 1 if copies is None else copies
    aspect = data.shape[-1] / data.shape[-2]
    identity = draw_affine(n, rng, ())
    transforms = [draw_affine(n, rng, chosen[i % len(chosen)], aspect=aspect) for i in range(count - 1)]
    theta = torch.stack([identity, *transforms], 1)  # (n, copies, 2, 3)
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
    no_partner: Literal["error", "self"] = "error",
) -> Plan:
    """Draw pairs of observations x, x2 that share all but `k` factors; `k`, (n,), is the number that changed.

    Properties that are not factors, such as the handwriting of a digit, are shared too if the data allow it. Data
    that consist of pairs give their own pairs. With correlated factors, x follows the joint distribution. x2 need not,
    since its changed factors are drawn independently.

    A table or a training set may lack combinations. A pair whose second half is missing is then drawn again, and
    finally searched among all rows. Pairs therefore never contain held-out observations.

    Args:
        data: Data to draw from.
        n: Number of pairs.
        rng: Random generator.
        k: Number of factors that change: fixed, from a range such as (1, 3), or "uniform" in 1, ..., factors - 1.
            With k = 0, x2 is another observation with the same factors.
        among: Factors that may change, all by default. Leave out the label to pair by label.
        redraw: "other" gives a changed factor another value (swap+contrast, Sec. 3.2: "randomly change the value of k
            elements"). "any" draws from its distribution, which may give the same value (Locatello et al., 2020).
        no_partner: What to do with a row for which no partner exists: raise an error, or pair it with itself.
    """
    a = data.sample(n, rng)
    pair_table = find_pair_table(data)
    if pair_table is not None:
        other, changed = pair_table.partner(a)
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
    c2, changed = _change_factors(data, c, free, (low, high), redraw, rng)
    rows = data
    while isinstance(rows, Correlated | ScaledData):
        rows = rows.data
    if isinstance(rows, IndexedData):
        for _ in range(MAX_REDRAWS):
            missing = ~rows.has(c2)
            if not missing.any():
                break
            c2[missing], changed[missing] = _change_factors(data, c[missing], free, (low, high), redraw, rng)
        for i in (~rows.has(c2)).nonzero()[:, 0].tolist():  # few are left: search all rows for a partner
            c2[i], changed[i] = _find_partner(rows, c[i], free, (low, high), rng, no_partner)
    return Plan({"x": a, "x2": rows.locate(c2, rng, a if high else None)}, {"k": changed})


def _find_partner(
    rows: IndexedData, c: Tensor, free: list[int], k: tuple[int, int], rng: Generator, no_partner: str
) -> tuple[Tensor, Tensor]:
    """Return the factors of a random row that differs from c, (k,), in k[0] to k[1] free factors only, and how many."""
    candidates = rows.listing()[1]
    differs = candidates != c
    count = differs.sum(1)
    fixed = [j for j in range(len(c)) if j not in free]
    fits = ~differs[:, fixed].any(1) & (count >= k[0]) & (count <= k[1])
    matches = fits.nonzero()[:, 0]
    if len(matches) == 0 and no_partner == "self":
        return c, count.new_zeros(())
    if len(matches) == 0:
        text = f"no row differs from the one with {rows.describe(c)} in exactly k={k[0]} factors"
        text = text if k[0] == k[1] else text.replace(f"exactly k={k[0]}", f"k={k[0]} to {k[1]}")
        raise InputError(f"{text} and shares the others; take another k, or other rows")
    chosen = matches[torch.randint(len(matches), (1,), generator=rng, device=rng.device)][0]
    return candidates[chosen], count[chosen]


def _change_factors(
    data: FactorData, c: Tensor, free: list[int], k: tuple[int, int], redraw: str, rng: Generator
) -> tuple[Tensor, Tensor]:
    """Return factors c, (n, factors), with random free ones redrawn, and how many, (n,)."""
    n = len(c)
    if k[0] < k[1]:
        count = torch.randint(k[0], k[1] + 1, (n,), generator=rng, device=rng.device)
    else:  # nothing to draw
        count = torch.full((n,), k[0], device=rng.device)
    rank = torch.rand(n, len(free), generator=rng, device=rng.device).argsort(-1).argsort(-1)
    chosen = torch.zeros(c.shape, dtype=torch.bool, device=c.device)
    chosen[:, free] = rank < count[:, None]
    return torch.where(chosen, _redraw(data, c, free, redraw, rng), c), count


def _redraw(data: FactorData, c: Tensor, free: list[int], redraw: str, rng: Generator) -> Tensor:
    """Draw the free factors again, (n, factors); "other" steps around the circle of values, so none keeps its value."""
    new = data.labels(data.sample(len(c), rng)).clone()
    for j in free if redraw == "other" else ():
        if data.factors[j].size is None:
            continue  # two draws of a real-valued factor differ with probability one
        levels = data.levels(j).to(c.device)
        if len(levels) < 2:
            name = data.factors[j].name
            raise InputError(f"factor {name!r} has one value only and cannot change: leave it out of the pairs")
        step = torch.randint(1, len(levels), (len(c),), generator=rng, device=rng.device)
        position = torch.searchsorted(levels, c[:, j].to(levels).contiguous())
        new[:, j] = levels[(position + step) % len(levels)].to(new)
    return new


def find_pair_table(data: FactorData) -> Paired | None:
    """Return the table of pairs that the data consist of, if they do."""
    source = _source(data)
    return source if isinstance(source, Paired) else None


def _source(data: FactorData) -> FactorData:
    """Return the data below subsets, correlated and scaled views."""
    while isinstance(data, Subset | Correlated | ScaledData):
        data = data.data
    return data
