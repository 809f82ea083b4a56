"""HLLE + ICA: disentangling without supervision, where the data are locally isometric to their factors."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.cloud import Cloud
from unweave.methods.spectral.local import hessian_operator


@final
class HessianICA(SpectralICA):
    """Hessian eigenmaps, then ICA: finds the factors of a locally isometric manifold up to order and sign.

    Horan, Richardson and Weiss (2021), Theorem 1. If x = g(z), J(z)'J(z) = I and the factors z are not Gaussian, the
    null space of the Hessian operator is A z + b, and linear ICA undoes A. New points are placed by the affine map that
    was fitted around their nearest neighbor.
    """

    name = "hessian-ica"
    paper = "Horan, Richardson and Weiss (2021), When is unsupervised disentanglement possible?"

    def operator(self, cloud: Cloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """The squared Hessian of a function on the points, which vanishes for A z + b."""
        return hessian_operator(cloud.tangents(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def least_neighbors(self, d: int) -> int:
        """A constant, d slopes and d(d+1)/2 second derivatives are to be told apart."""
        return 1 + d + d * (d + 1) // 2
