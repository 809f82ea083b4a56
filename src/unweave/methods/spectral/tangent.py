"""LTSA + ICA: the same idea as HLLE + ICA, by aligning tangent spaces."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from scipy.sparse import csc_matrix, diags_array
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.point_cloud import PointCloud
from unweave.methods.spectral.tangent_space import BATCH, assemble_rows, orthonormalize


@final
class TangentICA(SpectralICA):
    """Local tangent space alignment, then ICA: simpler than the Hessian, a little less robust to noise.

    Zhang and Zha (2004), then linear ICA as in Horan, Richardson and Weiss (2021): functions that are linear in every
    tangent space are A z + b where the data are locally isometric to their factors z.
    """

    name = "tangent-ica"
    paper = "Zhang and Zha (2004), Principal manifolds via tangent space alignment"

    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """What is not linear in a function on the points, summed over neighborhoods."""
        return tangent_operator(cloud.tangent_coordinates(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def least_neighbors(self, d: int) -> int:
        """A constant and d slopes, and something left over."""
        return d + 2


def tangent_operator(U: Tensor, near: np.ndarray) -> csc_matrix:
    """Zhang and Zha (2004), LTSA: what is left of f around each point when its linear part is taken away, summed."""
    n = len(U)
    # Orthonormal in double precision: what single precision leaves would make the matrix indefinite.
    basis = [orthonormalize(torch.cat([torch.ones_like(u[:, :, :1]), u], 2).double()) for u in split_rows(U, BATCH)]
    C = assemble_rows(torch.cat(basis).mT, near)
    times = np.bincount(near.ravel(), minlength=n).astype(float)  # neighborhoods that a point is in
    return (diags_array(times) - C.T @ C).tocsc()
