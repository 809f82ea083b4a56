"""LTSA + ICA: the same idea as HLLE + ICA, by aligning tangent spaces."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.sparse import csc_matrix

from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.cloud import Cloud
from unweave.methods.spectral.local import tangent_operator


@final
class TangentICA(SpectralICA):
    """Local tangent space alignment, then ICA: simpler than the Hessian, a little less robust to noise.

    Zhang and Zha (2004), then linear ICA as in Horan, Richardson and Weiss (2021): functions that are linear in every
    tangent space are A z + b where the data are locally isometric to their factors z.
    """

    name = "tangent-ica"
    paper = "Zhang and Zha (2004), Principal manifolds via tangent space alignment"

    def operator(self, cloud: Cloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """What is not linear in a function on the points, summed over neighborhoods."""
        return tangent_operator(cloud.tangents(k, d), cloud.members(k)), np.ones(len(cloud.points))

    def least_neighbors(self, d: int) -> int:
        """A constant and d slopes, and something left over."""
        return d + 2
