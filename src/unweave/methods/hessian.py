"""HLLE + ICA: disentangling without supervision, where the data are locally isometric to their factors."""

from __future__ import annotations

from typing import Literal, final

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from torch import Tensor

from ..data import FactorData
from ..errors import InputError
from ..method import Method
from .linear import flat, independent, principal_components

MOST_NEIGHBORS = 64  # beyond this, "auto" rather says that the data are not one piece


@final
class HessianICA(Method):
    """Hessian eigenmaps, then ICA: finds the factors of a locally isometric manifold up to order and sign.

    Horan, Richardson and Weiss (2021), Theorem 1. If x = g(z), J(z)'J(z) = I and the factors z are not Gaussian, the
    null space of the Hessian operator is A z + b, and linear ICA undoes A. New points are placed by the weights that
    rebuild them from their nearest neighbours (Saul and Roweis, 2003).
    """

    paper = "Horan, Richardson and Weiss (2021), When is unsupervised disentanglement possible?"

    n_neighbors: int | Literal["auto"] = "auto"
    """size of a neighbourhood: at least 1 + d + d(d+1)/2, larger for noisy data.
    auto takes twice the least, and more where the neighbour graph would fall into parts"""
    project: int = 50
    """principal components kept before neighbours are sought: faster, and smooths pixel noise; 0 keeps all"""
    samples: int = 3_000
    """points to draw where the data are a generator or a large grid; your own rows are always all used"""

    def learn(self, data: FactorData) -> None:
        x = without_repeats(flat(data, self.samples, self.seed))  # (n, features)
        n, features = x.shape
        d = self.latent_dim
        k = _neighbourhood(n, features, d, self.n_neighbors)
        if self.project and self.project < d:
            raise InputError(f"project={self.project}: wanted 0 for all, or at least latent_dim={d} components")
        keep = min(self.project or features, features, n - 1)
        self.mean_, self.components_ = principal_components(x, keep, self.seed, least=d)
        self.points_ = (x - self.mean_) @ self.components_.T  # (n, keep)
        k = self.n_neighbors_ = _connected(self.points_, k, may_grow=self.n_neighbors == "auto")
        y = _null_space(self.points_, d, k, self.seed)  # (n, d), y = A z + b
        self.codes_ = (y - y.mean(0)) @ independent(y - y.mean(0), self.seed).T  # (n, d)

    def encode(self, x: Tensor) -> Tensor:
        q = (x.flatten(1).double() - self.mean_) @ self.components_.T  # (n, keep)
        search = NearestNeighbors(n_neighbors=self.n_neighbors_).fit(self.points_.numpy())
        near = torch.from_numpy(search.kneighbors(q.numpy(), return_distance=False))  # (n, k)
        weights = _rebuilding_weights(self.points_[near] - q[:, None])
        return torch.einsum("nk,nkd->nd", weights, self.codes_[near])


def without_repeats(x: Tensor) -> Tensor:
    """Every row once, in the order of their first appearance: neighbours that coincide say nothing of the manifold."""
    rows = np.ascontiguousarray(x.numpy())
    _, first = np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))), return_index=True)
    return x if len(first) == len(x) else x[np.sort(first)]


def _null_space(points: Tensor, d: int, k: int, seed: int) -> Tensor:
    """The d non-constant directions in which the Hessian operator vanishes, (n, D) -> (n, d)."""
    hlle = LocallyLinearEmbedding(n_components=d, n_neighbors=k, method="hessian", random_state=seed)
    try:
        return torch.from_numpy(hlle.fit_transform(points.numpy()))
    except (ValueError, RuntimeError) as error:
        # The sparse solver factorises the matrix, which fails where its null space is exact; the dense one does not.
        if len(points) > 5_000:
            raise InputError(
                f"no null space was found for {len(points)} points ({error}); change n_neighbors"
            ) from error
        return torch.from_numpy(hlle.set_params(eigen_solver="dense").fit_transform(points.numpy()))


def _rebuilding_weights(delta: Tensor) -> Tensor:
    """Weights w, sum 1, that minimise |sum_j w_j delta_j|^2, a little regularised: (n, k, D) -> (n, k)."""
    gram = delta @ delta.mT  # (n, k, k)
    trace = gram.diagonal(dim1=1, dim2=2).sum(1).clamp(min=torch.finfo(gram.dtype).tiny)
    gram = gram + 1e-3 * trace[:, None, None] * torch.eye(gram.shape[1], dtype=gram.dtype)
    w = torch.linalg.solve(gram, torch.ones(gram.shape[:2], dtype=gram.dtype))
    return w / w.sum(1, keepdim=True)


def _neighbourhood(n: int, features: int, d: int, wanted: int | Literal["auto"]) -> int:
    """How many neighbours to take, or why there can be none."""
    least = 1 + d + d * (d + 1) // 2
    if d > features:
        raise InputError(f"latent_dim={d} is more than the data allow: n_features={features}; lower latent_dim")
    k = min(2 * least, max(n - 1, least)) if wanted == "auto" else wanted
    if k < least:
        raise InputError(f"n_neighbors={k} is too few for latent_dim={d}: a Hessian needs at least {least}")
    if n <= k:
        raise InputError(f"n_samples={n} is too few for n_neighbors={k}: give more (repeats count once), or take fewer")
    return k


def _connected(points: Tensor, k: int, *, may_grow: bool) -> int:
    """The number of neighbours, from k on, that hold the points together as one graph."""
    parts, member = connected_components(kneighbors_graph(points.numpy(), k), directed=False)
    larger = min(k + max(1, k // 4), len(points) - 1, MOST_NEIGHBORS)
    if parts == 1:
        return k
    if may_grow and larger > k:
        return _connected(points, larger, may_grow=True)
    sizes = torch.from_numpy(member).bincount().sort(descending=True).values.tolist()
    shown = ", ".join(map(str, sizes[:5])) + (", ..." if parts > 5 else "")
    raise InputError(
        f"the neighbour graph of n_neighbors={k} falls into {parts} parts (sizes {shown}), and each would look like a "
        "factor of its own: raise n_neighbors, or learn from each part alone"
    )
