"""GIN and self-supervised GIN: the losses by hand, sources found, what comes after fitting, bad input."""

import re
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import unweave
from unweave.data.arrays import as_data
from unweave.datasets import GaussianMixture
from unweave.methods import GIN, SelfSupervisedGIN
from unweave.methods.flows import features
from unweave.methods.flows.class_diagnosis import find_gaps, shorten
from unweave.methods.flows.families import FAMILIES
from unweave.methods.flows.labels import is_soft, regression_weights
from unweave.methods.flows.self_supervised_gin import count_variations
from unweave.metrics import mcc
from unweave.report.figures.flows import class_centers, draw_recovery, draw_samples, draw_spectra, draw_variable
from unweave.training.adam import Adam
from unweave.utils.errors import InputError

SMALL = {"blocks": 2, "width": 8, "steps": 20, "batch_size": 60, "device": "cpu"}


def batch_of(method, data, n):
    method.validate_settings(data)
    method.prepare(data)
    torch.manual_seed(0)
    net = method.build(data.shape)
    for p in net.parameters():
        torch.nn.init.normal_(p, std=0.3)
    rng = torch.Generator().manual_seed(0)
    plan = method.plan(data, n, rng)
    batch = {k: data.render(v).float() for k, v in plan.views.items()} | plan.extras | method.sample_noise(n, rng)
    return net, batch


def blobs(n=90, classes=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    u = np.arange(n) % classes
    x = rng.standard_normal((n, d)) * (1 + u[:, None] * [1, 0.5, 0, 0][:d]) + u[:, None] * [1, -1, 0, 0][:d]
    return x.astype(np.float32), u


@pytest.fixture(scope="module")
def fitted():
    """A GIN on the paper's data, in small."""
    data = GaussianMixture(points=4_000, noise_dims=3, clusters=5, seed=1).load()
    method = GIN(steps=250, batch_size=500, latent_dim="all").fit(data)
    x, c = data.collect(4_000, torch.Generator().manual_seed(0))
    return method, data, x.numpy(), c


@pytest.fixture(scope="module")
def digits():
    """A GIN on small images."""
    x, u = load_digits(return_X_y=True)
    images = (x / 16).reshape(-1, 8, 8).astype(np.float32)
    return GIN(steps=30, batch_size=100, conv_blocks=1, conv_widths=(4, 6), width=20).fit(images, u), images, u


# Losses -------------------------------------------------------------------------------------------------------------


def test_the_loss_is_equation_10_with_the_means_and_variances_of_each_class_in_the_batch():
    x, u = blobs()
    method = GIN(**SMALL)
    net, batch = batch_of(method, as_data(x, u), 60)
    terms = method.loss(net, batch)
    w = net.flow(method.to_network_input(batch["x"], batch["eps"]))[0].detach().numpy().astype(np.float64)
    label = batch["r"].argmax(1).numpy()
    nats = np.zeros(60)
    for k in range(3):
        own = w[label == k]
        nats[label == k] = -stats.norm(own.mean(0), own.std(0)).logpdf(own).sum(1)
    assert float(terms["nats"]) == pytest.approx(nats.mean(), rel=1e-4)
    assert float(terms["loss"]) == pytest.approx(nats.mean() / 4, rel=1e-4) and float(terms["alone"]) == 0


def test_at_rest_no_constant_shift_or_scale_changes_the_loss():
    """Means and variances of the classes take it up: last biases have a first gradient of rounding errors alone."""
    x, u = blobs(900)
    data, method = as_data(x, u), GIN(**SMALL, latent_dim="all")
    _, batch = batch_of(method, data, 600)
    net = method.build(data.shape)
    method.loss(net, batch)["loss"].backward()
    for block in net.flow.blocks:
        for part in (block.first, block.second):
            assert part[-1].bias.grad.abs().max() < 1e-5 * part[-1].weight.grad.abs().max()


def test_without_a_fixed_volume_the_log_determinant_counts():
    x, u = blobs()
    method = GIN(volume="free", **SMALL)
    net, batch = batch_of(method, as_data(x, u), 60)
    noisy = batch["x"] + 0.01 * batch["eps"]
    log_det = net.flow(noisy)[1].mean()
    kept = float(method.loss(net, batch)["nats"])
    with torch.no_grad():
        for block in net.flow.blocks:
            block.volume = "free"
    c = method.distribution().fit(net.flow(noisy)[0], batch["r"] / batch["r"].sum(0))
    expected = -(method.distribution().log_prob(net.flow(noisy)[0], c.select(batch["r"])).sum(1)).mean() - log_det
    assert float(log_det.abs()) > 0.01 and kept == pytest.approx(float(expected), rel=1e-5)


def test_a_class_that_is_alone_in_its_batch_is_left_out_and_counted():
    x, u = blobs()
    method = GIN(**SMALL)
    net, batch = batch_of(method, as_data(x, u), 60)
    label = batch["r"].argmax(1)
    chosen = torch.cat([(label < 2).nonzero()[:, 0], (label == 2).nonzero()[:1, 0]])
    lone = {k: v[chosen] for k, v in batch.items()}
    terms = method.loss(net, lone)
    assert float(terms["alone"]) == 1
    without = method.loss(net, {k: v[:-1] for k, v in lone.items()})
    assert float(terms["nats"]) == pytest.approx(float(without["nats"]), rel=1e-6)
    gradients = torch.autograd.grad(terms["loss"], list(net.parameters()))
    assert all(g.isfinite().all() for g in gradients)


def test_probabilities_of_zero_and_one_are_classes():
    x, u = blobs()
    hard, rows = GIN(**SMALL), GIN(**SMALL)
    net, batch = batch_of(hard, as_data(x, u), 60)
    other, soft_batch = batch_of(rows, as_data(x, np.eye(3)[u]), 60)
    torch.testing.assert_close(rows.loss(other, soft_batch)["loss"], hard.loss(net, batch)["loss"])
    assert rows.has_soft_labels_ and not hard.has_soft_labels_ and hard.levels_ == [0, 1, 2]


def test_classes_are_found_from_probabilities_that_mix_them():
    rng = np.random.default_rng(0)
    r = rng.dirichlet([0.5, 0.5], 20_000)
    means, deviations = np.array([[-3.0, 1], [3, 0]]), np.array([[1.0, 0.5], [0.5, 2]])
    u = (rng.random(20_000) > r[:, 0]).astype(int)  # an observation is of one class, with its probability
    y = torch.from_numpy(means[u] + deviations[u] * rng.standard_normal((20_000, 2)))
    p = regression_weights(torch.from_numpy(r))
    found = FAMILIES["normal"].fit(y, p)
    torch.testing.assert_close(found.first / found.second, torch.from_numpy(means), atol=0.1, rtol=0)
    torch.testing.assert_close(found.second.rsqrt(), torch.from_numpy(deviations), atol=0.15, rtol=0)
    mixed = FAMILIES["normal"].mix(found, torch.from_numpy(r))
    middle = np.abs(r[:, 0] - 0.5) < 0.1
    assert float((mixed.first / mixed.second)[middle, 0].mean()) == pytest.approx(float(y[middle, 0].mean()), abs=0.2)
    assert float(mixed.second.rsqrt()[middle, 0].mean()) == pytest.approx(float(y[middle, 0].std()), abs=0.2)


def test_soft_labels_are_learned_from_and_used_for_sampling():
    x, u = blobs(900)
    rows = 0.8 * np.eye(3)[u] + 0.2 * np.random.default_rng(0).dirichlet([1, 1, 1], 900)
    method = GIN(**SMALL | {"steps": 100}, latent_dim="all").fit(x, rows)
    assert np.isfinite(method.log_prob(x, rows)).all()
    assert any("Probabilities vary the coefficients" in text for text in method.diagnosis_)
    near = GIN(**SMALL | {"steps": 100}, latent_dim="all").fit(x, u)
    assert method.log_prob(x, np.eye(3)[u]).mean() == pytest.approx(near.log_prob(x, u).mean(), abs=1.0)
    assert method.sample([0.5, 0.5, 0.0], 4).shape == (4, 4) and method.sample("y2", 4).shape == (4, 4)


def test_probabilities_with_another_family_are_refused():
    x, u = blobs()
    with pytest.raises(InputError, match="family='normal' or 'log-normal'"):
        GIN(**SMALL, family="gamma").fit(x, 0.9 * np.eye(3)[u] + 0.1 / 3)


def test_learned_statistics_are_parameters_of_the_network():
    x, u = blobs(300)
    method = GIN(**SMALL | {"steps": 300}, statistics="learned", latent_dim="all", seed=1).fit(x, u)
    assert {"location", "spread"} <= dict(method.net_.named_parameters()).keys()
    torch.testing.assert_close(method.first_ / method.second_, method.net_.location.detach())
    assert method.history["nats"].iloc[-1] < method.history["nats"].iloc[0]
    from_batch = GIN(**SMALL | {"steps": 300}, latent_dim="all", seed=1).fit(x, u)
    assert method.log_likelihood_ == pytest.approx(from_batch.log_likelihood_, abs=0.5)


def test_the_self_supervised_loss_is_equation_7_over_the_copies_of_each_point():
    data = GaussianMixture(points=200, noise_dims=2).load()
    method = SelfSupervisedGIN(**SMALL, augment=("z1",), copies=5)
    net, batch = batch_of(method, data, 20)
    y = net.flow(batch["x"] + 0.01 * batch["eps"])[0].detach().numpy().astype(np.float64).reshape(20, 5, 4)
    nats = -stats.norm(y.mean(1, keepdims=True), y.std(1, keepdims=True)).logpdf(y).sum(2)
    assert float(method.loss(net, batch)["nats"]) == pytest.approx(nats.mean(), rel=1e-4)


def test_copies_of_images_are_transformed_and_the_first_is_not():
    x = np.random.default_rng(0).random((30, 1, 8, 8)).astype(np.float32)
    method = SelfSupervisedGIN(conv_blocks=1, conv_widths=(4,), width=8, copies=4, augment=("translation",))
    _, batch = batch_of(method, as_data(x), 3)
    moved = method.augment_copies(batch).reshape(3, 4, 64)
    plain = batch["x"].reshape(3, 4, 64)
    torch.testing.assert_close(moved[:, 0], plain[:, 0], atol=1e-6, rtol=0)
    assert float((moved[:, 1:] - plain[:, 1:]).abs().amax((0, 2)).min()) > 0.1


# Learning -----------------------------------------------------------------------------------------------------------


def test_gin_finds_both_sources_and_tells_them_from_noise(fitted):
    method, _, x, c = fitted
    assert mcc(c[:, 1:3].numpy(), method.transform(x)) > 0.95
    assert method.n_informative_ == 2 and method.confidence_ > 0.9
    assert (np.diff(method.spectrum_) <= 0).all() and len(method.informative_) == 2
    assert any("5 classes are enough for 2 informative variables" in text for text in method.diagnosis_)


def test_self_supervised_gin_finds_both_sources_without_labels():
    data = GaussianMixture(points=2_000, noise_dims=3, seed=1).load()
    method = SelfSupervisedGIN(steps=150, batch_size=100, augment=("z1", "z2")).fit(data)
    x, c = data.collect(2_000, torch.Generator().manual_seed(0))
    assert method.latent_dim_ == method.n_informative_ == 2
    assert mcc(c[:, 1:3].numpy(), method.transform(x)) > 0.95
    said = " ".join(method.diagnosis_)
    assert "all there are" in said
    before = " ".join(method.outlook(data))
    assert re.search("copies of an observation differ in [2-4] directions", before)


def test_moves_that_are_alike_everywhere_vary_only_the_means_of_the_sets():
    data = GaussianMixture(points=2_000, noise_dims=2, blocks=0).load()  # not mixed: all sets have the same deviations
    method = SelfSupervisedGIN(**SMALL | {"steps": 1}, augment=("z1", "z2")).fit(data)
    assert any("vary in 2 of 4 independent ways: fewer" in text for text in method.diagnosis_)


def test_ways_counts_what_varies_between_sets_and_not_chance():
    rng = torch.Generator().manual_seed(0)
    noise, center, scale = (torch.randn(1_000, c, 2, generator=rng) for c in (10, 1, 1))
    assert count_variations(noise) == 0
    assert count_variations(noise + center) == 2
    assert count_variations(noise + center[:, :, :1]) == 1  # both means move together
    assert count_variations(center + noise * (0.7 * scale).exp()) == 4


def test_the_informative_codes_are_the_first_of_all(fitted):
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


def test_the_likeliest_of_several_starts_is_kept_and_reported(tmp_path):
    x, u = blobs(200)
    method = GIN(**SMALL, restarts=3, seed=4).fit(x, u)
    merits = [start["merit"] for start in method.restarts_]
    assert method.restarts_[0]["seed"] == 4 and len(set(merits)) == 3
    assert method.log_likelihood_ == max(merits) and method.seed == 4
    best = method.restarts_[int(np.argmax(merits))]["seed"]
    alone = GIN(**SMALL, seed=best).fit(x, u)
    np.testing.assert_allclose(alone.transform(x), method.transform(x), atol=1e-5)
    method.save(tmp_path / "model")
    again = unweave.load(tmp_path / "model")
    assert again.restarts_ == method.restarts_ and np.array_equal(again.sample(1, 3), method.sample(1, 3))


def test_a_rate_of_zero_is_the_papers_and_falls_to_a_tenth_after_five_eighths():
    x, u = blobs()
    vectors, images = GIN(**SMALL), GIN(conv_widths=(4,), conv_blocks=1)
    vectors.validate_settings(as_data(x, u))
    images.validate_settings(as_data(np.zeros((4, 8, 8), np.float32), np.arange(4) % 2))
    assert float(vectors.optimizers()[""].lr) == pytest.approx(1e-2) and float(
        images.optimizers()[""].lr
    ) == pytest.approx(3e-4)
    rate = Adam(torch.tensor(0.5), decay_after=5 / 8)
    assert [float(rate.at_progress(torch.tensor(t)).lr) for t in (0.0, 0.62, 0.63)] == pytest.approx([0.5, 0.5, 0.05])


def test_a_finite_mixture_is_rendered_once_with_the_same_values():
    data = GaussianMixture(points=300, noise_dims=2).load()
    table, points = data.materialize(), data.all_points(300)
    torch.testing.assert_close(table.x, data.render(points))
    assert torch.equal(table.c, data.labels(points))


# After fitting ------------------------------------------------------------------------------------------------------


def test_log_prob_is_the_density_of_the_class_and_of_the_mixture(fitted):
    method, _, x, c = fitted
    y, u = method.outputs(torch.from_numpy(x[:40])).numpy(), c[:40, 0].long().numpy()
    mean, deviation = (method.first_ / method.second_).numpy(), method.second_.rsqrt().numpy()
    each = stats.norm(mean[None], deviation[None]).logpdf(y[:, None]).sum(2)  # (40, classes)
    np.testing.assert_allclose(method.log_prob(x[:40], u), each[np.arange(40), u], atol=1e-2)
    mixture = np.logaddexp.reduce(each + np.log(method.class_frequencies_.numpy()), 1)
    np.testing.assert_allclose(method.log_prob(x[:40]), mixture, atol=1e-2)


def test_samples_of_a_class_follow_it_and_temperature_shrinks_them(fitted):
    method = fitted[0]
    codes = method.transform(method.sample(3, 2_000, seed=1))
    mean, deviation = method.means_[3, method.order_].numpy(), method.deviations_[3, method.order_].numpy()
    np.testing.assert_allclose(codes.mean(0), mean, atol=0.2)
    np.testing.assert_allclose(codes.std(0), deviation, rtol=0.1)
    cold = method.transform(method.sample(3, 2_000, temperature=0.5, informative=True, seed=1))
    np.testing.assert_allclose(cold.std(0)[:2], deviation[:2] / 2, rtol=0.1)
    assert (cold.std(0)[2:] < 1e-3).all()


def test_transfer_keeps_the_style_and_changes_the_class(fitted):
    method, _, x, c = fitted
    u = c[:30, 0].long().numpy()
    moved = method.transfer(x[:30], 2, from_label=u)
    before = method.distribution().whiten(
        method.outputs(torch.from_numpy(x[:30])), method.coefficients(torch.eye(5)[u])
    )
    after = method.distribution().whiten(
        method.outputs(torch.from_numpy(moved)), method.coefficients(torch.eye(5)[[2] * 30])
    )
    torch.testing.assert_close(before, after, atol=2e-2, rtol=1e-2)
    np.testing.assert_allclose(method.transfer(x[:30], u, from_label=u), x[:30], atol=1e-3)
    own = method.transfer(x[:30], 2)  # each taken to be of its likeliest class
    seen = x[:30] + method.noise * torch.randn(30, 5, generator=torch.Generator().manual_seed(0)).numpy()
    likely = np.argmax([method.log_prob(seen, k) + np.log(float(method.class_frequencies_[k])) for k in range(5)], 0)
    np.testing.assert_allclose(own[likely == u], moved[likely == u], atol=1e-4)
    usual = method.transfer(x[:30], 2, from_label=u, informative=True)
    kept = method.distribution().whiten(
        method.outputs(torch.from_numpy(usual)), method.coefficients(torch.eye(5)[[2] * 30])
    )
    torch.testing.assert_close(kept[:, method.informative_], before[:, method.informative_], atol=2e-2, rtol=1e-2)
    assert kept[:, method.order_[method.n_informative_ :]].abs().max() < 0.05


def test_images_go_through_convolutions_and_back(digits):
    method, images, _ = digits
    everything = GIN(**method.get_params() | {"latent_dim": "all"}).fit(images[:300], np.arange(300) % 3)
    np.testing.assert_allclose(everything.inverse_transform(everything.transform(images[:5])), images[:5], atol=1e-4)
    assert method.sample(7, 3).shape == (3, 8, 8) and method.transfer(images[:2], 1).shape == (2, 8, 8)
    assert any("features are constant" in text for text in method.diagnosis_)


# Figures ------------------------------------------------------------------------------------------------------------


def test_figures_of_the_paper(fitted, digits):
    method, data, *_ = fitted
    titles = [axis.get_title() for axis in draw_recovery(method, data).axes]
    assert titles[0] == "ground truth" and "MCC 0.9" in titles[2] and titles[3].startswith("2 informative")
    images = digits[0]
    assert len(draw_spectra(images, digits[1][:200]).axes) == 3
    shown = draw_variable(images, 0).axes[0]
    assert [label.get_text() for label in shown.get_yticklabels()] == [str(k) for k in range(10)]
    assert len(draw_samples(images, rows=3, temperature=0.8, informative=True).axes[0].get_yticklabels()) == 3
    rows = class_centers(images, digits[1][:200], digits[2][:200])
    assert draw_variable(images, 3, rows).axes[0].get_title().startswith("variable 4")


def test_figures_refuse_what_they_cannot_show(fitted, digits):
    with pytest.raises(InputError, match="only images can be shown"):
        draw_variable(fitted[0], 0)
    with pytest.raises(InputError, match="variable 64 of 64"):
        draw_variable(digits[0], 64)
    with pytest.raises(InputError, match="two real-valued factors"):
        draw_recovery(digits[0], as_data(digits[1][:50], digits[2][:50]))


# Diagnosis ----------------------------------------------------------------------------------------------------------


def told(names, means, deviations):
    """The findings on classes with these means and deviations along two codes."""
    method = GIN()
    method.class_names_, method.has_soft_labels_, method.terms_ = names, False, ["loss", "alone"]
    method.history_ = torch.zeros(1, 3)
    method.informative_, method.n_informative_, method.order_ = [0, 1], 2, torch.arange(4)
    method.means_, method.deviations_ = torch.tensor(means), torch.tensor(deviations)
    return " ".join(method.diagnose())


def test_too_few_classes_a_gap_and_a_split_variable_are_said():
    few_classes = told(["a", "b", "c"], [[0.0, 0], [1, 1], [0, 2]], [[1.0, 1], [1, 1], [1, 1]])
    assert "3 classes guarantee 1 variable" in few_classes and "split" not in few_classes
    gap = told(list("abcde"), [[0.0, 0], [1, 0], [30, 0], [31, 0], [1, 0]], [[1.0, 1]] * 5)
    assert "between classes 'b' and 'c' along code 1" in gap or "between classes 'e' and 'c' along code 1" in gap
    assert "along code 2" not in gap
    split = told(list("abcde"), [[0.0, 0]] * 5, [[1, 0.01], [1, 0.02], [0.01, 1], [0.02, 1], [1, 0.1]])
    assert "No class varies along both code 1 and code 2" in split


def test_long_lists_of_findings_are_cut():
    assert shorten(["x"] * 3) == ["x"] * 3 and shorten(["x"] * 9)[-1] == "(And 6 more of this kind.)"


# Bad input ----------------------------------------------------------------------------------------------------------


def labels_with(name):
    return np.array(["a", "b"] * 30 + [name])


@pytest.mark.parametrize(
    ("settings", "x", "y", "words"),
    [
        ({}, blobs(61)[0], labels_with("lonely"), "class 'lonely' has fewer than two observations"),
        ({}, blobs(60)[0], ["same"] * 60, "one class only"),
        ({}, blobs(60)[0][:, :1], np.arange(60) % 2, r"1 feature\(s\) only"),
        ({}, blobs(60)[0], None, "requires y"),
        (
            {"noise": 0.0},
            np.c_[blobs(60)[0], np.ones(60)],
            np.arange(60) % 2,
            "1 of 5 features are constant.*noise=0.01",
        ),
        ({"latent_dim": 9}, blobs(60)[0], np.arange(60) % 2, "latent_dim=9: observations of 4 numbers"),
        ({"restarts": 0}, blobs(60)[0], np.arange(60) % 2, "restarts=0"),
        ({"network": "conv"}, blobs(60)[0], np.arange(60) % 2, "needs images"),
        ({}, np.random.default_rng(0).random((20, 1, 10, 6)), np.arange(20) % 2, "10 x 6 cannot be halved 2 times"),
        ({"noise": -1.0}, blobs(60)[0], np.arange(60) % 2, "noise=-1.0"),
        ({"batch_size": 5}, blobs(60)[0], np.arange(60) % 3, "batch_size=5.*at least 6"),
        ({"family": "gamma"}, blobs(60)[0] * 100, np.arange(60) % 3, "standardize"),
        ({"conv_widths": (0,)}, np.random.default_rng(0).random((20, 8, 8)), np.arange(20) % 2, "conv_widths"),
    ],
)
def test_bad_input_is_refused_with_a_reason(settings, x, y, words):
    with pytest.raises(InputError, match=words):
        GIN(**SMALL | settings).fit(x, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"copies": 1}, "copies=1"),
        ({"augment": ("rotation",)}, "rotation move images"),
        ({"augment": ("z9",)}, "no factor named 'z9'.*rotation.*z1"),
        ({"augment": ("z1", "rotation")}, "move images|not both"),
        ({"noise": 0.0}, "all copies of an observation would be the same"),
    ],
)
def test_augmentations_that_cannot_be_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        SelfSupervisedGIN(**SMALL | settings).fit(GaussianMixture(points=100, noise_dims=2).load())


def test_augmenting_rows_of_a_table_along_factors_is_refused():
    x, u = blobs()
    with pytest.raises(InputError, match="rendered at any real value"):
        SelfSupervisedGIN(**SMALL, augment=("y",)).fit(as_data(x, u))


def test_constant_features_are_given_noise_and_said():
    x, u = blobs(200)
    method = GIN(**SMALL).fit(np.c_[x, np.ones(200)], u)
    assert any("1 of 5 features are constant" in text for text in method.diagnosis_)


def test_labels_that_were_not_learned_are_refused(fitted):
    method, _, x, _ = fitted
    with pytest.raises(InputError, match="no class '7'"):
        method.sample(7)
    with pytest.raises(InputError, match="2 labels for 3 observations"):
        method.log_prob(x[:3], [0, 1])
    with pytest.raises(InputError, match="rows of 2 probabilities for 5 classes"):
        method.log_prob(x[:2], np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="n=0"):
        method.sample(1, 0)


def test_labels_that_fit_takes_are_taken_afterwards_too():
    x, u = blobs(120)
    floats = GIN(**SMALL).fit(x, u.astype(float))
    np.testing.assert_array_equal(floats.log_prob(x, u.astype(float)), floats.log_prob(x, u[:, None]))
    flags = GIN(**SMALL).fit(x, u > 0)
    assert flags.sample(True, 2).shape == (2, 4)
    hot = GIN(**SMALL).fit(x, np.eye(3, dtype=int)[u])
    assert hot.has_soft_labels_ and len(hot.class_names_) == 3
    with pytest.raises(InputError, match="real-valued"):
        GIN(**SMALL, label="z1").fit(GaussianMixture(points=200).load())


def test_bytes_in_a_table_are_the_same_numbers_for_all():
    x = np.random.default_rng(0).integers(0, 9, (120, 4)).astype(np.uint8)
    method = GIN(**SMALL).fit(x, np.arange(120) % 3)
    np.testing.assert_allclose(method.log_prob(x, [0]), method.log_prob(x.astype(np.float64), [0]), rtol=1e-4)


def test_a_rare_class_has_its_own_statistics(monkeypatch):
    monkeypatch.setattr(features, "MAX_SAMPLES", 1_000)
    x, u = blobs(30_000)
    x[:20], u[:20] = x[:20] * 0.1 + 50, 7
    method = GIN(**SMALL).fit(x, u)
    assert method.class_names_ == ["0", "1", "2", "7"] and float(method.class_frequencies_[3]) == pytest.approx(
        20 / 30_000
    )
    assert np.median(np.abs(method.sample(7, 200).mean(0) - 50)) < 20 and float(method.deviations_[3].min()) > 1e-3


def test_deviations_far_from_the_origin_are_not_lost_to_rounding():
    x, u = blobs(3_000)
    x = x * 0.05 + 1_000
    method = GIN(**SMALL | {"steps": 1, "lr": 1e-9}).fit(x, u)  # a permutation
    expected = np.sort(np.sqrt(x[u == 1].std(0) ** 2 + 0.01**2))
    np.testing.assert_allclose(np.sort(method.deviations_[1].numpy()), expected, rtol=0.05)


def test_standardized_features_are_learned_at_their_own_scale():
    x, u = blobs(300)
    scale = np.array([1e-3, 1, 1e3, 10], np.float32)
    plain, scaled = GIN(**SMALL, latent_dim="all"), GIN(**SMALL, latent_dim="all", standardize=True)
    assert any("drowns them" in text for text in plain.outlook(x * 1e-3, u))
    assert not any("drowns them" in text for text in scaled.outlook(x * 1e-3, u))
    scaled.fit(x * scale, u)
    np.testing.assert_allclose(scaled.inverse_transform(scaled.transform(x * scale)) / scale, x, atol=1e-3)
    unit = (x / x.std(0)).astype(np.float32)
    same = GIN(**SMALL, latent_dim="all").fit(unit, u)
    volume = np.log(x.std(0) * scale).sum()
    np.testing.assert_allclose(scaled.log_prob(x * scale, u), same.log_prob(unit, u) - volume, rtol=1e-2, atol=0.1)


def test_what_can_be_said_before_training():
    x, u = blobs(100)
    said = " ".join(GIN(**SMALL).outlook(np.c_[x, np.ones(100)], u))
    assert "3 classes guarantee 1 informative variable" in said and "1 of 5 features are constant" in said
    assert "deviations do not tell" in " ".join(GIN(**SMALL, volume="free").outlook(x, u))


def test_classes_that_nothing_connects_are_named_before_training():
    rng = np.random.default_rng(0)
    u = np.arange(600) % 3
    x = rng.standard_normal((600, 4)) + np.array([0.0, 1.0, 2.0])[u, None]
    assert "Classes overlap along each of the first 4 principal directions." in GIN(**SMALL).outlook(x, u)
    x[u == 2] += 20
    apart = [text for text in GIN(**SMALL).outlook(x, u) if "Nothing lies between" in text]
    assert len(apart) == 1 and "'2'" in apart[0] and "principal direction 1 " in apart[0]


def test_gaps_are_where_no_class_reaches():
    means, names = torch.tensor([0.0, 10.0, 5.0]), ["a", "b", "c"]
    assert find_gaps(means, torch.tensor([1.0, 1.0, 1.0]), names) == []  # 3 deviations and no more
    assert find_gaps(means, torch.tensor([1.0, 0.5, 1.0]), names) == [("c", "b")]
    assert find_gaps(means, torch.tensor([20.0, 0.5, 1.0]), names) == []  # the first class reaches over all others


def test_a_refit_forgets_and_a_failed_fit_leaves_nothing():
    x, u = blobs(200)
    method = GIN(**SMALL, restarts=2).fit(x, u)
    assert any("best of 2 starts" in text for text in method.diagnosis_)
    method.fit(x, 0.9 * np.eye(3)[u] + 0.1 / 3)
    assert not hasattr(method, "levels_")
    with pytest.raises(InputError, match="not finite"):
        GIN(**SMALL, lr=1e9).fit(x, u)
    broken = GIN(**SMALL, lr=1e9)
    with pytest.raises(InputError):
        broken.fit(x, u)
    with pytest.raises(NotFittedError):
        broken.transform(x)


def test_codes_outside_of_a_family_are_refused():
    x, u = blobs(120)
    method = GIN(**SMALL, family="gamma", latent_dim=2).fit(x, u)
    with pytest.raises(InputError, match="above 0"):
        method.inverse_transform(-np.ones((2, 2)))


def test_odd_numbers_of_features_work():
    x, u = blobs(100, d=3)
    method = GIN(**SMALL, latent_dim="all").fit(x, u)
    np.testing.assert_allclose(method.inverse_transform(method.transform(x)), x, atol=1e-4)


def test_soft_labels_are_told_from_real_values_and_classes():
    assert is_soft(np.full((4, 2), 0.5)) and is_soft([[0.2, 0.8], [1.0, 0.0]])
    assert is_soft(np.eye(3, dtype=int)) and not is_soft(np.full((4, 2), 0.6)) and not is_soft(np.arange(4.0))
    with warnings.catch_warnings(), pytest.raises(InputError, match="real-valued"):
        GIN(**SMALL).fit(blobs(60)[0], np.random.default_rng(0).random(60))
