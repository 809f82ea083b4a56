"""Around every point: coordinates of its neighbors in the tangent space, and what a smooth function cannot do there.

Everything is done for batches of points at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import normalize

from unweave.data.core import split_rows

BATCH = 2_048  # points at a time: a batch fits into the processor's cache
MANY = 8 * BATCH  # and so many keep a GPU busy; cuSOLVER refuses to take apart 40,000 small matrices at once
ROOM = 2**28  # numbers that a batch of neighborhoods may have on a GPU
ROUNDS = 2  # of subspace iteration with the squared Gram matrix


def gram_matrices(points: Tensor, near: np.ndarray) -> Iterator[Tensor]:
    """Inner products of the differences between each point's neighbors and the first of them, (n, k, k) in batches.

    Differences are taken in double precision and used in single: distances between neighbors are small.
    """
    many = max(1, min(MANY, ROOM // (near.shape[1] * points.shape[1])))
    for rows in split_rows(torch.from_numpy(near).to(points.device), BATCH if points.device.type == "cpu" else many):
        cloud = (points[rows] - points[rows[:, :1]]).float()
        yield cloud @ cloud.mT


def tangent_coordinates(batches: Iterable[Tensor], k: int, d: int) -> Tensor:
    """Orthonormal coordinates of each point's k neighbors along the d main directions of their cloud, (n, k, d).

    From the Gram matrices of these neighbors, or of more: those of fewer neighbors are their corners.
    """
    return torch.cat([main_directions(gram[:, :k, :k], d) for gram in batches])


def main_directions(gram: Tensor, d: int) -> Tensor:
    """The d leading left singular vectors of centered clouds, from their Gram matrices, (n, k, k) -> (n, k, d).

    By subspace iteration: only a few directions are expected, and full decompositions of many small matrices are slow.
    Two spare directions speed it up.
    """
    gram = gram - gram.mean(1, keepdim=True)
    gram = gram - gram.mean(2, keepdim=True)  # as if the cloud had been centered
    gram = gram / gram.diagonal(dim1=1, dim2=2).sum(1).clamp(min=torch.finfo(gram.dtype).tiny)[:, None, None]
    width = min(d + 2, gram.shape[1])
    start = torch.randn(1, gram.shape[1], width, generator=torch.Generator().manual_seed(0), dtype=gram.dtype)
    Q = orthonormalize(gram @ start.to(gram.device))
    for _ in range(ROUNDS):
        Q = orthonormalize(gram @ (gram @ Q))
    small = Q.mT @ (gram @ Q)  # (n, width, width)
    vectors = torch.linalg.eigh((small + small.mT) / 2)[1]
    return Q @ vectors[:, :, -d:].flip(2)


def orthonormalize(A: Tensor) -> Tensor:
    """An orthonormal basis of the columns, each after those before it, (n, k, m) -> (n, k, m).

    By Householder's method; on a GPU, whose library does that one matrix at a time, by Gram and Schmidt's.
    """
    return torch.linalg.qr(A)[0] if A.device.type == "cpu" else gram_schmidt(A)


def gram_schmidt(A: Tensor) -> Tensor:
    """The same basis up to signs: from each column those before it are taken away, in double precision.

    Three times: of a column that depends on those before it the first leaves rounding errors, or a nothing that any
    direction may stand in for, which serve once they are as long as the rest and projected again.
    """
    Q = A.to(torch.float64, copy=True)
    k, m = A.shape[1:]
    any_other = torch.randn(m, 3, k, 1, generator=torch.Generator().manual_seed(0), dtype=Q.dtype).to(A.device)
    for j in range(m):
        v, before = Q[:, :, j : j + 1], Q[:, :, :j]
        for direction in any_other[j]:
            v = normalize(v + 1e-30 * direction, dim=1, eps=0.0)
            v = v - before @ (before.mT @ v)
        Q[:, :, j : j + 1] = normalize(v, dim=1)
    return Q.to(A.dtype)


def assemble_rows(rows: Tensor, near: np.ndarray) -> csr_matrix:
    """Local rows (n, r, k) as a sparse matrix over all points, (n * r, n)."""
    n, r, k = rows.shape
    columns = np.repeat(near[:, None, :], r, 1).ravel().astype(np.int32)
    starts = np.arange(0, n * r * k + 1, k, dtype=np.int64 if n * r * k > 2**31 else np.int32)
    return csr_matrix((rows.reshape(-1).cpu().numpy(), columns, starts), shape=(n * r, n))
