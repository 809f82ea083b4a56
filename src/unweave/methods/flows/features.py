"""Checks of the features before a flow is trained on them: constant ones, and those smaller than the noise."""

from __future__ import annotations

import sys
from math import prod
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData, split_rows

MAX_SAMPLES = 20_000  # observations that statistics are computed from, where the data are endless or after training
MAX_SAMPLE_ELEMENTS = 2**27  # numbers in these observations
NOISE_RATIO = 0.3  # noise above this fraction of the median deviation of the features hides them


class FeatureStatistics(NamedTuple):
    """Statistics of every feature, (features,) each."""

    low: Tensor
    high: Tensor
    deviation: Tensor

    @property
    def constant(self) -> Tensor:
        """Whether each feature is constant, (features,)."""
        return self.low == self.high


def batch_rows(shape: tuple[int, ...]) -> int:
    """Return the number of observations of a shape that are processed at a time."""
    return max(1, MAX_SAMPLE_ELEMENTS // 16 // prod(shape))


def sample_points(data: FactorData, rng: Generator) -> Tensor:
    """Return at most MAX_SAMPLES points, fewer of large observations, at random."""
    limit = max(1_000, min(MAX_SAMPLES, MAX_SAMPLE_ELEMENTS // prod(data.shape)))
    points = data.points_or_sample(limit, rng, limit=sys.maxsize)
    if len(points) <= limit:
        return points
    return points[torch.randperm(len(points), generator=rng, device=rng.device)[:limit]]


def feature_statistics(data: FactorData, rng: Generator) -> FeatureStatistics:
    """Compute the range and deviation of every feature over all points, or over a sample of endless data."""
    points = data.points_or_sample(MAX_SAMPLES, rng, limit=sys.maxsize)
    n, total, square = 0, torch.zeros(()), torch.zeros(())
    low, high = torch.tensor(torch.inf), torch.tensor(-torch.inf)
    for part in split_rows(points, batch_rows(data.shape)):
        x = data.render(part).flatten(1)
        low, high = torch.minimum(low.to(x), x.amin(0)), torch.maximum(high.to(x), x.amax(0))
        wide = x.double()
        n, total, square = n + len(x), total.to(wide) + wide.sum(0), square.to(wide) + wide.square().sum(0)
    deviation = (square / n - (total / n).square()).clamp(min=0).sqrt()
    return FeatureStatistics(low.float(), high.float(), deviation.float())


def describe_features(deviation: Tensor, constant: Tensor, noise: float) -> list[str]:
    """Return warnings on constant features and on noise that hides the others, from (features,) each."""
    texts = []
    count, features = int(constant.sum()), len(deviation)
    if count:
        text = f"{count} of {features} features are constant: a flow cannot keep volumes along them"
        texts.append(f"{text}, so it only sees the added noise there (deviation {noise:g}).")
    median = float(deviation[~constant].median()) if bool((~constant).any()) else 0.0
    if noise > NOISE_RATIO * median > 0:
        text = f"Features have a deviation of {median:.2g}, and the added noise one of {noise:g}"
        texts.append(f"{text}, so noise dominates the features: set standardize=True, or a smaller noise.")
    return texts
