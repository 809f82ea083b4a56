"""Training and test sets: correlated factors and held-out observations."""

from __future__ import annotations

import sys
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from unweave.data.containers import Factorial
from unweave.data.core import FactorData, Subset
from unweave.utils.errors import InputError


class Correlated(FactorData):
    """Observations resampled so that two discrete factors follow a joint distribution, (size_a, size_b)."""

    def __init__(self, data: FactorData, factors: tuple[str, str], joint: Tensor) -> None:
        self.data, self.factors, self.shape, self.reader = data, data.factors, data.shape, data.reader
        self.feature_names, self.scale, self.scaling = data.feature_names, data.scale, data.scaling
        self._a, self._b = (data.column(name) for name in factors)
        sizes = (data.factors[self._a].size, data.factors[self._b].size)
        if tuple(joint.shape) != sizes or None in sizes:
            raise InputError(f"a joint of shape {tuple(joint.shape)} for factors of sizes {sizes}: expected the same")
        if not torch.isfinite(joint).all() or (joint < 0).any() or joint.sum() <= 0:
            raise InputError("a joint distribution needs finite weights that are not negative, and not all zero")
        self.joint = joint / joint.sum()
        if isinstance(data, Factorial):
            return
        points = data.all_points(sys.maxsize)
        if points is None:
            raise InputError("correlated factors need a grid or a finite sample to resample; freeze the data first")
        c = data.labels(points).long()
        cell = c[:, self._a] * joint.shape[1] + c[:, self._b]  # (rows,)
        counts = cell.bincount(minlength=joint.numel())
        empty = ((counts == 0) & (self.joint.flatten() > 1e-6)).nonzero()[:, 0]
        if len(empty):
            a, b = divmod(int(empty[0]), joint.shape[1])
            share = float(self.joint.flatten()[empty].sum())
            names = f"{factors[0]}={a}, {factors[1]}={b}"
            raise InputError(
                f"no observation has {names}, where the joint has weight ({share:.0%} of it would be lost)"
            )
        counts = counts.clamp(min=1)
        self._points, self._weights = points, (self.joint.flatten().double() / counts)[cell]

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw the two factors from the joint distribution, and everything else from the data, conditional on them."""
        if isinstance(self.data, Factorial):
            points = self.data.sample(n, rng)
            cells = torch.multinomial(self.joint.flatten(), n, replacement=True, generator=rng)
            points[:, self._a], points[:, self._b] = cells // self.joint.shape[1], cells % self.joint.shape[1]
            return points
        return self._points[torch.multinomial(self._weights, n, replacement=True, generator=rng)]

    def render(self, points: Tensor) -> Tensor:
        """Return what the underlying data render."""
        return self.data.render(points)

    def labels(self, points: Tensor) -> Tensor:
        """Return the factors in the underlying data."""
        return self.data.labels(points)

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Return points of the underlying data."""
        return self.data.locate(c, rng, like)

    def levels(self, j: int) -> Tensor:
        """Return the values in the underlying data."""
        return self.data.levels(j)


def correlate(
    data: FactorData, factors: tuple[str, str], *, joint: Tensor | None = None, strength: float | None = None
) -> Correlated:
    """Return data with two dependent discrete factors, by a `joint` table or by `strength`.

    Strength s gives p(a, b) ~ exp(-(a - b)^2 / 2 s^2) with a and b scaled to [0, 1] (Traeuble et al., 2021). The
    smaller s, the stronger the correlation.
    """
    sizes = [data.factors[data.column(name)].size for name in factors]
    if None in sizes:
        raise InputError(f"factors {factors} must both be discrete")
    if factors[0] == factors[1]:
        raise InputError(f"a factor is correlated with another one, not with itself: {factors}")
    if (joint is None) == (strength is None):
        raise InputError("pass either joint=... or strength=...")
    if joint is None:
        if not strength or strength <= 0:
            raise InputError(f"strength={strength}: expected a positive number (0.1 is strong, 1 is weak)")
        a, b = (torch.linspace(0, 1, int(s or 1), dtype=torch.float64) for s in sizes)
        joint = torch.exp(-((a[:, None] - b) ** 2) / (2 * strength**2))
    return Correlated(data, factors, torch.as_tensor(joint))


def hold_out(data: FactorData, test: int, seed: int = 0) -> tuple[Subset, Subset]:
    """Split finite data at random into a training set and a test set of `test` observations; groups stay together."""
    points = data.all_points(sys.maxsize)
    if points is None:
        raise InputError("holding out needs finite data: freeze a sample first")
    if not 0 < test < len(points):
        raise InputError(f"{test:,} observations cannot be held out of {len(points):,}")
    rng = Generator().manual_seed(seed)
    groups = data.groups(points)
    if groups is None:
        order = torch.randperm(len(points), generator=rng).to(points.device)
        return Subset(data, points[order[test:]]), Subset(data, points[order[:test]])
    # Whole groups, as many as fit into the test set.
    _, group = torch.unique(groups, return_inverse=True)
    rank = torch.randperm(int(group.max()) + 1, generator=rng).to(points.device)[group]
    size = rank.bincount().cumsum(0)
    is_test = rank < int((size <= test).sum())
    return Subset(data, points[~is_test]), Subset(data, points[is_test])


class Split(NamedTuple):
    """The three sets of the intervention paper: both training sets and the test set."""

    correlated: Subset
    independent: Subset
    test: Subset


def correlated_split(
    data: FactorData,
    factors: tuple[str, str],
    *,
    joint: Tensor | None = None,
    strength: float | None = None,
    train: int = 200_000,
    test: int = 50_000,
    seed: int = 0,
) -> Split:
    """Hold out a test set, then resample the rest with correlated and with independent factors.

    Disentanglement by intervention, Appendix B: dSprites with x and scale, train = 200,000; 3DShapes with floor and
    wall, train = 100,000; test = 50,000. Both training sets have the same size.
    """
    rest, test_set = hold_out(data, test, seed)
    rng = Generator(rest.points.device).manual_seed(seed)
    dependent = correlate(rest, factors, joint=joint, strength=strength).freeze(train, rng)
    return Split(dependent, rest.freeze(train, rng), test_set)
