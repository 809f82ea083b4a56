"""The point cloud that is embedded, with its neighbors; and an embedding of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.methods.spectral.isometry import ColumnChoice, Pairs, closest_pairs
from unweave.methods.spectral.neighbors import find_neighbors, label_components
from unweave.methods.spectral.tangent_space import gram_matrices, tangent_coordinates
from unweave.utils.errors import InputError

MAX_SCORED_POINTS = 1_000  # points whose near pairs score an embedding during the search
SCORED_PAIRS = 0.01  # fraction of their pairs; 5 %, as in the score, would reach the next turn of a rolled-up manifold
MAX_GRAM_ELEMENTS = 2**27  # numbers in Gram matrices that are cached for all k


class PointCloud(NamedTuple):
    """Points to embed, and what all their embeddings share."""

    points: Tensor  # (n, D)
    neighbors: np.ndarray  # (n, max_neighbors + 1): each point's own index, then its neighbors by distance
    grams: list[Tensor] | None  # Gram matrices (n, max_neighbors, max_neighbors) in batches, where they fit into memory
    scored: np.ndarray  # (s,): rows whose near pairs score an embedding
    pairs: Pairs  # near pairs of the scored rows
    notes: tuple[str, ...]  # sentences for the diagnosis
    device: str = "cpu"  # where tangent spaces are computed
    rows: Tensor = torch.empty(0)  # the first observations in their order, which landmarks have not, (r, D)

    def members(self, k: int) -> np.ndarray:
        """Return the k neighbors of each point, (n, k).

        A point in no neighborhood replaces the last member of its own. Nothing would constrain its code otherwise.
        """
        neighbors = self.neighbors[:, 1 : k + 1].copy()
        isolated = self._isolated(k)
        neighbors[isolated, -1] = isolated
        return neighbors

    def tangent_coordinates(self, k: int, d: int) -> Tensor:
        """Return tangent coordinates of the members of each neighborhood, (n, k, d)."""
        points = self.points.to(self.device)
        U = tangent_coordinates(self.grams or gram_matrices(points, self.neighbors[:, 1 : k + 1]), k, d)
        isolated = self._isolated(k)
        if len(isolated):
            own = tangent_coordinates(gram_matrices(points, self.members(k)[isolated]), k, d)
            U[torch.from_numpy(isolated).to(U.device)] = own
        return U

    def _isolated(self, k: int) -> np.ndarray:
        """Return the points in no neighborhood of size k: each would be a null vector of its own."""
        return np.flatnonzero(np.bincount(self.neighbors[:, 1 : k + 1].ravel(), minlength=len(self.neighbors)) == 0)


class Embedding(NamedTuple):
    """An embedding of a point cloud in d dimensions, and how isometric it is."""

    k: int
    d: int
    y: np.ndarray  # (n, d)
    values: np.ndarray  # eigenvalues, ascending; the first d belong to the embedding
    choice: ColumnChoice  # the eigenvectors taken, and their local isometry
    votes: dict[str, float]  # estimates of the dimension, where it was chosen automatically
    angle: np.ndarray | None = None  # (n,): a circular code in radians, in which case y has d - 1 columns


def build_cloud(
    points: Tensor,
    rng: np.random.Generator,
    *,
    n_neighbors: tuple[int, int],
    size_name: str = "n_samples",
    on_disconnected: Literal["error", "largest"] = "error",
    device: str = "cpu",
    notes: tuple[str, ...] = (),
) -> PointCloud:
    """Return points (n, D) with their neighbors, and the near pairs that score embeddings.

    Args:
        points: The points to embed.
        rng: Chooses the points that are scored.
        n_neighbors: The smallest and the largest neighborhood that will be tried.
        size_name: What an error calls the number of points.
        on_disconnected: With "largest", keep only the largest connected component of the neighbor graph.
        device: Where neighbors and tangent spaces are computed.
        notes: Sentences for the diagnosis.
    """
    least, most = n_neighbors
    n = len(points)
    if n <= least:
        raise InputError(
            f"{size_name}={n} is too few for n_neighbors={least}: "
            "give more (repeats count once), or take fewer neighbors"
        )
    neighbors = find_neighbors(points.numpy(), min(most, n - 1), device)
    if on_disconnected == "largest":
        # Components of an ordinary neighborhood: one large enough to reach a far clump would bridge the gap.
        largest = label_components(neighbors[:, : min(2 * least, neighbors.shape[1] - 1) + 1]) == 0
        if not largest.all():
            note = f"{int((~largest).sum()):,} of {n:,} points are in other parts of the graph and were left out."
            return build_cloud(
                points[torch.from_numpy(largest)], rng, n_neighbors=n_neighbors, on_disconnected=on_disconnected,
                device=device, notes=(*notes, note),
            )  # fmt: skip
    scored = np.sort(rng.choice(n, MAX_SCORED_POINTS, replace=False)) if n > MAX_SCORED_POINTS else np.arange(n)
    fraction = min(1.0, max(SCORED_PAIRS, 10 / (len(scored) - 1)))  # at least five pairs for each point
    cacheable = n * neighbors.shape[1] ** 2 <= MAX_GRAM_ELEMENTS
    grams = list(gram_matrices(points.to(device), neighbors[:, 1:])) if cacheable else None
    return PointCloud(points, neighbors, grams, scored, closest_pairs(points.numpy()[scored], fraction), notes, device)
