"""GIN: the loss by hand, recovered sources, densities, samples and transfer."""

import copy

import numpy as np
import pytest
import torch
from scipy import special, stats

import unweave
from tests.helpers import FLOW_SETTINGS, blobs, flow_batch
from unweave.data.conversion import as_data
from unweave.datasets import GaussianMixture
from unweave.methods import GIN
from unweave.methods.flows import features
from unweave.methods.flows.family import Coefficients
from unweave.metrics import mcc
from unweave.report.figures.flows import class_centers, draw_recovery, draw_samples, draw_spectra, draw_variable
from unweave.utils.errors import InputError


def test_the_loss_is_equation_10_with_class_statistics_of_the_batch():
    x, u = blobs()
    method = GIN(**FLOW_SETTINGS)
    net, batch = flow_batch(method, as_data(x, u), 60)
    terms = method.loss(net, batch)
    w = net.flow(method.to_network_input(batch["x"], batch["eps"]))[0].detach().numpy().astype(np.float64)
    label = batch["r"].argmax(1).numpy()
    nats = np.zeros(60)
    for k in range(3):
        own = w[label == k]
        nats[label == k] = -stats.norm(own.mean(0), own.std(0)).logpdf(own).sum(1)
    assert float(terms["nats"]) == pytest.approx(nats.mean(), rel=1e-4)
    assert float(terms["loss"]) == pytest.approx(nats.mean() / 4, rel=1e-4) and float(terms["alone"]) == 0


def test_at_initialization_no_constant_shift_or_scale_changes_the_loss():
    """Means and variances of the classes take it up: last biases have a first gradient of rounding errors alone."""
    x, u = blobs(900)
    data, method = as_data(x, u), GIN(**FLOW_SETTINGS, latent_dim="all")
    _, batch = flow_batch(method, data, 600)
    net = method.build(data.shape)
    method.loss(net, batch)["loss"].backward()
    for block in net.flow.blocks:
        for part in (block.first, block.second):
            assert part[-1].bias.grad.abs().max() < 1e-5 * part[-1].weight.grad.abs().max()


def test_without_a_fixed_volume_the_log_determinant_counts():
    x, u = blobs()
    method = GIN(volume="free", **FLOW_SETTINGS)
    net, batch = flow_batch(method, as_data(x, u), 60)
    noisy = batch["x"] + 0.01 * batch["eps"]
    log_det = net.flow(noisy)[1].mean()
    kept = float(method.loss(net, batch)["nats"])
    with torch.no_grad():
        for block in net.flow.blocks:
            block.volume = "free"
    c = method.latent_family().fit(net.flow(noisy)[0], batch["r"] / batch["r"].sum(0))
    expected = -(method.latent_family().log_prob(net.flow(noisy)[0], c.select(batch["r"])).sum(1)).mean() - log_det
    assert float(log_det.abs()) > 0.01 and kept == pytest.approx(float(expected), rel=1e-5)


def test_a_class_with_one_observation_in_a_batch_is_left_out_and_counted():
    x, u = blobs()
    method = GIN(**FLOW_SETTINGS)
    net, batch = flow_batch(method, as_data(x, u), 60)
    label = batch["r"].argmax(1)
    chosen = torch.cat([(label < 2).nonzero()[:, 0], (label == 2).nonzero()[:1, 0]])
    lone = {k: v[chosen] for k, v in batch.items()}
    terms = method.loss(net, lone)
    assert float(terms["alone"]) == 1
    without = method.loss(net, {k: v[:-1] for k, v in lone.items()})
    assert float(terms["nats"]) == pytest.approx(float(without["nats"]), rel=1e-6)
    gradients = torch.autograd.grad(terms["loss"], list(net.parameters()))
    assert all(g.isfinite().all() for g in gradients)


def test_one_hot_probabilities_equal_classes():
    x, u = blobs()
    hard, rows = GIN(**FLOW_SETTINGS), GIN(**FLOW_SETTINGS)
    net, batch = flow_batch(hard, as_data(x, u), 60)
    other, soft_batch = flow_batch(rows, as_data(x, np.eye(3)[u]), 60)
    torch.testing.assert_close(rows.loss(other, soft_batch)["loss"], hard.loss(net, batch)["loss"])
    assert rows.has_soft_labels_ and not hard.has_soft_labels_ and hard.levels_ == [0, 1, 2]
    assert rows.outlook_[-1] == "Labels are probabilities." != hard.outlook_[-1]


def test_soft_labels_are_used_for_training_and_sampling():
    x, u = blobs(900)
    rows = 0.8 * np.eye(3)[u] + 0.2 * np.random.default_rng(0).dirichlet([1, 1, 1], 900)
    method = GIN(**FLOW_SETTINGS | {"steps": 100}, latent_dim="all").fit(x, rows)
    assert np.isfinite(method.log_prob(x, rows)).all()
    assert any("Probabilities vary the coefficients" in text for text in method.diagnosis_)
    near = GIN(**FLOW_SETTINGS | {"steps": 100}, latent_dim="all").fit(x, u)
    assert method.log_prob(x, np.eye(3)[u]).mean() == pytest.approx(near.log_prob(x, u).mean(), abs=1.0)
    assert method.sample([0.5, 0.5, 0.0], 4).shape == (4, 4) and method.sample("y2", 4).shape == (4, 4)


def test_soft_labels_with_another_family_are_an_error():
    x, u = blobs()
    with pytest.raises(InputError, match="family='normal' or 'log-normal'"):
        GIN(**FLOW_SETTINGS, family="gamma").fit(x, 0.9 * np.eye(3)[u] + 0.1 / 3)


def test_learned_statistics_are_parameters_of_the_network():
    x, u = blobs(300)
    start = GIN(**FLOW_SETTINGS | {"steps": 1}, statistics="learned", lr=1e-9).fit(x, u)
    assert start.means_.abs().max() < 100 and start.net_.location.abs().max() < 1e-6, "standard normal at the start"
    assert start.net_.spread.abs().max() < 1e-6 and start.net_.spread.shape == (3, 4)
    method = GIN(**FLOW_SETTINGS | {"steps": 300}, statistics="learned", latent_dim="all", seed=1).fit(x, u)
    assert {"location", "spread"} <= dict(method.net_.named_parameters()).keys()
    torch.testing.assert_close(method.first_ / method.second_, method.net_.location.detach())
    assert method.history["nats"].iloc[-1] < method.history["nats"].iloc[0]
    from_batch = GIN(**FLOW_SETTINGS | {"steps": 300}, latent_dim="all", seed=1).fit(x, u)
    assert method.log_likelihood_ == pytest.approx(from_batch.log_likelihood_, abs=0.5)


def cross_entropy(y: np.ndarray, label: np.ndarray) -> float:
    """Compute the mean of -log p(label | y) by scipy, with normal classes that have the frequencies of the labels."""
    classes = [y[label == k] for k in np.unique(label)]
    log_joint = np.stack([
        stats.norm(own.mean(0), own.std(0)).logpdf(y).sum(1) + np.log(len(own) / len(y)) for own in classes
    ], 1)  # fmt: skip
    log_posterior = log_joint - special.logsumexp(log_joint, axis=1, keepdims=True)
    return -log_posterior[np.arange(len(y)), label].mean()


@pytest.mark.parametrize("label_dim", [0, 2])
def test_the_cross_entropy_of_the_labels_is_that_of_the_first_outputs(label_dim):
    x, u = blobs()
    plain, method = GIN(**FLOW_SETTINGS), GIN(**FLOW_SETTINGS, label_weight=3.0, label_dim=label_dim)
    net, batch = flow_batch(method, as_data(x, u), 60)
    terms, without = method.loss(net, batch), plain.loss(*flow_batch(plain, as_data(x, u), 60))
    y = net.flow(method.to_network_input(batch["x"], batch["eps"]))[0].detach().double().numpy()
    expected = cross_entropy(y[:, : label_dim or None], batch["r"].argmax(1).numpy())
    assert float(terms["cross_entropy"]) == pytest.approx(expected, rel=1e-4)
    assert float(terms["loss"] - without["loss"]) == pytest.approx(3 * expected, rel=1e-3)
    assert "cross_entropy" not in without


def test_a_class_that_a_batch_lacks_does_not_change_the_cross_entropy():
    x, u = blobs()
    method = GIN(**FLOW_SETTINGS, label_weight=1.0, statistics="learned")
    net, batch = flow_batch(method, as_data(x, u), 60)
    two = batch["r"].argmax(1) < 2
    terms = method.loss(net, {k: v[two] for k, v in batch.items()})
    y = net.flow(method.to_network_input(batch["x"], batch["eps"]))[0][two]
    c = Coefficients(*(v[:2] for v in method.latent_family().from_location_spread(net.location, net.spread)))
    without = method.label_cross_entropy(y, c, batch["r"][two, :2])
    torch.testing.assert_close(terms["cross_entropy"], without)
    assert all(g.isfinite().all() for g in torch.autograd.grad(terms["loss"], list(net.parameters())))


def test_restarts_with_a_label_weight_are_compared_by_cross_entropy():
    x, u = blobs(300)
    method = GIN(**FLOW_SETTINGS, label_weight=1.0, label_dim=2, restarts=3, latent_dim="all").fit(x, u)
    assert max(start["merit"] for start in method.restarts_) == -method.label_cross_entropy_
    y = method.outputs(torch.from_numpy(x)).numpy()[:, :2]
    assert method.label_cross_entropy_ == pytest.approx(cross_entropy(y, u), abs=0.01)
    assert len({start["merit"] for start in method.restarts_}) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"label_weight": -1.0}, "a weight of 0 or more"), ({"label_weight": 1.0, "label_dim": 5}, "0 to 4 outputs")],
)
def test_settings_of_the_cross_entropy_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        GIN(**FLOW_SETTINGS, **settings).fit(*blobs())


def test_the_cross_entropy_needs_classes():
    x, u = blobs()
    with pytest.raises(InputError, match="needs classes, and labels are probabilities"):
        GIN(**FLOW_SETTINGS, label_weight=1.0).fit(x, 0.9 * np.eye(3)[u] + 0.1 / 3)


def test_gin_recovers_both_sources_and_separates_them_from_noise(fitted):
    method, _, x, c = fitted
    assert mcc(c[:, 1:3].numpy(), method.transform(x)) > 0.95
    assert method.n_informative_ == 2 and method.confidence_ > 0.9
    assert method.informative_interval() == method.informative_interval_ == (2, 2)
    assert (np.diff(method.spectrum_) <= 0).all() and len(method.informative_) == 2
    assert any("5 classes are enough for 2 informative variables" in text for text in method.diagnosis_)


def test_a_model_of_an_earlier_version_has_the_interval_of_its_spectrum(fitted):
    old = copy.copy(fitted[0])
    del old.informative_interval_
    old.n_informative_, old.spectrum_ = 3, np.geomspace(1, 0.01, 10)
    low, high = old.informative_interval()
    assert low <= 3 < high


def test_informative_codes_are_the_first_of_all_codes(fitted):
    method, _, x, _ = fitted
    everything = method.transform(x[:50])
    method.latent_dim_ = 2
    try:
        np.testing.assert_array_equal(method.transform(x[:50]), everything[:, :2])
        decoded = method.inverse_transform(everything[:, :2])
        assert np.abs(decoded - x[:50]).max() < 0.5  # what is left at its mean is noise
    finally:
        method.latent_dim_ = 5
    np.testing.assert_allclose(method.inverse_transform(everything), x[:50], atol=1e-4)


def test_the_restart_with_the_highest_likelihood_is_kept(tmp_path):
    x, u = blobs(200)
    method = GIN(**FLOW_SETTINGS, restarts=3, seed=4).fit(x, u)
    merits = [start["merit"] for start in method.restarts_]
    assert method.restarts_[0]["seed"] == 4 and len(set(merits)) == 3
    assert method.log_likelihood_ == max(merits) and method.seed == 4
    best = method.restarts_[int(np.argmax(merits))]["seed"]
    alone = GIN(**FLOW_SETTINGS, seed=best).fit(x, u)
    np.testing.assert_allclose(alone.transform(x), method.transform(x), atol=1e-5)
    method.save(tmp_path / "model")
    again = unweave.load(tmp_path / "model")
    assert again.restarts_ == method.restarts_ and np.array_equal(again.sample(1, 3), method.sample(1, 3))


def test_a_finite_mixture_materializes_to_the_same_values():
    data = GaussianMixture(points=300, noise_dims=2).load()
    table, points = data.materialize(), data.all_points(300)
    torch.testing.assert_close(table.x, data.render(points))
    assert torch.equal(table.c, data.labels(points))


def test_log_prob_is_the_density_of_the_class_and_of_the_mixture(fitted):
    method, _, x, c = fitted
    y, u = method.outputs(torch.from_numpy(x[:40])).numpy(), c[:40, 0].long().numpy()
    mean, deviation = (method.first_ / method.second_).numpy(), method.second_.rsqrt().numpy()
    each = stats.norm(mean[None], deviation[None]).logpdf(y[:, None]).sum(2)  # (40, classes)
    np.testing.assert_allclose(method.log_prob(x[:40], u), each[np.arange(40), u], atol=1e-2)
    mixture = np.logaddexp.reduce(each + np.log(method.class_shares_.numpy()), 1)
    np.testing.assert_allclose(method.log_prob(x[:40]), mixture, atol=1e-2)


def test_samples_have_the_statistics_of_their_class_and_temperature_scales_them(fitted):
    method = fitted[0]
    codes = method.transform(method.sample(3, 2_000, seed=1))
    mean, deviation = method.means_[3, method.order_].numpy(), method.deviations_[3, method.order_].numpy()
    np.testing.assert_allclose(codes.mean(0), mean, atol=0.2)
    np.testing.assert_allclose(codes.std(0), deviation, rtol=0.1)
    cold = method.transform(method.sample(3, 2_000, temperature=0.5, informative=True, seed=1))
    np.testing.assert_allclose(cold.std(0)[:2], deviation[:2] / 2, rtol=0.1)
    assert (cold.std(0)[2:] < 1e-3).all()
    frozen = method.transform(method.sample(3, temperature=0.0))
    np.testing.assert_allclose(frozen, mean[None], atol=1e-2)
    for settings in ({"n": 0}, {"temperature": -0.1}):
        with pytest.raises(InputError, match="expected at least 1, and at least 0"):
            method.sample(3, **settings)


def test_transfer_keeps_the_style_and_changes_the_class(fitted):
    method, _, x, c = fitted
    u = c[:30, 0].long().numpy()
    moved = method.transfer(x[:30], 2, from_label=u)
    before = method.latent_family().whiten(
        method.outputs(torch.from_numpy(x[:30])), method.coefficients(torch.eye(5)[u])
    )
    after = method.latent_family().whiten(
        method.outputs(torch.from_numpy(moved)), method.coefficients(torch.eye(5)[[2] * 30])
    )
    torch.testing.assert_close(before, after, atol=2e-2, rtol=1e-2)
    np.testing.assert_allclose(method.transfer(x[:30], u, from_label=u), x[:30], atol=1e-3)
    own = method.transfer(x[:30], 2)  # each taken to be of its likeliest class
    seen = x[:30] + method.noise * torch.randn(30, 5, generator=torch.Generator().manual_seed(0)).numpy()
    likely = np.argmax([method.log_prob(seen, k) + np.log(float(method.class_shares_[k])) for k in range(5)], 0)
    np.testing.assert_allclose(own[likely == u], moved[likely == u], atol=1e-4)
    usual = method.transfer(x[:30], 2, from_label=u, informative=True)
    kept = method.latent_family().whiten(
        method.outputs(torch.from_numpy(usual)), method.coefficients(torch.eye(5)[[2] * 30])
    )
    torch.testing.assert_close(kept[:, method.informative_], before[:, method.informative_], atol=2e-2, rtol=1e-2)
    assert kept[:, method.order_[method.n_informative_ :]].abs().max() < 0.05


def test_labels_that_were_not_learned_are_an_error(fitted):
    method, _, x, _ = fitted
    with pytest.raises(InputError, match="no class '7'"):
        method.sample(7)
    with pytest.raises(InputError, match="2 labels for 3 observations"):
        method.log_prob(x[:3], [0, 1])
    with pytest.raises(InputError, match="rows of 2 probabilities for 5 classes"):
        method.log_prob(x[:2], np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="n=0"):
        method.sample(1, 0)


def test_all_kinds_of_labels_of_fit_are_accepted_afterwards():
    x, u = blobs(120)
    floats = GIN(**FLOW_SETTINGS).fit(x, u.astype(float))
    np.testing.assert_array_equal(floats.log_prob(x, u.astype(float)), floats.log_prob(x, u[:, None]))
    flags = GIN(**FLOW_SETTINGS).fit(x, u > 0)
    assert flags.sample(True, 2).shape == (2, 4)
    hot = GIN(**FLOW_SETTINGS).fit(x, np.eye(3, dtype=int)[u])
    assert hot.has_soft_labels_ and len(hot.class_names_) == 3
    with pytest.raises(InputError, match="real-valued"):
        GIN(**FLOW_SETTINGS, label="z1").fit(GaussianMixture(points=200).load())


def test_bytes_in_a_table_equal_floats():
    x = np.random.default_rng(0).integers(0, 9, (120, 4)).astype(np.uint8)
    method = GIN(**FLOW_SETTINGS).fit(x, np.arange(120) % 3)
    np.testing.assert_allclose(method.log_prob(x, [0]), method.log_prob(x.astype(np.float64), [0]), rtol=1e-4)


def test_a_rare_class_has_its_own_statistics(monkeypatch):
    monkeypatch.setattr(features, "MAX_SAMPLES", 1_000)
    x, u = blobs(30_000)
    x[:20], u[:20] = x[:20] * 0.1 + 50, 7
    method = GIN(**FLOW_SETTINGS).fit(x, u)
    assert method.class_names_ == ["0", "1", "2", "7"] and float(method.class_shares_[3]) == pytest.approx(20 / 30_000)
    assert np.median(np.abs(method.sample(7, 200).mean(0) - 50)) < 20 and float(method.deviations_[3].min()) > 1e-3


def test_deviations_far_from_the_origin_are_not_lost_to_rounding():
    x, u = blobs(3_000)
    x = x * 0.05 + 1_000
    method = GIN(**FLOW_SETTINGS | {"steps": 1, "lr": 1e-9}).fit(x, u)  # a permutation
    expected = np.sort(np.sqrt(x[u == 1].std(0) ** 2 + 0.01**2))
    np.testing.assert_allclose(np.sort(method.deviations_[1].numpy()), expected, rtol=0.05)


def test_codes_outside_the_support_of_a_family_are_an_error():
    x, u = blobs(120)
    method = GIN(**FLOW_SETTINGS, family="gamma", latent_dim=2).fit(x, u)
    with pytest.raises(InputError, match="above 0"):
        method.inverse_transform(-np.ones((2, 2)))


def test_figures_of_the_paper(fitted, digits):
    method, data, *_ = fitted
    titles = [axis.get_title() for axis in draw_recovery(method, data).axes]
    assert titles[0] == "ground truth" and "MCC 0.9" in titles[2] and titles[3] == "2 informative (95%: 2)"
    images = digits[0]
    assert len(draw_spectra(images, digits[1][:200]).axes) == 3
    shown = draw_variable(images, 0).axes[0]
    assert [label.get_text() for label in shown.get_yticklabels()] == [str(k) for k in range(10)]
    assert len(draw_samples(images, rows=3, temperature=0.8, informative=True).axes[0].get_yticklabels()) == 3
    rows = class_centers(images, digits[1][:200], digits[2][:200])
    assert draw_variable(images, 3, rows).axes[0].get_title().startswith("variable 4")


def test_figures_that_need_images_or_factors_are_an_error_without_them(fitted, digits):
    with pytest.raises(InputError, match="only images can be shown"):
        draw_variable(fitted[0], 0)
    with pytest.raises(InputError, match="variable 64 of 64"):
        draw_variable(digits[0], 64)
    with pytest.raises(InputError, match="two real-valued factors"):
        draw_recovery(digits[0], as_data(digits[1][:50], digits[2][:50]))


def test_two_observations_of_a_class_count():
    x, _ = blobs(60)
    method = GIN(**FLOW_SETTINGS)
    net, batch = flow_batch(method, as_data(x, np.r_[0, 0, np.ones(58, int)]), 60)
    batch["r"] = torch.eye(2)[[0, 0] + [1] * 58]
    assert float(method.loss(net, batch)["alone"]) == 0
    batch["r"] = torch.eye(2)[[0] + [1] * 59]
    assert float(method.loss(net, batch)["alone"]) == 1
