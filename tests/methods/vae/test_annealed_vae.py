"""The annealed VAE: its capacity."""

import torch

from tests.methods.vae.helpers import build_case
from unweave.methods import AnnealedVAE


def test_the_capacity_grows_linearly_and_then_stays():
    for progress, capacity in ((0.0, 0.0), (0.25, 5.0), (0.5, 10.0), (1.0, 10.0)):
        method, net, batch = build_case(AnnealedVAE, gamma=7.0, capacity=10.0, anneal=0.5)
        terms = method.loss(net, batch | {"progress": torch.tensor(progress)})
        torch.testing.assert_close(terms["gap"], (terms["kl"] - capacity).abs())
        torch.testing.assert_close(terms["loss"], terms["rec"] + 7 * terms["gap"])  # the KL term is not counted twice
