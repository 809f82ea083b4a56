"""Compression of features with heavy tails, before a flow is trained on them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

MIN_SCALE = 1e-12  # smaller scales are rounding errors


class Tails(NamedTuple):
    """The map t = asinh((x - center) / unit) / scale of every feature: linear near the center, logarithmic far away."""

    center: Tensor
    """Medians, (*shape)."""
    unit: Tensor
    """Median deviations from them, (*shape)."""
    scale: Tensor
    """Standard deviations of asinh((x - center) / unit), (*shape)."""

    def compress(self, x: Tensor) -> Tensor:
        """Return t of observations x, (n, *shape)."""
        center, unit, scale = (v.to(x) for v in self)
        return ((x - center) / unit).asinh() / scale

    def expand(self, t: Tensor) -> Tensor:
        """Inverse of `compress`."""
        center, unit, scale = (v.to(t) for v in self)
        return center + unit * (t * scale).sinh()

    def log_det(self, t: Tensor) -> Tensor:
        """Return log|det dt/dx| of `compress` where it has the values t, (n, *shape) -> (n,)."""
        _, unit, scale = (v.to(t) for v in self)
        a = (t * scale).abs()
        log_cosh = a + torch.log1p((-2 * a).exp()) - math.log(2)
        return -(log_cosh + unit.log() + scale.log()).flatten(1).sum(1)


def fit_tails(x: Tensor) -> Tails:
    """Return the compression of observations x, (n, *shape). A constant feature keeps its unit."""
    x = x.double()
    center = x.median(0).values
    unit = (x - center).abs().median(0).values
    unit = torch.where(unit > MIN_SCALE, unit, x.std(0, correction=0))
    unit = torch.where(unit > MIN_SCALE, unit, 1.0)
    scale = ((x - center) / unit).asinh().std(0, correction=0)
    return Tails(center.float(), unit.float(), torch.where(scale > MIN_SCALE, scale, 1.0).float())
