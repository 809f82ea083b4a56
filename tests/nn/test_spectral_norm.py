"""Spectral normalization."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from unweave.nn import spectral_norm
from unweave.nn.spectral_norm import apply_spectral_norm, divide_by_spectral_norm


@pytest.mark.parametrize("iterations", [1, 2, 5, 6])
def test_powers_of_a_matrix_are_iterations_one_by_one(iterations, monkeypatch):
    monkeypatch.setattr(spectral_norm, "ITERATIONS", iterations)
    W = torch.randn(4, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    start, matrix = torch.arange(1.0, 5, dtype=torch.float64), W.flatten(1)
    u = start
    for _ in range(iterations):
        v = F.normalize(matrix.detach().T @ u, dim=0)
        u = F.normalize(matrix.detach() @ v, dim=0)
    weights = torch.arange(24.0, dtype=torch.float64).reshape(4, 3, 2)
    found, expected = divide_by_spectral_norm(W, start), W / (u @ matrix @ v)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad((y * weights).sum(), W)[0] for y in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_normalized_layers_have_a_largest_singular_value_near_one():
    torch.manual_seed(0)
    W = torch.randn(20, 30)
    found = float(torch.linalg.matrix_norm(divide_by_spectral_norm(W, W.sum(1)), 2))
    assert 1 - 1e-4 <= found < 1.2  # power iteration can only fall short of the largest
    rank_one = torch.outer(torch.randn(5), torch.randn(7))
    torch.testing.assert_close(
        divide_by_spectral_norm(rank_one, rank_one.sum(1)), rank_one / torch.linalg.matrix_norm(rank_one, 2)
    )
    net = apply_spectral_norm(nn.Sequential(nn.Conv2d(2, 3, 4, 2, 1), nn.Flatten(), nn.Linear(12, 2)))
    bias = [net[0].bias, net[2].bias]
    out = net(torch.ones(1, 2, 4, 4))
    with torch.no_grad():
        for layer, b in zip((net[0], net[2]), bias, strict=True):
            layer.weight.mul_(7)
            b.mul_(1)
    torch.testing.assert_close(net(torch.ones(1, 2, 4, 4)), out, rtol=1e-4, atol=1e-5)  # the scale does not matter
