"""Ridge regression inside of a loss: differentiable, and of operations that a CUDA graph can capture."""

from __future__ import annotations

import math

import torch
from torch import Tensor

RIDGE_STRENGTH = 0.01  # regularization relative to the mean squared norm of an input


def predict_by_ridge(u: Tensor, v: Tensor, u_new: Tensor) -> Tensor:
    """Return the predictions at u_new of a ridge regression from u to v, (n, ...), (n, ...), (m, ...) -> (m, ...).

    Solved in its dual form and in double precision. Differentiable.
    """
    U, V, T = (x.flatten(1).double() for x in (u, v, u_new))
    u_mean, v_mean = U.mean(0), V.mean(0)
    U, T = U - u_mean, T - u_mean
    inverse = invert_regularized(U @ U.mT, RIDGE_STRENGTH)
    return ((T @ U.mT) @ (inverse @ (V - v_mean)) + v_mean).to(v.dtype).reshape(len(u_new), *v.shape[1:])


def invert_regularized(gram: Tensor, strength: float) -> Tensor:
    """Return the inverse of `gram + strength * mean(diagonal) * I`, (n, n), by Newton-Schulz iterations.

    A CUDA graph can capture them, unlike a factorization. The error is squared by each, and eigenvalues lie between
    the regularization and the trace, so their number is known. The last one alone gives the gradient of the inverse.
    """
    n, eye = len(gram), torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    ridge = strength * gram.diagonal().mean() + torch.finfo(torch.float32).tiny
    A = gram + ridge * eye
    fixed, condition = A.detach(), 1 + n / strength
    X = eye * 2 / (fixed.diagonal().sum() + (2 - n) * ridge.detach())  # 2 / (largest + smallest eigenvalue)
    for _ in range(math.ceil(math.log2(condition)) + 5):
        X = 2 * X - X @ (fixed @ X)
    return 2 * X - X @ (A @ X)
