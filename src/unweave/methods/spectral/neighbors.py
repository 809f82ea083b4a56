"""Nearest neighbors, and the graph they make."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from torch import Tensor

from unweave.data.core import split_rows

ROOM = 2**28  # distances that a GPU holds at once, 2 GiB
LARGE = 20_000  # from so many points on it pays to search in the order of the tree's leaves, and with
SLACK = 0.1  # a neighbor may be so much further away than the true one: nearly all are exact, and found much faster


def build_tree(points: np.ndarray) -> cKDTree:
    """A search tree that is quick to build."""
    return cKDTree(points, balanced_tree=False, compact_nodes=len(points) > LARGE)


def find_neighbors(points: np.ndarray, k: int, device: str = "cpu") -> np.ndarray:
    """Each point itself and its k nearest others, in order of distance, (n, D) -> (n, k + 1)."""
    if device != "cpu":
        return _self_first(_by_distance(torch.from_numpy(points).to(device), k + 1).cpu().numpy())
    many = len(points) > LARGE
    order = np.asarray(build_tree(points).indices) if many else np.arange(len(points))
    ordered = points[order]  # neighbors in space are now neighbors in memory
    near = build_tree(ordered).query(ordered, k + 1, eps=SLACK if many else 0.0, workers=-1)[1]
    found = np.empty_like(near)
    found[order] = order[near]
    return _self_first(found)


def _by_distance(points: Tensor, count: int) -> Tensor:
    """The nearest points to each, (n, count), by all distances: what a GPU does faster than it could search a tree."""
    squares = points.square().sum(1)
    found = []
    for rows in split_rows(torch.arange(len(points), device=points.device), max(1, ROOM // len(points))):
        # |a - b|^2 less what is the same for all b; the point itself is the nearest, whatever rounding says
        near = squares - 2 * points[rows] @ points.T
        near[torch.arange(len(rows), device=points.device), rows] = -torch.inf
        found.append(near.topk(count, largest=False).indices)
    return torch.cat(found)


def _self_first(near: np.ndarray) -> np.ndarray:
    """Where points coincide, another one may be listed before the point itself."""
    rows = np.arange(len(near))
    wrong = np.flatnonzero(near[:, 0] != rows)
    for i in wrong:
        near[i] = [i, *near[i][near[i] != i][: near.shape[1] - 1]]
    return near


def label_components(near: np.ndarray) -> np.ndarray:
    """Which part of the neighbor graph each point is in, (n,); parts are numbered from the largest on."""
    n, k = near.shape
    graph = csr_matrix((np.ones(n * k, np.int8), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    member = connected_components(graph, directed=False)[1]
    size = np.bincount(member)
    rank = np.empty(len(size), int)
    rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return np.asarray(rank[member])
