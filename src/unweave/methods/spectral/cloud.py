"""Points that are to be embedded, and an attempt to do it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.methods.spectral.isometry import Choice, Pairs
from unweave.methods.spectral.local import grams, tangents


class Cloud(NamedTuple):
    """Points that are solved for, and what every attempt on them shares."""

    points: Tensor  # (n, D)
    near: np.ndarray  # (n, most + 1)
    grams: list[Tensor] | None  # (n, most, most) in batches, where they fit into memory
    judges: np.ndarray  # (j,): rows whose near pairs judge an embedding
    pairs: Pairs
    said: tuple[str, ...]  # how the points came about, in words
    device: str = "cpu"  # where neighborhoods are worked out

    def members(self, k: int) -> np.ndarray:
        """The k neighbors of each point, (n, k); one that is nobody's neighbor is made a member of its own."""
        near = self.near[:, 1 : k + 1].copy()
        alone = self._alone(k)
        near[alone, -1] = alone
        return near

    def tangents(self, k: int, d: int) -> Tensor:
        """Local coordinates of the members of each neighborhood, (n, k, d)."""
        points = self.points.to(self.device)
        U = tangents(self.grams or grams(points, self.near[:, 1 : k + 1]), k, d)
        alone = self._alone(k)
        if len(alone):
            U[torch.from_numpy(alone).to(U.device)] = tangents(grams(points, self.members(k)[alone]), k, d)
        return U

    def _alone(self, k: int) -> np.ndarray:
        """Points in no neighborhood: nothing would hold their codes, and each would be a null vector of its own."""
        return np.flatnonzero(np.bincount(self.near[:, 1 : k + 1].ravel(), minlength=len(self.near)) == 0)


class Attempt(NamedTuple):
    """An embedding and how good it is."""

    k: int
    d: int
    y: np.ndarray  # (n, d)
    values: np.ndarray  # eigenvalues, the expected ones first
    choice: Choice
    votes: dict[str, float]  # for its dimension, where that was to be found
