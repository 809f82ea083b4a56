"""Nearest neighbors, and the connected components of the graph they make."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from torch import Tensor

from unweave.data.core import split_rows

MAX_DISTANCES = 2**28  # distances held on a GPU at a time, 2 GiB
MIN_POINTS_FOR_APPROXIMATE = 20_000  # for which an approximate search in the order of the tree's leaves is faster
SLACK = 0.1  # relative error of a neighbor's distance in the approximate search; nearly all neighbors are exact


def build_tree(points: np.ndarray) -> cKDTree:
    """Return a search tree over points (n, D), unbalanced because that is faster to build."""
    return cKDTree(points, balanced_tree=False, compact_nodes=len(points) > MIN_POINTS_FOR_APPROXIMATE)


def find_neighbors(points: np.ndarray, k: int, device: str = "cpu") -> np.ndarray:
    """Return each point's index and those of its k nearest others, by distance, (n, D) -> (n, k + 1)."""
    if device != "cpu":
        return _move_self_first(_find_by_all_distances(torch.from_numpy(points).to(device), k + 1).cpu().numpy())
    large = len(points) > MIN_POINTS_FOR_APPROXIMATE
    order = np.asarray(build_tree(points).indices) if large else np.arange(len(points))
    ordered = points[order]  # neighbors in space are now neighbors in memory
    near = build_tree(ordered).query(ordered, k + 1, eps=SLACK if large else 0.0, workers=-1)[1]
    neighbors = np.empty_like(near)
    neighbors[order] = order[near]
    return _move_self_first(neighbors)


def _find_by_all_distances(points: Tensor, count: int) -> Tensor:
    """Return the `count` nearest points to each, itself first, (n, count); on a GPU faster than a tree."""
    squares = points.square().sum(1)
    neighbors = []
    for rows in split_rows(torch.arange(len(points), device=points.device), max(1, MAX_DISTANCES // len(points))):
        # |a - b|^2 without |a|^2, which is the same for all b. Rounding must not move the point itself back.
        near = squares - 2 * points[rows] @ points.T
        near[torch.arange(len(rows), device=points.device), rows] = -torch.inf
        neighbors.append(near.topk(count, largest=False).indices)
    return torch.cat(neighbors)


def _move_self_first(neighbors: np.ndarray) -> np.ndarray:
    """Put every point first in its own row: among coinciding points another one may come before it."""
    rows = np.arange(len(neighbors))
    for i in np.flatnonzero(neighbors[:, 0] != rows):
        neighbors[i] = [i, *neighbors[i][neighbors[i] != i][: neighbors.shape[1] - 1]]
    return neighbors


def label_components(neighbors: np.ndarray) -> np.ndarray:
    """Return the connected component of each point in the neighbor graph, (n, k) -> (n,); 0 is the largest."""
    n, k = neighbors.shape
    graph = csr_matrix((np.ones(n * k, np.int8), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    size = np.bincount(labels)
    rank = np.empty(len(size), int)
    rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return np.asarray(rank[labels])


def is_connected(neighbors: np.ndarray, k: int) -> bool:
    """Return whether the graph of the k nearest neighbors, from rows (n, at least k + 1), is connected."""
    return bool(label_components(neighbors[:, : k + 1]).max() == 0)
