"""iVAE: the prior that depends on a label."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.methods.vae.helpers import D, N, build_case, sample_posterior
from unweave import InputError
from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.methods import IVAE


def test_the_kl_term_is_to_the_prior_of_the_label():
    method, net, batch = build_case(IVAE, beta=2.0, noise_variance=0.1)
    assert method.classes_ == 4
    q, z, _ = sample_posterior(net, batch)
    u = F.one_hot(batch["u"], 4).float()
    prior = torch.distributions.Normal(torch.zeros(N, D), (net.prior(u) / 2).exp())
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(q.mean, (q.logvar / 2).exp()), prior)
    rec = ((net.decoder(z) - batch["x"]) ** 2).sum(1).mean() / (2 * 0.1)
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + 2 * kl.sum(1).mean())
    other = method.loss(net, batch | {"u": (batch["u"] + 1) % 4})
    assert other["kl"] != method.loss(net, batch)["kl"]


def test_the_label_is_found_and_needs_two_classes():
    data = Table(torch.rand(20, 3), torch.zeros(20, 1), [Factor("only", 1, "nominal")])
    with pytest.raises(InputError, match="'only' has one value only"):
        IVAE(steps=2).fit(data)
    two = Table(torch.rand(20, 3), torch.zeros(20, 2), [Factor("a", 2, "nominal"), Factor("b", 5, "nominal")])
    assert build_case(IVAE, two)[0].classes_ == 2
    assert build_case(IVAE, two, label="b")[0].classes_ == 5
    with pytest.raises(InputError, match="no factor named 'c'"):
        build_case(IVAE, two, label="c")
    with pytest.raises(InputError, match="Unknown label type"):
        IVAE(steps=2).fit(np.random.default_rng(0).normal(size=(9, 2)), np.linspace(0, 1, 9))


def test_the_likelihood_has_the_constant_of_the_normal_distribution():
    """-log p = distance^2 / (2 v) + d/2 log(2 pi v), of which the loss has the first term."""
    method, *_ = build_case(IVAE, noise_variance=0.1)
    unit = build_case(IVAE, noise_variance=1.0)[0].likelihood_constant()
    d = method.shape_[0]
    assert unit == pytest.approx(d / 2 * np.log(2 * np.pi))
    assert method.likelihood_constant() == pytest.approx(unit + d / 2 * np.log(0.1))


def test_samples_come_from_the_priors_of_the_labels():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [300, 100])
    x = (rng.normal(size=(400, 2)) * np.where(y == 0, 5.0, 0.5)[:, None] @ rng.normal(size=(2, 4))).astype(np.float32)
    method = IVAE(latent_dim=2, layers=(32,), steps=1_000, lr=3e-3).fit(x, y)
    torch.testing.assert_close(method.class_shares_, torch.tensor([0.75, 0.25]), atol=0.03, rtol=0)
    drawn = method.sample(2_000)
    assert drawn.shape == (2_000, 4)
    ratio = drawn.std(0) / x.std(0)
    assert ((ratio > 0.6) & (ratio < 1.6)).all()
    with pytest.raises(InputError, match="depends on the label"):
        method.kl_per_code(torch.from_numpy(x))
