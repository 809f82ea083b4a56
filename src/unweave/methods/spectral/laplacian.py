"""Laplacian eigenmaps + ICA: smooth functions in the place of linear ones."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags_array, eye_array

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud


@final
class LaplacianICA(SpectralICA):
    """Laplacian eigenmaps, then ICA: recovers a function of each factor, if the factors have similar ranges.

    Belkin and Niyogi (2003) for the embedding, Horan, Richardson and Weiss (2021), supplementary, for ICA. On a product
    of intervals the first eigenfunctions are cosines of one factor each, which counts as disentangled. A factor of
    longer range contributes two of them before a shorter one contributes any.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).uniform(size=(300, 2))
        >>> LaplacianICA(latent_dim=2, n_neighbors=12).fit_transform(z).shape
        (300, 2)
    """

    name = "laplacian-ica"
    paper = "Belkin and Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data representation"

    linear = False  # cosines of the factors: isometry cannot choose among them, so the first ones are taken

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """Return the normalized graph Laplacian with heat-kernel weights, and its null vector, sqrt(degree)."""
        points, neighbors, n = cloud.points.numpy(), cloud.neighbors[:, : k + 1], len(cloud.neighbors)
        squared = ((points[neighbors[:, 1:]] - points[neighbors[:, :1]]) ** 2).sum(2)  # (n, k)
        heat = np.exp(-squared / np.maximum(squared.mean(), 1e-300))
        rows = np.repeat(neighbors[:, 0], neighbors.shape[1] - 1)
        one_way = csr_matrix((heat.ravel(), (rows, neighbors[:, 1:].ravel())), shape=(n, n))
        W = one_way.maximum(one_way.T)
        root = np.sqrt(np.maximum(np.asarray(W.sum(1)).ravel(), 1e-300))
        return (eye_array(n) - diags_array(1 / root) @ W @ diags_array(1 / root)).tocsc(), root

    def min_neighbors(self, d: int) -> int:
        """Return a number of neighbors that keeps most graphs connected."""
        return max(3, d + 1)

    def to_embedding(self, vectors: np.ndarray, trivial: np.ndarray) -> np.ndarray:
        """Return the eigenfunctions of the random walk, the generalized eigenproblem L f = lambda D f, (n, count)."""
        return vectors / trivial[:, None]
