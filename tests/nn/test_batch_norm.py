"""Batch normalization inside of a pure function."""

import copy

import torch
from torch import nn

from unweave.nn.batch_norm import BatchNormLayer, BatchNormNetwork


def test_batches_are_normalized_as_torch_does_and_later_by_fixed_statistics():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Unflatten(1, (2, 2, 2)), nn.ConvTranspose2d(2, 5, 4, 2, 1),
                          nn.ReLU(), nn.Conv2d(5, 1, 3))  # fmt: skip
    usual, x = torch.randn(40, 3), torch.randn(7, 3)
    net = BatchNormNetwork(copy.deepcopy(plain))
    theirs = nn.Sequential(*plain[:2], nn.BatchNorm1d(8), *plain[2:5], nn.BatchNorm2d(5), plain[5])
    for own, other in zip(
        (m for m in net.modules() if isinstance(m, BatchNormLayer)), (theirs[2], theirs[6]), strict=True
    ):
        for weights in (own, other):
            weights.weight.data, weights.bias.data = (
                torch.linspace(0.5, 2, len(own.bias)),
                torch.arange(len(own.bias)) / 3,
            )
        other.momentum = 1.0  # it remembers the last batch alone
    torch.testing.assert_close(net(x, rows=7), theirs(x))
    torch.testing.assert_close(net(torch.cat([x, usual]), rows=7)[:7], theirs(x))  # the others do not count
    net.freeze_statistics(usual)
    theirs(usual)
    for layer, n in ((theirs[2], 40), (theirs[6], 40 * 16)):
        layer.running_var *= (n - 1) / n  # torch remembers the unbiased one
    torch.testing.assert_close(net(x), theirs.eval()(x))
    torch.testing.assert_close(net(x[:1]), net(x)[:1])  # whatever else is in the batch
