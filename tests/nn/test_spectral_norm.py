"""Spectral normalization."""

import torch
from torch import nn

from unweave.nn.spectral_norm import apply_spectral_norm, divide_by_spectral_norm


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
