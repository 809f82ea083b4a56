"""The graph Laplacian of a point cloud: its smallest eigenvectors are the slowest functions on the points."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags_array, eye_array

from unweave.methods.spectral.point_cloud import PointCloud


def normalized_laplacian(cloud: PointCloud, k: int) -> tuple[csc_matrix, np.ndarray]:
    """Return the normalized graph Laplacian with heat-kernel weights, and its null vector, sqrt(degree)."""
    points, neighbors, n = cloud.points.numpy(), cloud.neighbors[:, : k + 1], len(cloud.neighbors)
    squared = ((points[neighbors[:, 1:]] - points[neighbors[:, :1]]) ** 2).sum(2)  # (n, k)
    heat = np.exp(-squared / np.maximum(squared.mean(), 1e-300))
    rows = np.repeat(neighbors[:, 0], neighbors.shape[1] - 1)
    one_way = csr_matrix((heat.ravel(), (rows, neighbors[:, 1:].ravel())), shape=(n, n))
    W = one_way.maximum(one_way.T)
    root = np.sqrt(np.maximum(np.asarray(W.sum(1)).ravel(), 1e-300))
    return (eye_array(n) - diags_array(1 / root) @ W @ diags_array(1 / root)).tocsc(), root
