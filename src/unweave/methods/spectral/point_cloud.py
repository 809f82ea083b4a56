"""Points that are to be embedded, and an attempt to do it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.methods.spectral.isometry import ColumnChoice, Pairs
from unweave.methods.spectral.tangent_space import gram_matrices, tangent_coordinates


class PointCloud(NamedTuple):
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

    def tangent_coordinates(self, k: int, d: int) -> Tensor:
        """Local coordinates of the members of each neighborhood, (n, k, d)."""
        points = self.points.to(self.device)
        U = tangent_coordinates(self.grams or gram_matrices(points, self.near[:, 1 : k + 1]), k, d)
        alone = self._alone(k)
        if len(alone):
            U[torch.from_numpy(alone).to(U.device)] = tangent_coordinates(
                gram_matrices(points, self.members(k)[alone]), k, d
            )
        return U

    def _alone(self, k: int) -> np.ndarray:
        """Points in no neighborhood: nothing would hold their codes, and each would be a null vector of its own."""
        return np.flatnonzero(np.bincount(self.near[:, 1 : k + 1].ravel(), minlength=len(self.near)) == 0)


class Embedding(NamedTuple):
    """An embedding and how good it is."""

    k: int
    d: int
    y: np.ndarray  # (n, d)
    values: np.ndarray  # eigenvalues, the expected ones first
    choice: ColumnChoice
    votes: dict[str, float]  # for its dimension, where that was to be found
