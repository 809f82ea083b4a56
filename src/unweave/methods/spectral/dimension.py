"""Two estimators of the intrinsic dimension of a point cloud, which fail in different ways."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import split_rows
from unweave.methods.spectral.tangent_space import BATCH_SIZE


def likelihood_dimension(points: np.ndarray, neighbors: np.ndarray) -> float:
    """Estimate the dimension by maximum likelihood of neighbor distances (Levina and Bickel, 2004).

    The inverse estimates are averaged over points, as MacKay and Ghahramani (2005) propose. Accurate without noise,
    too large with it.

    Args:
        points: The point cloud, (n, D).
        neighbors: Each point's own index and those of its neighbors by distance, (n, k + 1).
    """
    k = neighbors.shape[1] - 1
    return float((k - 2) / ((k - 1) * max(_inverse_dimensions(points, neighbors).mean(), 1e-12)))


def likelihood_interval(points: np.ndarray, neighbors: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the likelihood estimate; points that share neighbors count as one."""
    k = neighbors.shape[1] - 1
    inverse = _inverse_dimensions(points, neighbors)
    error = 1.96 * inverse.std() / np.sqrt(max(1.0, len(points) / k))
    low, high = ((k - 2) / ((k - 1) * max(value, 1e-12)) for value in (inverse.mean() + error, inverse.mean() - error))
    return float(low), float(high)


def _inverse_dimensions(points: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return the mean logarithm of the ratio of the farthest neighbor's distance to the others', (n,)."""
    distance = np.linalg.norm(points[neighbors[:, 1:]] - points[:, None], axis=2)  # (n, k)
    distance = np.maximum(distance, 1e-12 * distance.max())
    return np.asarray(np.log(distance[:, -1:] / distance[:, :-1]).mean(1))


def gap_dimension(points: Tensor, neighbors: np.ndarray, max_dimension: int) -> int:
    """Estimate the dimension by the steepest fall in the mean spectrum of local clouds, points (n, D).

    Robust to noise, too large with curvature.
    """
    batches = split_rows(torch.from_numpy(neighbors), BATCH_SIZE)
    spectra = [torch.linalg.svdvals(points[rows] - points[rows].mean(1, keepdim=True)) for rows in batches]
    mean = (torch.cat(spectra) ** 2).mean(0)
    largest = min(max_dimension, len(mean) - 1)
    if largest < 1:
        return 1
    return int((mean[:largest] / mean[1 : largest + 1].clamp(min=1e-12 * float(mean[0]))).argmax()) + 1
