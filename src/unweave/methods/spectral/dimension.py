"""How many dimensions a cloud of points has, by two estimators that fail in different ways."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.tangent_space import BATCH


def likelihood_dimension(points: np.ndarray, near: np.ndarray) -> float:
    """Levina and Bickel (2004), averaged as by MacKay and Ghahramani: right without noise, too large with it."""
    distance = np.linalg.norm(points[near[:, 1:]] - points[:, None], axis=2)  # (n, k)
    distance = np.maximum(distance, 1e-12 * distance.max())
    inverse = np.log(distance[:, -1:] / distance[:, :-1]).mean(1)
    k = distance.shape[1]
    return float((k - 2) / ((k - 1) * max(inverse.mean(), 1e-12)))


def gap_dimension(points: Tensor, near: np.ndarray, most: int) -> int:
    """Where the spectrum of the local clouds falls most steeply: right with noise, too large with curvature."""
    index = torch.from_numpy(near)
    spectra = [
        torch.linalg.svdvals(points[rows] - points[rows].mean(1, keepdim=True)) for rows in split_rows(index, BATCH)
    ]
    mean = (torch.cat(spectra) ** 2).mean(0)
    most = min(most, len(mean) - 1)
    if most < 1:
        return 1
    return int((mean[:most] / mean[1 : most + 1].clamp(min=1e-12 * float(mean[0]))).argmax()) + 1
