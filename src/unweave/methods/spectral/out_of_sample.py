"""From a few solved points to all: landmarks that stand for many points, and affine maps around them for new ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.neighbors import build_tree, find_neighbors
from unweave.methods.spectral.tangent_space import BATCH, main_directions

ROUNDS = 2  # of moving landmarks to the middle of their points
AVERAGED = 30  # points per landmark that are averaged; more would not help
BLENDED = 4  # landmarks whose maps are averaged, from so many dimensions on


def landmarks(points: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places (count, D) that each stand for the points around them, being their average: less noise than any one."""
    places = points[rng.choice(len(points), count, replace=False)]
    if len(points) > AVERAGED * count:
        points = points[rng.choice(len(points), AVERAGED * count, replace=False)]
    for _ in range(ROUNDS):
        home = build_tree(places).query(points, workers=-1)[1]
        size = np.bincount(home, minlength=count)
        sums = np.stack([np.bincount(home, column, count) for column in points.T], 1)
        places = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], places)
    return places


class AffineMaps:
    """Around every solved point an affine map from data to codes, along the d main directions of its neighbors."""

    def __init__(self, points: Tensor, codes: Tensor, k: int) -> None:
        self.places, self.d = points, codes.shape[1]
        self.tree = build_tree(points.numpy())
        near = torch.from_numpy(find_neighbors(points.numpy(), k))
        maps = [self._fitted(points[rows], codes[rows]) for rows in split_rows(near, BATCH)]
        self.slopes = torch.cat([slope for slope, _ in maps])  # (n, D, d)
        self.offsets = torch.cat([offset for _, offset in maps])  # (n, d)

    @staticmethod
    def _fitted(cloud: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Least squares of codes (n, k, d) on tangent coordinates of the neighbors (n, k, D)."""
        d = codes.shape[2]
        middle, mean = cloud.mean(1), codes.mean(1)
        U = main_directions((gap := cloud - middle[:, None]) @ gap.mT, d)  # (n, k, d), orthonormal and centered
        # cloud - middle = U S V' along the main directions, so coordinates of x are (x - middle) V, and U = (..) V / S
        VS = gap.mT @ U  # (n, D, d) = V S
        squared = (VS * VS).sum(1, keepdim=True).clamp(min=torch.finfo(VS.dtype).tiny)
        slope = (VS / squared) @ (U.mT @ (codes - mean[:, None]))  # (n, D, d)
        return slope, mean - torch.einsum("nD,nDd->nd", middle, slope)

    def __call__(self, q: Tensor) -> Tensor:
        """Codes of points (n, D) by the map of the nearest place, or of several in many dimensions, (n, d)."""
        blend = min(BLENDED if self.d >= BLENDED else 1, len(self.places))
        distance, near = self.tree.query(q.numpy(), blend, workers=-1)
        distance, near = (torch.from_numpy(np.asarray(a).reshape(len(q), blend)) for a in (distance, near))
        weight = 1 / (distance.double() + 1e-3 * distance[:, -1:] + 1e-300)
        weight = (weight / weight.sum(1, keepdim=True)).to(q.dtype)
        found = torch.zeros(len(q), self.d, dtype=q.dtype)
        for b in range(blend):
            for rows in split_rows(torch.arange(len(q)), 16 * BATCH):
                index = near[rows, b]
                value = torch.einsum("nD,nDd->nd", q[rows], self.slopes[index]) + self.offsets[index]
                found[rows] += weight[rows, b : b + 1] * value
        return found
