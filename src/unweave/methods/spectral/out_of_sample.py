"""Out-of-sample extension: codes of new points by affine maps around the embedded ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.loops import to_full_turn
from unweave.methods.spectral.neighbors import build_tree, find_neighbors
from unweave.methods.spectral.tangent_space import BATCH_SIZE, leading_singular_vectors

N_AVERAGED = 4  # maps averaged for a new point, from as many dimensions on


class AffineMaps:
    """An affine map from data to codes around every embedded point, along the d tangent directions there."""

    def __init__(self, points: Tensor, codes: Tensor, k: int, periods: Sequence[float | None] = ()) -> None:
        """Fit a map to the k neighbors of each of the points (n, D), whose codes are (n, d), some with a period."""
        self.points, self.d = points, codes.shape[1]
        self.periods = [(j, period) for j, period in enumerate(periods) if period]
        self.tree = build_tree(points.numpy())
        neighbors = torch.from_numpy(find_neighbors(points.numpy(), k))
        batches = split_rows(neighbors, BATCH_SIZE)
        maps = [self._fit(points[rows], self._unwrap(codes[rows], codes[rows[:, :1]])) for rows in batches]
        self.slopes = torch.cat([slope for slope, _ in maps])  # (n, D, d)
        self.offsets = torch.cat([offset for _, offset in maps])  # (n, d)

    def _unwrap(self, codes: Tensor, near: Tensor) -> Tensor:
        """Return codes (..., d) with whole periods added that bring circular ones close to those of `near`."""
        codes = codes.clone() if self.periods else codes
        for j, period in self.periods:
            codes[..., j] -= period * ((codes[..., j] - near[..., j]) / period).round()
        return codes

    @staticmethod
    def _fit(neighborhoods: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes (n, D, d) and offsets (n, d) of the least squares fit of codes (n, k, d).

        The regressors are the tangent coordinates of the neighborhoods, (n, k, D).
        """
        d = codes.shape[2]
        center, mean = neighborhoods.mean(1), codes.mean(1)
        centered = neighborhoods - center[:, None]
        U = leading_singular_vectors(centered @ centered.mT, d)  # (n, k, d), orthonormal and centered
        # centered = U S V' along the tangent directions: coordinates of x are (x - center) V, and U = centered V / S.
        VS = centered.mT @ U  # (n, D, d) = V S
        squared = (VS * VS).sum(1, keepdim=True).clamp(min=torch.finfo(VS.dtype).tiny)
        slope = (VS / squared) @ (U.mT @ (codes - mean[:, None]))  # (n, D, d)
        return slope, mean - torch.einsum("nD,nDd->nd", center, slope)

    def __call__(self, q: Tensor) -> Tensor:
        """Return codes of points q by the nearest map, or by the mean of several from four dimensions on.

        Shapes: (n, D) -> (n, d). The mean is weighted by inverse distances, and taken on the circle where a code has a
        period; such codes are from 0 to their period.
        """
        count = min(N_AVERAGED if self.d >= N_AVERAGED else 1, len(self.points))
        distance, nearest = self.tree.query(q.numpy(), count, workers=-1)
        distance, nearest = (torch.from_numpy(np.asarray(a).reshape(len(q), count)) for a in (distance, nearest))
        weight = 1 / (distance.double() + 1e-3 * distance[:, -1:] + 1e-300)
        weight = (weight / weight.sum(1, keepdim=True)).to(q.dtype)
        codes, first = torch.zeros(2, len(q), self.d, dtype=q.dtype)
        for b in range(count):
            for rows in split_rows(torch.arange(len(q)), 16 * BATCH_SIZE):
                index = nearest[rows, b]
                value = torch.einsum("nD,nDd->nd", q[rows], self.slopes[index]) + self.offsets[index]
                if b == 0:
                    first[rows] = value
                codes[rows] += weight[rows, b : b + 1] * self._unwrap(value, first[rows])
        for j, period in self.periods:
            codes[:, j] = to_full_turn(codes[:, j], period)
        return codes
