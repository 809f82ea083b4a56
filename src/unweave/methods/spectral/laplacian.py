"""Laplacian eigenmaps + ICA: smooth functions instead of linear ones."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags_array, eye_array

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud


@final
class LaplacianICA(SpectralICA):
    """Laplacian eigenmaps, then ICA: finds a function of each factor, if the factors have similar ranges.

    Horan, Richardson and Weiss (2021), supplementary: on a product of intervals the first eigenfunctions are cosines of
    one factor each, which is disentangled by their definition; but a factor of longer range comes twice before a
    shorter one comes at all. Belkin and Niyogi (2003) for the embedding.
    """

    name = "laplacian-ica"
    paper = "Belkin and Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data representation"

    linear = False  # cosines of the factors: the first ones are taken, as they come

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """The normalized graph Laplacian with heat-kernel weights, and the square roots of the degrees."""
        p, near, n = cloud.points.numpy(), cloud.near[:, : k + 1], len(cloud.near)
        squared = ((p[near[:, 1:]] - p[near[:, :1]]) ** 2).sum(2)  # (m, k)
        heat = np.exp(-squared / np.maximum(squared.mean(), 1e-300))
        rows = np.repeat(near[:, 0], near.shape[1] - 1)
        one_way = csr_matrix((heat.ravel(), (rows, near[:, 1:].ravel())), shape=(n, n))
        W = one_way.maximum(one_way.T)
        root = np.sqrt(np.maximum(np.asarray(W.sum(1)).ravel(), 1e-300))
        return (eye_array(n) - diags_array(1 / root) @ W @ diags_array(1 / root)).tocsc(), root

    def least_neighbors(self, d: int) -> int:
        """Enough to hold the graph together."""
        return max(3, d + 1)

    def embedded(self, vectors: np.ndarray, trivial: np.ndarray) -> np.ndarray:
        """Eigenfunctions of the random walk."""
        return vectors / trivial[:, None]
