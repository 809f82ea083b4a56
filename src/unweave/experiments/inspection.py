"""Facts about data that decide which method can work: measured on a sample, in seconds, without training."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from unweave.data.core import Factor, FactorData, split_rows
from unweave.experiments.geometry import (
    TANGENT_NEIGHBORS,
    Dimension,
    Gaussianity,
    Parts,
    count_parts,
    estimate_dimension,
    has_loop,
    local_noise,
    measure_gaussianity,
)
from unweave.methods.spectral.neighbors import find_neighbors
from unweave.methods.spectral.preprocessing import principal_directions, unique_rows
from unweave.utils.errors import constant_data_error, plural

MAX_POINTS = 1_500  # whose geometry is measured
MAX_TABLE_ROWS = 10_000  # whose distribution is measured
MAX_LABELS = 100_000  # labels that are counted
MAX_SIDE = 64  # pixels; larger images are averaged down before they are compared
MAX_COMPONENTS = 50  # principal components in which distances are measured
RENDERED_ELEMENTS = 2**24  # numbers rendered at a time
EXPLAINED = 0.95  # share of the variance that the linear rank explains
MAX_DUPLICATES = 0.01  # share of repeated rows that is worth a line
MAX_LISTED_CLASSES = 5
SEED = 0


@dataclass(frozen=True)
class Inspection:
    """Measured facts about data.

    Example:
        >>> from unweave.datasets import SquaresXY
        >>> facts = inspect_data(SquaresXY(points=300, size=16, side=4).load())
        >>> facts.rows, facts.shape, facts.parts.number
        (300, (1, 16, 16), 1)
    """

    rows: int | None
    """Number of observations; None for a generator without an end."""
    shape: tuple[int, ...]
    factors: tuple[Factor, ...]
    """Labels that come with the data, with their kinds."""
    classes: dict[str, dict[str, int]]
    """Observations of each class, by discrete factor; of a sample where there are very many."""
    sampled: int
    """Observations whose geometry was measured."""
    duplicates: float
    """Share of the sample that repeats another observation."""
    binary: bool
    """Whether observations take two values only."""
    deviations: tuple[float, float]
    """Smallest and largest standard deviation of the columns of a table, or of all values of images."""
    dimension: Dimension | None
    """Intrinsic dimension with its interval; None for very few observations."""
    rank: int
    """Principal components that explain 95 % of the variance (of standardized columns)."""
    tangent_dimension: int
    """Dimension of neighborhoods by the gap in their spectra, which noise hardly changes."""
    noise: float
    """Share of the variance of neighborhoods outside of that dimension: noise and curvature."""
    parts: Parts
    loop: bool | None
    """Whether the data go around a closed loop; None where this was not examined."""
    gaussianity: Gaussianity | None
    """Distribution of the independent components of a table; None for images and for few rows."""
    varying: dict[str, int]
    """For each class of the label the number of nuisance combinations it occurs with, if nuisances were named."""

    @property
    def is_image(self) -> bool:
        """Whether observations have rows and columns of pixels."""
        return len(self.shape) > 1

    @property
    def size(self) -> int:
        """Number of values of an observation."""
        return prod(self.shape)

    def lines(self) -> list[str]:
        """Return the facts as sentences."""
        kind = "images" if self.is_image else "rows of numbers"
        count = "a generator of" if self.rows is None else f"{self.rows:,}"
        texts = [f"{count} {kind}, {' x '.join(map(str, self.shape))}{', of two values' * self.binary}"]
        texts += [describe_classes(f, self.classes[f.name]) for f in self.factors if f.name in self.classes]
        others = [factor.summary() for factor in self.factors if factor.name not in self.classes]
        if others:
            texts.append("known factors: " + ", ".join(others))
        if self.duplicates > MAX_DUPLICATES:
            texts.append(f"{self.duplicates:.0%} of the observations repeat others")
        texts += self._geometry_lines()
        if self.gaussianity is not None:
            g = self.gaussianity
            texts.append(f"{g.components - g.gaussian} of {plural(g.components, 'independent component')} not Gaussian")
        if self.rows is None or self.sampled < self.rows:
            texts.append(f"measured on {self.sampled:,} observations, drawn with a fixed seed")
        return texts

    def _geometry_lines(self) -> list[str]:
        texts = []
        if self.dimension is not None:
            texts.append(f"intrinsic dimension {self.dimension.text()}")
            d = plural(self.tangent_dimension, "main direction")
            texts.append(f"neighborhoods have {d}; {self.noise:.0%} of their variance is outside (noise, curvature)")
        if self.rank > MAX_COMPONENTS:
            texts.append(f"more than {MAX_COMPONENTS} principal components are needed for 95 % of the variance")
        else:
            texts.append(f"{plural(self.rank, 'principal component')} for 95 % of the variance")
        if self.parts.number > 1:
            texts.append(f"{self.parts.number} separate parts; the largest has {self.parts.largest:.0%} of the points")
        elif self.dimension is not None:
            texts.append(
                "one connected part" + f" and {plural(self.parts.outliers, 'outlier')}" * bool(self.parts.outliers)
            )
        if self.loop is not None:
            texts.append("the data go around a closed loop" if self.loop else "no closed loop")
        return texts

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        values = asdict(self) | {"shape": list(self.shape), "parts": self.parts._asdict()}
        values["dimension"] = None if self.dimension is None else self.dimension._asdict()
        values["gaussianity"] = None if self.gaussianity is None else self.gaussianity._asdict()
        values["factors"] = [factor.summary() for factor in self.factors]
        return values


def describe_classes(factor: Factor, counts: dict[str, int]) -> str:
    """Return a factor with its kind, the sizes of its classes, and how unequal they are."""
    text = factor.summary()
    if not counts:
        return text
    fewest, most = min(counts, key=lambda name: counts[name]), max(counts.values())
    if len(counts) <= MAX_LISTED_CLASSES:
        return f"{text}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return f"{text}: {counts[fewest]:,} ({fewest}) to {most:,} observations of a class"


# Measuring ------------------------------------------------------------------------------------------------------------


def inspect_data(data: FactorData, *, label: str | None = None, nuisances: Sequence[str] = ()) -> Inspection:
    """Measure the facts that decide which method can work, on at most 1,500 observations (10,000 rows of a table)."""
    rng = Generator().manual_seed(SEED)
    is_image = len(data.shape) > 1
    rows, points = sample_points(data, MAX_POINTS if is_image else MAX_TABLE_ROWS, rng)
    x = render_small(data, points)
    binary = bool(((x == x.min()) | (x == x.max())).all())
    if bool((x == x[:1]).all()):
        raise constant_data_error()
    unique = unique_rows(x)
    duplicates = 1 - len(unique) / len(x)
    x = x[unique]
    scaled = x if is_image else standardize(x)
    cloud, rank = project(scaled[torch.randperm(len(x), generator=rng)[:MAX_POINTS].sort().values], rng)
    neighbors = find_neighbors(cloud, min(TANGENT_NEIGHBORS, len(cloud) - 1))
    tangent_dimension, noise = local_noise(cloud, neighbors)
    labels = label_sample(data, rng)
    return Inspection(
        rows=rows, shape=tuple(data.shape), factors=data.factors, classes=count_classes(data, labels),
        sampled=len(points), duplicates=duplicates, binary=binary, deviations=column_deviations(x, is_image),
        dimension=estimate_dimension(cloud, neighbors, np.random.default_rng(SEED)), rank=rank,
        tangent_dimension=tangent_dimension, noise=noise, parts=count_parts(neighbors),
        loop=has_loop(cloud, neighbors), varying=count_nuisances(data, labels, label, nuisances),
        gaussianity=None if is_image else measure_gaussianity(scaled.numpy(), min(rank, len(scaled) - 1)),
    )  # fmt: skip


def sample_points(data: FactorData, limit: int, rng: Generator) -> tuple[int | None, Tensor]:
    """Return the number of observations (None for a generator) and at most `limit` points, without repeats."""
    points = data.all_points(sys.maxsize)
    if points is None:
        return None, data.sample(limit, rng)
    chosen = torch.randperm(len(points), generator=rng)[:limit].sort().values
    return len(points), points[chosen]


def render_small(data: FactorData, points: Tensor) -> Tensor:
    """Return observations as rows, (n, features); large images are averaged down to at most 64 pixels a side."""
    parts = []
    for batch in split_rows(points, max(1, RENDERED_ELEMENTS // prod(data.shape))):
        x = data.render(batch)
        x = x if x.dtype == torch.float64 else x.float()
        if len(data.shape) in (2, 3) and max(data.shape[-2:]) > MAX_SIDE:
            height, width = (min(side, MAX_SIDE) for side in data.shape[-2:])
            x = F.adaptive_avg_pool2d(x.reshape(len(x), -1, *data.shape[-2:]), (height, width))
        parts.append(x.flatten(1))
    return torch.cat(parts)


def column_deviations(x: Tensor, is_image: bool) -> tuple[float, float]:
    """Return the smallest and the largest deviation of varying columns of rows (n, d); of images that of all values."""
    spread = x.double().std()[None] if is_image else x.double().std(0)
    spread = spread[spread > 0]
    return float(spread.min()), float(spread.max())


def standardize(x: Tensor) -> Tensor:
    """Return varying columns of rows (n, d) with mean zero and deviation one, so that units do not count."""
    x = x.double()
    spread = x.std(0)
    varies = spread > 1e-12 * x.abs().amax(0)
    return (x[:, varies] - x[:, varies].mean(0)) / spread[varies]


def project(x: Tensor, rng: Generator) -> tuple[np.ndarray, int]:
    """Return rows (n, features) in their leading principal components, (n, at most 50), and their linear rank."""
    mean, directions = principal_directions(x, min(MAX_COMPONENTS, x.shape[1], max(1, len(x) - 1)), rng)
    cloud = (x.double() - mean) @ directions.T
    variance = cloud.var(0)
    total = float(x.double().var(0).sum())
    explained = torch.cumsum(variance, 0) / max(total, 1e-300)
    rank = int((explained < EXPLAINED).sum()) + 1  # one more than can be seen, if 50 do not explain enough
    return np.ascontiguousarray((cloud / cloud.abs().max()).numpy()), rank


# Labels ---------------------------------------------------------------------------------------------------------------


def label_sample(data: FactorData, rng: Generator) -> Tensor:
    """Return the labels of all observations, or of 100,000, (n, factors)."""
    return data.labels(sample_points(data, MAX_LABELS, rng)[1])


def class_names(factor: Factor, levels: Sequence[int]) -> list[str]:
    """Return the names of levels of a discrete factor."""
    return [str(factor.values[k] if factor.values else k) for k in levels]


def count_classes(data: FactorData, labels: Tensor) -> dict[str, dict[str, int]]:
    """Return the number of observations of each class, by the name of each discrete factor."""
    counts = {}
    for j, factor in enumerate(data.factors):
        if factor.size is not None:
            levels, count = torch.unique(labels[:, j].long(), return_counts=True)
            counts[factor.name] = dict(zip(class_names(factor, levels.tolist()), count.tolist(), strict=True))
    return counts


def count_nuisances(data: FactorData, labels: Tensor, label: str | None, nuisances: Sequence[str]) -> dict[str, int]:
    """Return the number of nuisance combinations that each class of the label occurs with."""
    if not label or not nuisances or data.factors[data.column(label)].size is None:
        return {}
    own = labels[:, data.column(label)].long()
    others = labels[:, [data.column(name) for name in nuisances]]
    levels = torch.unique(own).tolist()
    names = class_names(data.factors[data.column(label)], levels)
    return {name: len(torch.unique(others[own == level], dim=0)) for name, level in zip(names, levels, strict=True)}
