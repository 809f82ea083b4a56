"""Known answers for the formulas."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence

from unweave.nn.functional import (
    Normal,
    covariance,
    covariance_penalty,
    kl,
    kl_to_standard,
    pairwise_log_densities,
    permute_columns,
    stratified_log_weights,
    total_correlation,
    uniform_log_weights,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def normals(*shape, seed=0):
    g = rng(seed)
    return Normal(torch.randn(*shape, generator=g), torch.randn(*shape, generator=g))


def torchs(q):
    return TorchNormal(q.mean, (q.logvar / 2).exp())


def test_densities_and_divergences_are_those_of_torch():
    q, p = normals(7, 3), normals(7, 3, seed=1)
    z = torch.randn(7, 3, generator=rng(2))
    torch.testing.assert_close(q.log_prob(z), torchs(q).log_prob(z))
    torch.testing.assert_close(kl(q, p), kl_divergence(torchs(q), torchs(p)))
    standard = TorchNormal(torch.zeros(()), torch.ones(()))
    torch.testing.assert_close(kl_to_standard(q), kl_divergence(torchs(q), standard))
    assert kl(q, q).abs().max() < 1e-6


def test_samples_have_their_mean_and_variance():
    q = Normal(torch.tensor([2.0]), torch.tensor([math.log(9.0)]))
    z = q.sample(torch.randn(200_000, 1, generator=rng()))
    assert z.mean() == pytest.approx(2, abs=0.03)
    assert z.var() == pytest.approx(9, abs=0.15)


@pytest.mark.parametrize(("b", "n"), [(2, 2), (4, 10), (64, 737_280)])
def test_stratified_weights_sum_to_one_with_the_special_ones_along_the_diagonal(b, n):
    weight = stratified_log_weights(b, n).double().exp()
    torch.testing.assert_close(weight.sum(1), torch.ones(b, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(weight.diagonal(), torch.full((b,), 1 / n, dtype=torch.float64), atol=1e-9, rtol=1e-5)
    m = b - 1
    special = weight[torch.arange(b), (torch.arange(b) + 1) % b]
    torch.testing.assert_close(special, torch.full((b,), (n - m) / (n * m), dtype=torch.float64), atol=1e-9, rtol=1e-5)
    with pytest.raises(ValueError, match="expected 2 <= batch"):
        stratified_log_weights(5, 4)


def test_stratified_weights_are_unbiased():
    """Averaged over all batches that hold an observation, the weighted sum is the density of the whole mixture."""
    n, b = 5, 3
    q = normals(n, 2)
    z = q.sample(torch.randn(n, 2, generator=rng(3)))[:1]  # a sample of observation 0
    density = pairwise_log_densities(z, Normal(q.mean, q.logvar)).sum(-1).exp()[0]  # (n,)
    weight = stratified_log_weights(b, n).exp()[0]
    batches = [(0, *others) for others in itertools.permutations(range(1, n), b - 1)]
    mean = sum((weight * density[list(batch)]).sum() for batch in batches) / len(batches)
    torch.testing.assert_close(mean, density.mean())


def test_total_correlation_of_correlated_gaussians_has_a_closed_form():
    """Means correlated by rho, tiny posteriors: TC = -1/2 log(1 - r^2), r the correlation of the aggregate."""
    n, rho, v = 4000, 0.8, 0.05
    means = torch.from_numpy(np.random.default_rng(0).multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)).float()
    q = Normal(means, torch.full_like(means, math.log(v)))
    z = q.sample(torch.randn(n, 2, generator=rng()))
    found = total_correlation(pairwise_log_densities(z, q), stratified_log_weights(n, n)).mean()
    assert found == pytest.approx(-0.5 * math.log(1 - (rho / (1 + v)) ** 2), abs=0.05)


def test_estimators_of_total_correlation_differ_by_what_they_are():
    """Ten independent latents, a batch of 64 from 737,280: the true value is 0. The weighted estimate is off by
    (d - 1) log(n b) less what the sums hold; the corrected stratified one is small.
    """
    g = rng()
    means = torch.randn(64, 10, generator=g)
    q = Normal(means, torch.full_like(means, -2.0))
    z = q.sample(torch.randn(64, 10, generator=g))
    log_q = pairwise_log_densities(z, q)
    by_weight, by_strata = (
        total_correlation(log_q, w(64, 737_280)).mean() for w in (uniform_log_weights, stratified_log_weights)
    )
    assert abs(by_strata) < 10 < 100 < by_weight
    plain = log_q.sum(-1).logsumexp(1) - log_q.logsumexp(1).sum(-1)
    torch.testing.assert_close(by_weight, plain.mean() + 9 * math.log(64 * 737_280))


def test_covariance_divides_by_the_batch_and_off_identity_weighs_its_parts():
    z = torch.tensor([[1.0, 0], [3, 2], [5, 1]])
    torch.testing.assert_close(covariance(z), torch.tensor(np.cov(z.numpy().T, bias=True), dtype=torch.float32))
    C = torch.tensor([[3.0, 0.5], [0.5, 1.0]])
    assert covariance_penalty(C, diagonal=1.0, off_diagonal=0.0) == pytest.approx(4)
    assert covariance_penalty(C, diagonal=0.0, off_diagonal=1.0) == pytest.approx(0.5)
    assert covariance_penalty(torch.eye(3), diagonal=5.0, off_diagonal=5.0) == 0


def test_shuffled_columns_keep_their_values_and_lose_their_company():
    z = torch.arange(12.0).reshape(6, 2)
    order = torch.stack([torch.randperm(6, generator=rng(j)) for j in range(2)], 1)
    mixed = permute_columns(z, order)
    assert torch.equal(mixed.sort(0).values, z)
    assert torch.equal(mixed[:, 0], z[order[:, 0], 0])
    assert not torch.equal(mixed[:, 1] - mixed[:, 0], z[:, 1] - z[:, 0])
