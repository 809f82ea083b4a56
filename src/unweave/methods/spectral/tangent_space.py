"""Tangent spaces of a point cloud: coordinates of each point's neighbors, for batches of points at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import normalize

from unweave.data.core import split_rows

BATCH_SIZE = 2_048  # points: a batch fits into the processor's cache
GPU_BATCH_SIZE = 8 * BATCH_SIZE  # points that keep a GPU busy; cuSOLVER fails on batches of 40,000 small matrices
MAX_GPU_ELEMENTS = 2**28  # numbers in a batch of neighborhoods on a GPU
SUBSPACE_ITERATIONS = 2  # with the squared Gram matrix
EXTRA_DIRECTIONS = 2  # iterated besides those asked for, which speeds up convergence


def gram_matrices(points: Tensor, neighbors: np.ndarray) -> Iterator[Tensor]:
    """Yield the Gram matrices of each point's neighbors (n, k), relative to the first of them, (batch, k, k).

    Differences are computed in double precision, because neighbors are close, and multiplied in single precision.
    """
    gpu_batch = max(1, min(GPU_BATCH_SIZE, MAX_GPU_ELEMENTS // (neighbors.shape[1] * points.shape[1])))
    batch = BATCH_SIZE if points.device.type == "cpu" else gpu_batch
    for rows in split_rows(torch.from_numpy(neighbors).to(points.device), batch):
        local = (points[rows] - points[rows[:, :1]]).float()  # (batch, k, D)
        yield local @ local.mT


def tangent_coordinates(grams: Iterable[Tensor], k: int, d: int) -> Tensor:
    """Return orthonormal coordinates of each point's k neighbors along their d principal directions, (n, k, d).

    The Gram matrices may be of more than k neighbors: those of the first k are their leading blocks.
    """
    return torch.cat([leading_singular_vectors(gram[:, :k, :k], d) for gram in grams])


def leading_singular_vectors(gram: Tensor, d: int) -> Tensor:
    """Return the d leading left singular vectors of centered clouds from Gram matrices, (n, k, k) -> (n, k, d).

    By subspace iteration: few directions are needed, and full decompositions of many small matrices are slow.
    """
    gram = gram - gram.mean(1, keepdim=True)
    gram = gram - gram.mean(2, keepdim=True)  # as if the cloud had been centered
    gram = gram / gram.diagonal(dim1=1, dim2=2).sum(1).clamp(min=torch.finfo(gram.dtype).tiny)[:, None, None]
    width = min(d + EXTRA_DIRECTIONS, gram.shape[1])
    start = torch.randn(1, gram.shape[1], width, generator=torch.Generator().manual_seed(0), dtype=gram.dtype)
    Q = orthonormalize(gram @ start.to(gram.device))
    for _ in range(SUBSPACE_ITERATIONS):
        Q = orthonormalize(gram @ (gram @ Q))
    small = Q.mT @ (gram @ Q)  # (n, width, width)
    vectors = torch.linalg.eigh((small + small.mT) / 2)[1]
    return Q @ vectors[:, :, -d:].flip(2)


def min_hessian_neighbors(d: int) -> int:
    """Return the coefficients of a quadratic function of d coordinates: a constant, slopes and second derivatives."""
    return 1 + d + d * (d + 1) // 2


def second_derivatives(U: Tensor) -> Tensor:
    """Return estimators of the second derivatives in tangent coordinates (n, k, d), (n, d(d+1)/2, k).

    The rows of each are orthonormal, and orthogonal to constants and to linear functions of the coordinates.
    """
    d = U.shape[2]
    i, j = torch.triu_indices(d, d)

    def estimator(u: Tensor) -> Tensor:
        u = u.double()
        design = torch.cat([torch.ones_like(u[:, :, :1]), u, u[:, :, i] * u[:, :, j]], 2)
        return orthonormalize(design)[:, :, 1 + d :].mT  # (n, d(d+1)/2, k)

    return torch.cat([estimator(u) for u in split_rows(U, BATCH_SIZE if U.device.type == "cpu" else GPU_BATCH_SIZE)])


def orthonormalize(A: Tensor) -> Tensor:
    """Return orthonormal bases of the columns, in their order, (n, k, m) -> (n, k, m).

    By Householder reflections on a CPU. On a GPU, which would do these one matrix at a time, by Gram-Schmidt.
    """
    return torch.linalg.qr(A)[0] if A.device.type == "cpu" else gram_schmidt(A)


def gram_schmidt(A: Tensor) -> Tensor:
    """Return orthonormal bases of the columns by Gram-Schmidt in double precision, (n, k, m) -> (n, k, m).

    Each column is projected three times. If it depends on those before it, the first projection leaves only rounding
    errors, or zero, where a tiny random direction takes over. Normalized and projected again, these are a valid basis.
    """
    Q = A.to(torch.float64, copy=True)
    k, m = A.shape[1:]
    random = torch.randn(m, 3, k, 1, generator=torch.Generator().manual_seed(0), dtype=Q.dtype).to(A.device)
    for j in range(m):
        v, before = Q[:, :, j : j + 1], Q[:, :, :j]
        for direction in random[j]:
            v = normalize(v + 1e-30 * direction, dim=1, eps=0.0)
            v = v - before @ (before.mT @ v)
        Q[:, :, j : j + 1] = normalize(v, dim=1)
    return Q.to(A.dtype)


def assemble_rows(rows: Tensor, neighbors: np.ndarray) -> csr_matrix:
    """Return local rows (n, r, k) over neighbors (n, k) as one sparse matrix over all points, (n * r, n)."""
    n, r, k = rows.shape
    columns = np.repeat(neighbors[:, None, :], r, 1).ravel().astype(np.int32)
    starts = np.arange(0, n * r * k + 1, k, dtype=np.int64 if n * r * k > 2**31 else np.int32)
    return csr_matrix((rows.reshape(-1).cpu().numpy(), columns, starts), shape=(n * r, n))
