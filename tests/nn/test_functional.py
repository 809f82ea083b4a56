"""Known answers for the formulas."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.special import xlogy
from scipy.stats import norm
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence

from unweave.nn.functional import (
    Normal,
    apply_frozen,
    average_by_class,
    covariance,
    covariance_penalty,
    gaussian_js,
    kl,
    kl_to_standard,
    mean_discrepancy,
    mean_kl,
    one_hot,
    pairwise_log_densities,
    permute_columns,
    scale_gradient,
    squared_distance,
    stratified_log_weights,
    supervised_contrast,
    total_correlation,
    uniform_log_weights,
    weighted_sum,
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


def test_supervised_contrast_is_equation_9_of_swap_and_contrast():
    z = torch.randn(6, 3, generator=rng(), dtype=torch.float64)
    u = torch.tensor([0, 0, 1, 1, 1, 2])  # the last is alone
    unit = (z / z.norm(dim=1, keepdim=True)).numpy()
    each = []
    for i in range(5):
        others = [a for a in range(6) if a != i]
        total = sum(np.exp(unit[i] @ unit[a] / 0.5) for a in others)
        same = [p for p in others if u[p] == u[i]]
        each.append(-np.mean([np.log(np.exp(unit[i] @ unit[p] / 0.5) / total) for p in same]))
    assert supervised_contrast(z, u, 0.5).item() == pytest.approx(np.mean(each))
    assert supervised_contrast(z, torch.arange(6), 0.5).item() == 0  # no one has anyone


def test_supervised_contrast_is_zero_for_separate_classes():
    z = torch.tensor([[1.0, 0], [1.0, 0], [-1.0, 0], [-1.0, 0]])
    assert supervised_contrast(z, torch.tensor([0, 0, 1, 1]), 0.02).item() == pytest.approx(0, abs=1e-6)
    assert supervised_contrast(z, torch.tensor([0, 1, 0, 1]), 0.02).item() > 10


def test_averages_by_class_are_equation_8_of_swap_and_contrast():
    q = Normal(torch.tensor([[1.0], [3.0], [10.0]]), torch.tensor([[1.0], [3.0], [5.0]]).log())
    mean, logvar = average_by_class(q, torch.tensor([0, 0, 2]), 4)
    assert mean[:, 0].tolist() == [2, 2, 10] and logvar.exp()[:, 0].tolist() == pytest.approx([2, 2, 5])


def test_kl_and_the_gaussian_bound_on_js_have_known_values():
    q, q2 = Normal(torch.tensor([[0.0, 1.0]]), torch.zeros(1, 2)), Normal(torch.tensor([[2.0, 1.0]]), torch.zeros(1, 2))
    torch.testing.assert_close(kl(q, q2), torch.tensor([[2.0, 0.0]]))
    # Both are N(+-1, 1) around a middle of variance 2: KL = (1/2 + 1/2 - 1 + log 2) / 2, twice the same.
    other = gaussian_js(q, q2)
    torch.testing.assert_close(other, torch.tensor([[np.log(2) / 2, 0.0]], dtype=torch.float32))


@pytest.mark.parametrize(("mean", "variance"), [(0.3, 1.0), (2.0, 0.5), (0.0, 0.05), (9.0, 1.0)])
def test_the_gaussian_bound_on_js_exceeds_it_by_the_divergence_of_the_mixture_from_a_gaussian(mean, variance):
    x = np.linspace(-15, 25, 200_001)
    p, p2 = norm.pdf(x, 0, 1), norm.pdf(x, mean, np.sqrt(variance))
    m = (p + p2) / 2
    exact = sum(np.trapezoid(xlogy(v, v) - xlogy(v, m), x) for v in (p, p2)) / 2  # Eq. 4
    middle = norm.pdf(x, mean / 2, np.sqrt((1 + variance) / 2 + mean**2 / 4))
    assert exact <= np.log(2) + 1e-6
    ours = gaussian_js(
        *(Normal(torch.tensor([[a]]), torch.tensor([[b]]).log()) for a, b in ((0.0, 1.0), (mean, variance)))
    )
    assert float(ours) == pytest.approx(exact + np.trapezoid(xlogy(m, m) - xlogy(m, middle), x), rel=1e-4)


def test_supervised_contrast_of_a_single_code_separates_four_classes():
    u = torch.arange(4).repeat_interleave(4)
    near, far = u[:, None] * 1.0, u[:, None] * 10.0
    assert supervised_contrast(far, u, 0.5).item() == pytest.approx(np.log(3), abs=1e-4)
    assert supervised_contrast(near, u, 0.5).item() > np.log(3) + 0.1


def test_the_mean_discrepancy_is_that_of_group_means():
    """Groups of one, three and no rows; and one group that not all rows are in."""
    features = torch.randn(4, 5, generator=rng(), dtype=torch.float64)
    groups = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]], dtype=torch.float64)
    every = features.mean(0)
    distances = [((features[rows].mean(0) - every) ** 2).sum() for rows in (slice(0, 1), slice(1, 4))]
    torch.testing.assert_close(mean_discrepancy(features, groups), sum(distances) / 2)
    torch.testing.assert_close(mean_discrepancy(features, groups[:, 1:]), distances[1])
    assert mean_discrepancy(features, groups[:, 2:]) == 0
    swapped = torch.tensor([[0.0, 1], [0, 1], [1, 0], [1, 0]], dtype=torch.float64)
    assert mean_discrepancy(features, swapped) != mean_discrepancy(features, groups[:, :2])


def test_small_formulas():
    x = torch.tensor([[1.0, 2], [3, 5]], requires_grad=True)
    (scale_gradient(x, -0.5) * torch.tensor([2.0, 3])).sum().backward()
    assert torch.equal(scale_gradient(x, 0.3), x) and x.grad is not None
    assert x.grad.tolist() == [[-1, -1.5], [-1, -1.5]]
    assert one_hot(torch.tensor([[2], [0]]), 3).tolist() == [[[0, 0, 1]], [[1, 0, 0]]]
    assert squared_distance(torch.zeros(2, 1, 2), torch.tensor([[[1.0, 2]], [[3, 0]]])).tolist() == [5, 9]
    q = normals(7, 3)
    torch.testing.assert_close(mean_kl(q), kl_divergence(torchs(q), TorchNormal(0.0, 1.0)).sum(1).mean())
    net = torch.nn.Linear(2, 1)
    apply_frozen(net, x).sum().backward()
    assert net.weight.grad is None and not torch.equal(x.grad, torch.tensor([[-1, -1.5], [-1, -1.5]]))
    terms = weighted_sum({"a": (2, torch.tensor(3.0)), "b": (0.5, torch.tensor(4.0))})
    assert {name: value.item() for name, value in terms.items()} == {"loss": 8, "a": 3, "b": 4}


def test_weights_of_minibatches_are_sums_over_observations_and_batch():
    assert uniform_log_weights(3, 50).exp().numpy() == pytest.approx(np.full((3, 3), 1 / 150))
    q, z = normals(4, 2), torch.randn(4, 2, generator=rng(5))
    log_q = pairwise_log_densities(z, q)
    for i, j in itertools.product(range(4), repeat=2):
        torch.testing.assert_close(log_q[i, j], torchs(q).log_prob(z[i])[j])
    weight = torch.randn(4, 4, generator=rng(6))
    joint = (log_q.sum(2).exp() * weight.exp()).sum(1).log()
    marginals = torch.stack([(log_q[:, :, k].exp() * weight.exp()).sum(1).log() for k in range(2)], 1)
    torch.testing.assert_close(total_correlation(log_q, weight), joint - marginals.sum(1))
