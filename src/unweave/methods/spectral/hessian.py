"""HLLE + ICA: disentangling without supervision, where the data are locally isometric to their factors."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from scipy.sparse import csc_matrix
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud
from unweave.methods.spectral.tangent_space import BATCH, MANY, assemble_rows, orthonormalize


@final
class HessianICA(SpectralICA):
    """Hessian eigenmaps, then ICA: finds the factors of a locally isometric manifold up to order and sign.

    Horan, Richardson and Weiss (2021), Theorem 1. If x = g(z), J(z)'J(z) = I and the factors z are not Gaussian, the
    null space of the Hessian operator is A z + b, and linear ICA undoes A. New points are placed by the affine map that
    was fitted around their nearest neighbor.
    """

    name = "hessian-ica"
    paper = "Horan, Richardson and Weiss (2021), When is unsupervised disentanglement possible?"

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """The squared Hessian of a function on the points, which vanishes for A z + b."""
        return hessian_operator(cloud.tangent_coordinates(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def least_neighbors(self, d: int) -> int:
        """A constant, d slopes and d(d+1)/2 second derivatives are to be told apart."""
        return 1 + d + d * (d + 1) // 2


def hessian_operator(U: Tensor, near: np.ndarray) -> csc_matrix:
    """Donoho and Grimes (2003): H with f' H f the squared Hessian of f in tangent coordinates, summed over points.

    Rows of the local estimator are orthogonal to constants and to linear functions of the coordinates U (n, k, d) of
    the k neighbors near (n, k). The point itself is left out: with it, large neighborhoods go wrong.
    """
    d = U.shape[2]
    i, j = torch.triu_indices(d, d)

    def rows(u: Tensor) -> Tensor:
        u = u.double()
        design = torch.cat([torch.ones_like(u[:, :, :1]), u, u[:, :, i] * u[:, :, j]], 2)
        return orthonormalize(design)[:, :, 1 + d :].mT  # (n, d(d+1)/2, k)

    B = assemble_rows(torch.cat([rows(u) for u in split_rows(U, BATCH if U.device.type == "cpu" else MANY)]), near)
    return (B.T @ B).tocsc()
