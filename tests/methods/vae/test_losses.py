"""Every loss of the variational family against hand-computed values, and the bugs that others have."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from unweave import InputError
from unweave.data.arrays import as_data
from unweave.data.containers import Grid, Table
from unweave.data.core import Factor
from unweave.methods import (
    DIPVAE,
    IRMAE,
    IVAE,
    AdaGVAE,
    AdaMLVAE,
    AnnealedVAE,
    Autoencoder,
    BetaTCVAE,
    BetaVAE,
    FactorVAE,
    HessianAutoencoder,
)
from unweave.methods.vae.base import posterior
from unweave.nn.functional import (
    Normal,
    apply_frozen,
    covariance,
    kl_to_standard,
    pairwise_log_densities,
    stratified_log_weights,
    total_correlation,
    uniform_log_weights,
)

N, D = 8, 3
TABLE = as_data(np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32), np.arange(50) % 4)
IMAGES = as_data(np.random.default_rng(1).uniform(size=(50, 1, 8, 8)).astype(np.float32), np.arange(50) % 4)
SMALL = {"latent_dim": D, "layers": (5,), "widths": (4, 4), "hidden": (6,), "batch_size": N}


def made(cls, data=TABLE, **settings):
    """A method, its network and one batch."""
    known = cls.__dataclass_fields__
    method = cls(**{k: v for k, v in SMALL.items() if k in known} | settings)
    method.validate_settings(data)
    method.prepare(data)
    torch.manual_seed(0)
    net = method.build(data.shape)
    rng = torch.Generator().manual_seed(1)
    plan = method.plan(data, N, rng)
    batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.extras | method.sample_noise(N, rng)
    return method, net, batch | {"progress": torch.tensor(0.0)}


def pieces(method, net, batch):
    q = posterior(net, batch["x"])
    z = q.mean + batch["eps"] * (q.logvar / 2).exp()
    return q, z, 0.5 * (q.mean**2 + q.logvar.exp() - 1 - q.logvar).sum(1).mean()


# The bound ------------------------------------------------------------------------------------------------------


def test_pixels_are_summed_and_observations_averaged_bernoulli_for_images():
    method, net, batch = made(BetaVAE, IMAGES, beta=4.0)
    _, z, kl = pieces(method, net, batch)
    p = net.decoder(z).sigmoid()
    rec = -(batch["x"] * p.log() + (1 - batch["x"]) * (1 - p).log()).sum((1, 2, 3)).mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["rec"], rec)
    torch.testing.assert_close(terms["kl"], kl)
    torch.testing.assert_close(terms["loss"], rec + 4 * kl)


def test_tables_are_gaussian_with_variance_one():
    method, net, batch = made(BetaVAE, beta=1.0)
    _, z, kl = pieces(method, net, batch)
    rec = 0.5 * ((net.decoder(z) - batch["x"]) ** 2).sum(1).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + kl)
    method, net, batch = made(BetaVAE, IMAGES, likelihood="gaussian", beta=1.0)
    _, z, kl = pieces(method, net, batch)
    rec = 0.5 * ((net.decoder(z) - batch["x"]) ** 2).sum((1, 2, 3)).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + kl)


def test_capacity_grows_and_stays():
    for progress, capacity in ((0.0, 0.0), (0.25, 5.0), (0.5, 10.0), (1.0, 10.0)):
        method, net, batch = made(AnnealedVAE, gamma=7.0, capacity=10.0, anneal=0.5)
        terms = method.loss(net, batch | {"progress": torch.tensor(progress)})
        torch.testing.assert_close(terms["gap"], (terms["kl"] - capacity).abs())
        torch.testing.assert_close(terms["loss"], terms["rec"] + 7 * terms["gap"])  # the KL term is not counted twice


# Total correlation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "weights"), [("weighted", uniform_log_weights), ("stratified", stratified_log_weights)]
)
def test_tc_is_counted_beta_minus_one_times_beside_one_kl(estimator, weights):
    method, net, batch = made(BetaTCVAE, beta=6.0, estimator=estimator)
    assert method.n_observations_ == 50
    q, z, kl = pieces(method, net, batch)
    tc = total_correlation(pairwise_log_densities(z, q), weights(N, 50)).mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["tc"], tc)
    torch.testing.assert_close(terms["loss"], terms["rec"] + kl + 5 * tc)
    plain, _, _ = made(BetaTCVAE, beta=1.0, estimator=estimator)
    torch.testing.assert_close(plain.loss(net, batch)["loss"], terms["rec"] + kl)


def test_estimators_differ_by_more_than_a_constant_but_not_much_in_gradient():
    grads = []
    for estimator in ("weighted", "stratified"):
        method, net, batch = made(BetaTCVAE, estimator=estimator)
        grads.append(torch.autograd.grad(method.loss(net, batch)["tc"], next(net.encoder.parameters()))[0])
    assert not torch.allclose(*grads)
    assert F.cosine_similarity(grads[0].flatten(), grads[1].flatten(), 0) > 0.5


def test_a_batch_larger_than_the_data_has_no_strata():
    for method in (FactorVAE, BetaTCVAE):
        with pytest.raises(InputError, match="batch_size=1"):
            method(**SMALL | {"batch_size": 1, "steps": 2}).fit(np.random.default_rng(0).normal(size=(5, 2)))
    with pytest.raises(InputError, match="batch_size=8 of 5 observations"):
        made(BetaTCVAE, as_data(np.random.default_rng(0).normal(size=(5, 6))), estimator="stratified")


def test_endless_data_count_as_many_as_will_be_seen():
    from unweave.data.containers import Mixing

    data = Mixing([Factor("a")], (1,), lambda n, rng: torch.rand(n, 1, generator=rng), lambda z: z)
    method, _, _ = made(BetaTCVAE, data, steps=10)
    assert method.n_observations_ == 80


def test_the_critic_sees_a_second_batch_shuffled_and_the_first_as_it_is():
    method, net, batch = made(FactorVAE, critic=(7,), gamma=3.0)
    _, z, kl = pieces(method, net, batch)
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


def test_each_player_feels_its_own_loss_alone():
    method, net, batch = made(FactorVAE, critic=(7,))
    terms = method.loss(net, batch)
    critic, encoder = list(net.critic.parameters()), list(net.encoder.parameters())
    (a,) = torch.autograd.grad(terms["critic"], encoder[:1], retain_graph=True, allow_unused=True)
    (b,) = torch.autograd.grad(terms["tc"], critic[:1], retain_graph=True, allow_unused=True)
    assert a is None
    assert b is None
    assert torch.autograd.grad(terms["tc"], encoder[:1], retain_graph=True)[0].abs().sum() > 0
    assert torch.autograd.grad(terms["critic"], critic[:1])[0].abs().sum() > 0
    assert not apply_frozen(net.critic, torch.ones(2, D)).requires_grad


def test_the_best_critic_tells_the_total_correlation():
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


# DIP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_dip_penalizes_the_covariance_of_means_or_of_samples(variant):
    method, net, batch = made(DIPVAE, variant=variant, off_diagonal=3.0, diagonal=5.0)
    q, _, kl = pieces(method, net, batch)
    C = np.cov(q.mean.detach().numpy().T, bias=True)
    if variant == "ii":
        C = C + np.diag(q.logvar.exp().mean(0).detach().numpy())  # on the diagonal, and nowhere else
    off = C - np.diag(np.diag(C))
    expected = 3 * (off**2).sum() + 5 * ((np.diag(C) - 1) ** 2).sum()
    terms = method.loss(net, batch)
    assert terms["dip"].item() == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(terms["loss"], terms["rec"] + kl + terms["dip"])


def test_dip_of_independent_samples_of_variance_one_is_nothing():
    z = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    q = Normal(z * math.sqrt(0.5), torch.full_like(z, math.log(0.5)))
    method, _, _ = made(DIPVAE, variant="ii")
    assert method.penalty(q).item() == pytest.approx(0, abs=1e-6)
    torch.testing.assert_close(covariance(z), torch.eye(2))


# Pairs ----------------------------------------------------------------------------------------------------------

# Four codes of one pair: KL(q || q') by hand is 0, 0.5, 2, 8 (equal variances one, distances 0, 1, 2, 4).
A = Normal(torch.tensor([[0.0, 0, 0, 0]]), torch.zeros(1, 4))
B = Normal(torch.tensor([[0.0, 1, 2, 4]]), torch.zeros(1, 4))


def test_codes_nearer_than_half_way_are_shared():
    method, _, _ = made(AdaGVAE)
    a, b = method.merge_shared(A, B)  # half-way between 0 and 8 is 4: the first three are shared
    torch.testing.assert_close(a.mean, torch.tensor([[0, 0.5, 1, 0]]))
    torch.testing.assert_close(b.mean, torch.tensor([[0, 0.5, 1, 4]]))


def test_group_averages_means_and_variances():
    method, _, _ = made(AdaGVAE)
    q = Normal(torch.tensor([[1.0]]), torch.tensor([[math.log(2.0)]]))
    p = Normal(torch.tensor([[3.0]]), torch.tensor([[math.log(6.0)]]))
    both = method.merge(q, p)
    assert both.mean.item() == pytest.approx(2)
    assert both.logvar.exp().item() == pytest.approx(4)  # the mean of the variances, not of their logarithms


def test_ml_multiplies_gaussians():
    method, _, _ = made(AdaMLVAE)
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
    one, both = (made(AdaGVAE, distance=d)[0].merge_shared(q, p)[0].logvar for d in ("one-sided", "symmetric"))
    # KL(q || p) is 0, 0.57, 2.19; the mean of both directions 0, 1.38, 1.38.
    assert (one != 0).tolist() == [[False, True, False]]
    assert (both != 0).tolist() == [[False, False, False]]


def test_ada_halves_the_losses_of_both_and_pairs_share_factors():
    grid = Grid(torch.rand(60, 6), [Factor(n, s, "ordinal") for n, s in (("a", 4), ("b", 5), ("c", 3))])
    method, net, batch = made(AdaGVAE, grid, beta=2.0)
    a, b = method.merge_shared(posterior(net, batch["x"]), posterior(net, batch["x2"]))
    kl = 0.5 * (kl_to_standard(a).sum(1) + kl_to_standard(b).sum(1)).mean()
    za, zb = a.sample(batch["eps"]), b.sample(batch["eps2"])
    rec = 0.25 * (((net.decoder(za) - batch["x"]) ** 2).sum(1) + ((net.decoder(zb) - batch["x2"]) ** 2).sum(1)).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + 2 * kl)
    plan = method.plan(grid, 500, torch.Generator().manual_seed(0))
    differ = (plan.views["x"] != plan.views["x2"]).sum(1)
    assert differ.max() <= 2


def test_one_label_pairs_what_class_shares_it_and_none_is_refused():
    method, _, _ = made(AdaGVAE)
    plan = method.plan(TABLE, 200, torch.Generator().manual_seed(0))
    assert torch.equal(TABLE.labels(plan.views["x"]), TABLE.labels(plan.views["x2"]))
    with pytest.raises(InputError, match="these data have none"):
        AdaGVAE(steps=2).fit(Table(torch.rand(9, 2), torch.zeros(9, 0), []))
    with pytest.raises(InputError, match="requires y"):
        AdaGVAE(steps=2).fit(np.random.default_rng(0).normal(size=(9, 2)))


# Labels ---------------------------------------------------------------------------------------------------------


def test_ivae_pulls_towards_the_prior_of_the_label():
    method, net, batch = made(IVAE, beta=2.0, noise_variance=0.1)
    assert method.classes_ == 4
    q, z, _ = pieces(method, net, batch)
    u = F.one_hot(batch["u"], 4).float()
    prior = torch.distributions.Normal(torch.zeros(N, D), (net.prior(u) / 2).exp())
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(q.mean, (q.logvar / 2).exp()), prior)
    rec = ((net.decoder(z) - batch["x"]) ** 2).sum(1).mean() / (2 * 0.1)
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + 2 * kl.sum(1).mean())
    other = method.loss(net, batch | {"u": (batch["u"] + 1) % 4})
    assert other["kl"] != method.loss(net, batch)["kl"]


def test_ivae_needs_two_classes_and_finds_its_label():
    data = Table(torch.rand(20, 3), torch.zeros(20, 1), [Factor("only", 1, "nominal")])
    with pytest.raises(InputError, match="'only' has one value only"):
        IVAE(steps=2).fit(data)
    two = Table(torch.rand(20, 3), torch.zeros(20, 2), [Factor("a", 2, "nominal"), Factor("b", 5, "nominal")])
    assert made(IVAE, two)[0].classes_ == 2
    assert made(IVAE, two, label="b")[0].classes_ == 5
    with pytest.raises(InputError, match="no factor named 'c'"):
        made(IVAE, two, label="c")
    with pytest.raises(InputError, match="Unknown label type"):
        IVAE(steps=2).fit(np.random.default_rng(0).normal(size=(9, 2)), np.linspace(0, 1, 9))


# Without a prior ------------------------------------------------------------------------------------------------


def test_autoencoders_square_their_errors():
    method, net, batch = made(Autoencoder, IMAGES)
    out = net.decoder(net.encoder(batch["x"]))
    torch.testing.assert_close(method.loss(net, batch)["loss"], 0.5 * ((out - batch["x"]) ** 2).sum((1, 2, 3)).mean())


def test_irmae_has_square_linear_layers_between():
    method, net, batch = made(IRMAE, linear=3)
    assert [tuple(p.shape) for p in net.linear.parameters()] == [(D, D)] * 3  # and no bias
    product = net.linear[2].weight @ net.linear[1].weight @ net.linear[0].weight
    torch.testing.assert_close(method.compute_codes(net, batch["x"]), net.encoder(batch["x"]) @ product.T)


def test_the_teacher_decouples_encoder_and_decoder():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (300, 2))
    data = as_data(np.column_stack([z, 0.2 * z**2]))
    method, net, batch = made(HessianAutoencoder, data, latent_dim=2)
    teach = ((net.encoder(batch["x"]) - batch["y"]) ** 2).sum(1).mean()
    rec = ((net.decoder(batch["y"]) - batch["x"]) ** 2).sum(1).mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["loss"], teach + rec)  # Eq. 1
    assert torch.autograd.grad(terms["rec"], next(net.encoder.parameters()), allow_unused=True)[0] is None
    fitted = HessianAutoencoder(latent_dim=2, steps=1_500, layers=(32, 32), lr=3e-3).fit(data)
    r = np.abs(np.corrcoef(fitted.transform(data.x.numpy()).T, z.T)[:2, 2:])
    assert r.max(1).min() > 0.98
    back = fitted.inverse_transform(fitted.transform(data.x.numpy()))
    assert np.abs(back - data.x.numpy()).mean() < 0.1


# After training -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    settings = {"steps": 60, "latent_dim": 2, "widths": (4, 4), "hidden": (8,)}
    return BetaVAE(**settings).fit(IMAGES)


def test_codes_are_means_and_decoding_gives_probabilities(fitted):
    x = IMAGES.x
    with torch.no_grad():
        q = posterior(fitted.net_, x)
    np.testing.assert_allclose(fitted.transform(x.numpy()), q.mean.numpy(), atol=1e-6)
    again = fitted.encode_posterior(x)
    torch.testing.assert_close(again.logvar, q.logvar)
    back = fitted.inverse_transform(q.mean.numpy())
    assert back.shape == x.shape
    assert 0 < back.min() < back.max() < 1


def test_samples_are_decoded_from_the_prior(fitted):
    a, b, c = fitted.sample(3), fitted.sample(3), fitted.sample(3, seed=1)
    assert a.shape == (3, 1, 8, 8)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    z = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    np.testing.assert_array_equal(a, fitted.inverse_transform(z.numpy()))
    with pytest.raises(InputError, match="at least one"):
        fitted.sample(0)


def test_the_networks_are_those_of_the_papers():
    """Encoder and decoder of Higgins et al. (2017), Table 1, row 3, and the intervention paper's Table 4: 4 x 4
    convolutions of 32, 32, 64, 64 channels, then 256 or 128 units; weights counted by hand.
    """
    for hidden in (256, 128):
        vae = BetaVAE(hidden=(hidden,))
        vae.shape_ = (1, 64, 64)
        net = vae.build((1, 64, 64))
        conv = (16 * 32 + 32) + (16 * 32 * 32 + 32) + (16 * 32 * 64 + 64) + (16 * 64 * 64 + 64)
        encoder = conv + (1024 * hidden + hidden) + (hidden * 20 + 20)
        assert sum(p.numel() for p in net.encoder.parameters()) == encoder
        up = (16 * 64 * 64 + 64) + (16 * 64 * 32 + 32) + (16 * 32 * 32 + 32) + (16 * 32 * 1 + 1)
        decoder = (10 * hidden + hidden) + (hidden * 1024 + 1024) + up
        assert sum(p.numel() for p in net.decoder.parameters()) == decoder
    critic = FactorVAE()
    critic.shape_ = (1, 64, 64)
    count = sum(p.numel() for p in critic.build((1, 64, 64)).critic.parameters())
    assert count == (10 * 1000 + 1000) + 5 * (1000 * 1000 + 1000) + 1001  # Kim and Mnih (2018), App. A


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 12, 20), (2, 5, 5)])
def test_images_of_many_sizes_come_back_in_their_shape(shape):
    x = np.random.default_rng(0).uniform(size=(6, *shape)).astype(np.float32)
    method = BetaVAE(steps=2, widths=(4, 4), hidden=(8,), latent_dim=2, batch_size=4).fit(x)
    assert method.inverse_transform(method.transform(x)).shape == x.shape
    flat = BetaVAE(steps=2, network="mlp", layers=(8,), latent_dim=2, batch_size=4).fit(x)
    assert flat.inverse_transform(flat.transform(x)).shape == x.shape


def test_settings_that_make_no_sense_are_named():
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="at least one unit"):
        BetaVAE(layers=(0,), steps=1).fit(x)
    with pytest.raises(InputError, match="convolutions expect images"):
        BetaVAE(network="conv", steps=1).fit(x)
    with pytest.raises(InputError, match="network='cnn', expected 'auto' or 'conv' or 'mlp'"):
        BetaVAE(network="cnn").fit(x)


def test_learning_lowers_the_loss_and_finds_two_factors():
    """A plain VAE on a flat sheet in six dimensions: two codes carry information, the third is left to the prior."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2))
    x = (3 * z @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T).astype(np.float32)
    method = BetaVAE(beta=1.0, latent_dim=3, layers=(32,), steps=1_500, lr=3e-3).fit(x)
    assert method.history["loss"].iloc[-100:].mean() < 0.75 * method.history["loss"].iloc[:5].mean()
    nats = kl_to_standard(method.encode_posterior(torch.from_numpy(x))).mean(0).sort(descending=True).values
    assert nats[1] > 0.5
    assert nats[2] < 0.1


# Found by review ------------------------------------------------------------------------------------------------


def test_ivae_samples_from_the_priors_of_its_labels():
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


def test_images_outside_of_0_to_1_are_not_bernoulli():
    images = np.random.default_rng(0).uniform(0, 255, (20, 1, 8, 8))
    with pytest.raises(InputError, match="cannot be Bernoulli: pass bytes"):
        BetaVAE(steps=2, **{k: v for k, v in SMALL.items() if k != "layers"}).fit(images)
    assert BetaVAE(steps=2, likelihood="gaussian", widths=(4,)).fit(images).transform(images).shape == (20, 10)
    as_bytes = BetaVAE(steps=2, widths=(4,)).fit(images.astype(np.uint8))
    assert as_bytes.is_bernoulli()


def test_gray_images_need_no_axis_for_their_channel():
    x = np.random.default_rng(0).integers(0, 256, (30, 8, 8), dtype=np.uint8)
    settings = {"steps": 10, "widths": (4,), "hidden": (8,), "latent_dim": 2}
    flat, deep = BetaVAE(**settings).fit(x), BetaVAE(**settings).fit(x[:, None])
    np.testing.assert_allclose(flat.transform(x), deep.transform(x[:, None]), atol=1e-6)
    assert flat.inverse_transform(flat.transform(x)).shape == x.shape


def test_a_row_without_a_partner_is_its_own():
    c = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    c = torch.cat([c, torch.tensor([[3, 3]])])
    data = Table(torch.rand(10, 4), c, [Factor("a", 4, "ordinal"), Factor("b", 4, "ordinal")])
    method, _, _ = made(AdaGVAE, data)
    plan = method.plan(data, 200, torch.Generator().manual_seed(0))
    lonely = plan.views["x"][:, 0] == 9
    assert lonely.any()
    assert (plan.views["x2"][lonely, 0] == 9).all()


def test_products_of_narrow_gaussians_stay_finite():
    method, _, _ = made(AdaMLVAE)
    q = Normal(torch.tensor([[1.0]]), torch.tensor([[-100.0]]))
    both = method.merge(q, Normal(torch.tensor([[3.0]]), torch.tensor([[-100.0]])))
    assert both.mean.item() == pytest.approx(2, abs=1e-4)


def test_labels_come_in_many_forms():
    import pandas as pd

    from unweave.utils.validation import as_classes

    assert as_classes(np.array([1.0, 2.0])).dtype == np.int64
    assert as_classes(np.array([1, 2], object)).dtype == np.int64
    assert as_classes(pd.DataFrame({"a": [1.0, 2.0]}))["a"].dtype == np.int64
    with pytest.raises(InputError, match="Unknown label type"):
        as_classes(np.array([{}, {}], object))
    with pytest.raises(InputError, match="one label"):
        as_classes(5)
