"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import nn


def mlp(*widths: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return linear layers of these widths with an activation between them, (n, first) -> (n, last).

    Example:
        >>> mlp(5, 10, 2)
        Sequential(
          (0): Linear(in_features=5, out_features=10, bias=True)
          (1): ReLU()
          (2): Linear(in_features=10, out_features=2, bias=True)
        )
    """
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])
