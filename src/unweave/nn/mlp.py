"""Fully connected networks."""

from __future__ import annotations

from itertools import pairwise

from torch import nn


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers of these widths with a ReLU between them, e.g. mlp(5, 10, 10, 10)."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
