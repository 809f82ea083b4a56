"""DIP-VAE: the covariance penalty."""

import math

import numpy as np
import pytest
import torch

from tests.methods.vae.helpers import build_case, sample_posterior
from unweave.methods import DIPVAE
from unweave.nn.functional import Normal, covariance


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_the_penalty_uses_the_covariance_of_means_or_of_samples(variant):
    method, net, batch = build_case(DIPVAE, variant=variant, off_diagonal=3.0, diagonal=5.0)
    q, _, kl = sample_posterior(net, batch)
    C = np.cov(q.mean.detach().numpy().T, bias=True)
    if variant == "ii":
        C = C + np.diag(q.logvar.exp().mean(0).detach().numpy())  # on the diagonal, and nowhere else
    off = C - np.diag(np.diag(C))
    expected = 3 * (off**2).sum() + 5 * ((np.diag(C) - 1) ** 2).sum()
    terms = method.loss(net, batch)
    assert terms["dip"].item() == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(terms["loss"], terms["rec"] + kl + terms["dip"])


def test_the_penalty_is_zero_for_independent_samples_of_variance_one():
    z = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    q = Normal(z * math.sqrt(0.5), torch.full_like(z, math.log(0.5)))
    method, _, _ = build_case(DIPVAE, variant="ii")
    assert method.penalty(q).item() == pytest.approx(0, abs=1e-6)
    torch.testing.assert_close(covariance(z), torch.eye(2))
