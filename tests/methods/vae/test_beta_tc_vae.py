"""beta-TCVAE: estimators of the total correlation."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.methods.vae.helpers import SMALL, N, build_case, sample_posterior
from unweave import InputError
from unweave.data.conversion import as_data
from unweave.data.core import Factor
from unweave.methods import BetaTCVAE, FactorVAE
from unweave.nn.functional import (
    pairwise_log_densities,
    stratified_log_weights,
    total_correlation,
    uniform_log_weights,
)


@pytest.mark.parametrize(
    ("estimator", "weights"), [("weighted", uniform_log_weights), ("stratified", stratified_log_weights)]
)
def test_the_loss_is_kl_plus_beta_minus_one_times_tc(estimator, weights):
    method, net, batch = build_case(BetaTCVAE, beta=6.0, estimator=estimator)
    assert method.n_observations_ == 50
    q, z, kl = sample_posterior(net, batch)
    tc = total_correlation(pairwise_log_densities(z, q), weights(N, 50)).mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["tc"], tc)
    torch.testing.assert_close(terms["loss"], terms["rec"] + kl + 5 * tc)
    plain, _, _ = build_case(BetaTCVAE, beta=1.0, estimator=estimator)
    torch.testing.assert_close(plain.loss(net, batch)["loss"], terms["rec"] + kl)


def test_estimators_differ_in_value_but_little_in_gradient():
    grads = []
    for estimator in ("weighted", "stratified"):
        method, net, batch = build_case(BetaTCVAE, estimator=estimator)
        grads.append(torch.autograd.grad(method.loss(net, batch)["tc"], next(net.encoder.parameters()))[0])
    assert not torch.allclose(*grads)
    assert F.cosine_similarity(grads[0].flatten(), grads[1].flatten(), 0) > 0.5


def test_batches_of_one_and_batches_larger_than_the_data_are_refused():
    for method in (FactorVAE, BetaTCVAE):
        with pytest.raises(InputError, match="batch_size=1"):
            method(**SMALL | {"batch_size": 1, "steps": 2}).fit(np.random.default_rng(0).normal(size=(5, 2)))
    with pytest.raises(InputError, match="batch_size=8 of 5 observations"):
        build_case(BetaTCVAE, as_data(np.random.default_rng(0).normal(size=(5, 6))), estimator="stratified")


def test_the_size_of_endless_data_is_the_number_of_observations_in_training():
    from unweave.data.containers import Mixing

    data = Mixing([Factor("a")], (1,), lambda n, rng: torch.rand(n, 1, generator=rng), lambda z: z)
    method, _, _ = build_case(BetaTCVAE, data, steps=10)
    assert method.n_observations_ == 80
