"""FactorVAE: the critic, its batches and gradients."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.methods.vae.helpers import D, build_case, sample_posterior
from unweave import InputError
from unweave.methods import FactorVAE
from unweave.methods.vae.base import posterior
from unweave.nn.functional import apply_frozen, permute_columns


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_codes_of_a_feature_are_shuffled_together():
    method = FactorVAE(latent_dim=4, feature_dim=2)
    assert method.feature_groups() == [[0, 1], [2, 3]]
    order = method.sample_noise(50, rng())["shuffle"].argsort(0).repeat_interleave(2, 1)
    z = torch.arange(50.0)[:, None].expand(50, 4)
    mixed = permute_columns(z, order)
    assert torch.equal(mixed[:, 0], mixed[:, 1]) and torch.equal(mixed[:, 2], mixed[:, 3])
    assert not torch.equal(mixed[:, 0], mixed[:, 2])
    with pytest.raises(InputError, match="divisor of latent_dim"):
        FactorVAE(latent_dim=4, feature_dim=3, steps=1, layers=(4,), critic=(4,)).fit(np.random.rand(20, 3))
    with pytest.raises(InputError, match="at least two"):
        FactorVAE(latent_dim=4, feature_dim=4, steps=1, layers=(4,), critic=(4,)).fit(np.random.rand(20, 3))


def test_the_critic_compares_codes_with_shuffled_codes_of_a_second_batch():
    method, net, batch = build_case(FactorVAE, critic=(7,), gamma=3.0)
    _, z, kl = sample_posterior(net, batch)
    assert not torch.equal(batch["x"], batch["x2"])
    q2 = posterior(net, batch["x2"])
    z2 = q2.mean + batch["eps2"] * (q2.logvar / 2).exp()
    order = batch["shuffle"].argsort(0)
    shuffled = torch.stack([z2[order[:, j], j] for j in range(D)], 1)
    tc = net.critic(z).mean()
    real, fake = net.critic(z).sigmoid().log().mean(), (1 - net.critic(shuffled).sigmoid()).log().mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["tc"], tc)
    torch.testing.assert_close(terms["critic"], -0.5 * (real + fake))
    torch.testing.assert_close(terms["loss"], terms["rec"] + kl + 3 * tc + terms["critic"])
    assert {k: (r.betas, r.lr) for k, r in method.optimizers().items()} == {
        "": ((0.9, 0.999), 5e-4),
        "critic.": ((0.5, 0.9), 1e-4),
    }


def test_vae_and_critic_get_the_gradient_of_their_own_loss():
    method, net, batch = build_case(FactorVAE, critic=(7,))
    terms = method.loss(net, batch)
    critic, encoder = list(net.critic.parameters()), list(net.encoder.parameters())
    (a,) = torch.autograd.grad(terms["critic"], encoder[:1], retain_graph=True, allow_unused=True)
    (b,) = torch.autograd.grad(terms["tc"], critic[:1], retain_graph=True, allow_unused=True)
    assert a is None
    assert b is None
    assert torch.autograd.grad(terms["tc"], encoder[:1], retain_graph=True)[0].abs().sum() > 0
    assert torch.autograd.grad(terms["critic"], critic[:1])[0].abs().sum() > 0
    assert not apply_frozen(net.critic, torch.ones(2, D)).requires_grad


def test_a_trained_critic_estimates_the_total_correlation():
    """The logit of the best critic is log q(z) / prod q(z_j), whose mean is the total correlation, of known value."""
    rho, n = 0.8, 4_000
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(n, 2, generator=rng)
    z[:, 1] = rho * z[:, 0] + math.sqrt(1 - rho**2) * z[:, 1]
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(critic.parameters(), 5e-3)
    for _ in range(300):
        fake = torch.stack([z[torch.randperm(n, generator=rng), j] for j in range(2)], 1)
        loss = F.softplus(-critic(z)).mean() + F.softplus(critic(fake)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert critic(z).mean().item() == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.1)
