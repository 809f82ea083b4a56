"""Laplacian eigenmaps + ICA: smooth functions in the place of linear ones."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.graph_laplacian import normalized_laplacian
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
        return normalized_laplacian(cloud, k)

    def min_neighbors(self, d: int) -> int:
        """Return a number of neighbors that keeps most graphs connected."""
        return max(3, d + 1)

    def to_embedding(self, vectors: np.ndarray, trivial: np.ndarray) -> np.ndarray:
        """Return the eigenfunctions of the random walk, the generalized eigenproblem L f = lambda D f, (n, count)."""
        return vectors / trivial[:, None]
