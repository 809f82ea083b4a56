"""LTSA + ICA: local tangent space alignment in the place of the Hessian."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from scipy.sparse import csc_matrix, diags_array
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud
from unweave.methods.spectral.tangent_space import BATCH_SIZE, assemble_rows, orthonormalize


@final
class TangentICA(SpectralICA):
    """Local tangent space alignment, then ICA: simpler than the Hessian, a little less robust to noise.

    Zhang and Zha (2004), then linear ICA as in Horan, Richardson and Weiss (2021): functions that are linear in every
    tangent space are A z + b where the data are locally isometric to their factors z.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).uniform(size=(300, 2))
        >>> roll = np.stack([np.cos(z[:, 0]), np.sin(z[:, 0]), z[:, 1]], 1)
        >>> TangentICA(latent_dim=2, n_neighbors=12).fit_transform(roll).shape
        (300, 2)
    """

    name = "tangent-ica"
    paper = "Zhang and Zha (2004), Principal manifolds via tangent space alignment"

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """Return the nonlinear part of functions on the points, which is zero for A z + b, and the constant vector."""
        return tangent_operator(cloud.tangent_coordinates(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def min_neighbors(self, d: int) -> int:
        """Return the number of coefficients to estimate, a constant and d slopes, and one point for the residual."""
        return d + 2


def tangent_operator(U: Tensor, neighbors: np.ndarray) -> csc_matrix:
    """Return the alignment matrix B (n, n) of LTSA (Zhang and Zha, 2004).

    f'Bf is the squared residual of f around each point after its best linear fit there, summed over points.

    Args:
        U: Tangent coordinates of each point's neighbors, (n, k, d).
        neighbors: Their indices, (n, k).
    """
    n = len(U)
    # Orthonormal in double precision: the rounding errors of single precision would make the matrix indefinite.
    batches = split_rows(U, BATCH_SIZE)
    bases = [orthonormalize(torch.cat([torch.ones_like(u[:, :, :1]), u], 2).double()) for u in batches]
    C = assemble_rows(torch.cat(bases).mT, neighbors)
    n_neighborhoods = np.bincount(neighbors.ravel(), minlength=n).astype(float)  # that each point is a member of
    return (diags_array(n_neighborhoods) - C.T @ C).tocsc()
