"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import nn


def mlp(*widths: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers of these widths with an activation between them, e.g. mlp(5, 10, 10, 10)."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])
