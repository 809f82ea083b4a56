"""HLLE + ICA: disentanglement without supervision, where the data are locally isometric to their factors."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix
from torch import Tensor

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud
from unweave.methods.spectral.tangent_space import assemble_rows, min_hessian_neighbors, second_derivatives


@final
class HessianICA(SpectralICA):
    """Hessian eigenmaps, then ICA: recovers the factors of a locally isometric manifold up to order and sign.

    Horan, Richardson and Weiss (2021), Theorem 1. If x = g(z) with J(z)'J(z) = I and the factors z are not Gaussian,
    the null space of the Hessian operator is A z + b, and linear ICA inverts A. New points are encoded by the affine
    map fitted around their nearest neighbor.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).uniform(size=(300, 2))
        >>> roll = np.stack([np.cos(z[:, 0]), np.sin(z[:, 0]), z[:, 1]], 1)
        >>> HessianICA(latent_dim=2, n_neighbors=12).fit_transform(roll).shape
        (300, 2)
    """

    name = "hessian-ica"
    paper = "Horan, Richardson and Weiss (2021), When is unsupervised disentanglement possible?"

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """Return the squared Hessian of functions on the points, which is zero for A z + b, and the constant vector."""
        return hessian_operator(cloud.tangent_coordinates(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def min_neighbors(self, d: int) -> int:
        """Return the number of coefficients to estimate: a constant, d slopes and d(d+1)/2 second derivatives."""
        return min_hessian_neighbors(d)


def hessian_operator(U: Tensor, neighbors: np.ndarray) -> csc_matrix:
    """Return H (n, n) such that f'Hf = sum over points of ||Hess f||_F^2 (Donoho and Grimes, 2003).

    The point itself is no member of its neighborhood: with it, large neighborhoods lose factors.

    Args:
        U: Tangent coordinates of each point's neighbors, (n, k, d).
        neighbors: Their indices, (n, k).
    """
    B = assemble_rows(second_derivatives(U), neighbors)
    return (B.T @ B).tocsc()
