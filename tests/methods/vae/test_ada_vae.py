"""Adaptive VAEs: shared codes and pairs."""

import math

import numpy as np
import pytest
import torch

from tests.methods.vae.helpers import TABLE, build_case
from unweave import InputError
from unweave.data.containers import Grid, Table
from unweave.data.core import Factor
from unweave.methods import AdaGVAE, AdaMLVAE
from unweave.methods.vae.base import posterior
from unweave.nn.functional import Normal, kl_to_standard

# Four codes of one pair: KL(q || q') by hand is 0, 0.5, 2, 8 (equal variances one, distances 0, 1, 2, 4).
A = Normal(torch.tensor([[0.0, 0, 0, 0]]), torch.zeros(1, 4))

B = Normal(torch.tensor([[0.0, 1, 2, 4]]), torch.zeros(1, 4))


def test_codes_below_the_midpoint_of_distances_are_shared():
    method, _, _ = build_case(AdaGVAE)
    a, b = method.merge_shared(A, B)  # half-way between 0 and 8 is 4: the first three are shared
    torch.testing.assert_close(a.mean, torch.tensor([[0, 0.5, 1, 0]]))
    torch.testing.assert_close(b.mean, torch.tensor([[0, 0.5, 1, 4]]))


def test_ada_gvae_averages_means_and_variances():
    method, _, _ = build_case(AdaGVAE)
    q = Normal(torch.tensor([[1.0]]), torch.tensor([[math.log(2.0)]]))
    p = Normal(torch.tensor([[3.0]]), torch.tensor([[math.log(6.0)]]))
    both = method.merge(q, p)
    assert both.mean.item() == pytest.approx(2)
    assert both.logvar.exp().item() == pytest.approx(4)  # the mean of the variances, not of their logarithms


def test_ada_ml_vae_multiplies_gaussians():
    method, _, _ = build_case(AdaMLVAE)
    q = Normal(torch.tensor([[1.0]]), torch.tensor([[math.log(2.0)]]))
    p = Normal(torch.tensor([[3.0]]), torch.tensor([[math.log(6.0)]]))
    both = method.merge(q, p)
    assert both.logvar.exp().item() == pytest.approx(1 / (1 / 2 + 1 / 6))
    assert both.mean.item() == pytest.approx((1 / 2 + 3 / 6) * 1.5)
    x = torch.linspace(-5, 9, 20)[:, None]  # the product of densities is that density, up to a factor
    difference = q.log_prob(x) + p.log_prob(x) - both.log_prob(x)
    assert difference.std() < 1e-4


def test_one_sided_and_symmetric_distances_share_different_codes():
    q = Normal(torch.zeros(1, 3), torch.tensor([[0.0, 0.0, 0.0]]))
    p = Normal(torch.zeros(1, 3), torch.tensor([[0.0, 2.0, -2.0]]))
    one, both = (build_case(AdaGVAE, distance=d)[0].merge_shared(q, p)[0].logvar for d in ("one-sided", "symmetric"))
    # KL(q || p) is 0, 0.57, 2.19; the mean of both directions 0, 1.38, 1.38.
    assert (one != 0).tolist() == [[False, True, False]]
    assert (both != 0).tolist() == [[False, False, False]]


def test_the_loss_is_the_mean_over_a_pair_that_shares_factors():
    grid = Grid(torch.rand(60, 6), [Factor(n, s, "ordinal") for n, s in (("a", 4), ("b", 5), ("c", 3))])
    method, net, batch = build_case(AdaGVAE, grid, beta=2.0)
    a, b = method.merge_shared(posterior(net, batch["x"]), posterior(net, batch["x2"]))
    kl = 0.5 * (kl_to_standard(a).sum(1) + kl_to_standard(b).sum(1)).mean()
    za, zb = a.sample(batch["eps"]), b.sample(batch["eps2"])
    rec = 0.25 * (((net.decoder(za) - batch["x"]) ** 2).sum(1) + ((net.decoder(zb) - batch["x2"]) ** 2).sum(1)).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + 2 * kl)
    plan = method.plan(grid, 500, torch.Generator().manual_seed(0))
    differ = (plan.views["x"] != plan.views["x2"]).sum(1)
    assert differ.max() <= 2


def test_pairs_share_a_single_label_and_data_without_labels_are_refused():
    method, _, _ = build_case(AdaGVAE)
    plan = method.plan(TABLE, 200, torch.Generator().manual_seed(0))
    assert torch.equal(TABLE.labels(plan.views["x"]), TABLE.labels(plan.views["x2"]))
    with pytest.raises(InputError, match="these data have none"):
        AdaGVAE(steps=2).fit(Table(torch.rand(9, 2), torch.zeros(9, 0), []))
    with pytest.raises(InputError, match="requires y"):
        AdaGVAE(steps=2).fit(np.random.default_rng(0).normal(size=(9, 2)))


def test_a_row_without_a_partner_is_paired_with_itself():
    c = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    c = torch.cat([c, torch.tensor([[3, 3]])])
    data = Table(torch.rand(10, 4), c, [Factor("a", 4, "ordinal"), Factor("b", 4, "ordinal")])
    method, _, _ = build_case(AdaGVAE, data)
    plan = method.plan(data, 200, torch.Generator().manual_seed(0))
    lonely = plan.views["x"][:, 0] == 9
    assert lonely.any()
    assert (plan.views["x2"][lonely, 0] == 9).all()


def test_products_of_narrow_gaussians_stay_finite():
    method, _, _ = build_case(AdaMLVAE)
    q = Normal(torch.tensor([[1.0]]), torch.tensor([[-100.0]]))
    both = method.merge(q, Normal(torch.tensor([[3.0]]), torch.tensor([[-100.0]])))
    assert both.mean.item() == pytest.approx(2, abs=1e-4)


def test_noise_of_both_observations_is_drawn_and_a_number_of_changed_factors_kept():
    grid = Grid(torch.rand(60, 6), [Factor(n, s, "ordinal") for n, s in (("a", 4), ("b", 5), ("c", 3))])
    method, _, _ = build_case(AdaGVAE, grid, changed=2)
    noise = method.sample_noise(9, torch.Generator().manual_seed(0))
    assert noise["eps"].shape == noise["eps2"].shape and not torch.equal(noise["eps"], noise["eps2"])
    plan = method.plan(grid, 300, torch.Generator().manual_seed(0))
    assert (plan.views["x"] != plan.views["x2"]).sum(1).max() == 2


def test_a_code_at_the_midpoint_is_not_shared():
    method, _, _ = build_case(AdaGVAE)
    q = Normal(torch.zeros(1, 3), torch.zeros(1, 3))
    p = Normal(torch.tensor([[0.0, 2, 2 * 2**0.5]]), torch.zeros(1, 3))  # distances 0, 2 and 4
    assert method.merge_shared(q, p)[0].mean.tolist() == [[0, 0, 0]]
    nearer = Normal(torch.tensor([[0.0, 1.99, 2 * 2**0.5]]), torch.zeros(1, 3))
    assert method.merge_shared(q, nearer)[1].mean[0, 1].item() == pytest.approx(0.995)
