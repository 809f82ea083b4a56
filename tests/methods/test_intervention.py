"""Disentanglement by intervention, InfoGAN-CR, translation difficulty: formulas against values worked out apart."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from torch import nn
from torch.func import functional_call

from unweave import InputError, Method
from unweave.data.arrays import as_data
from unweave.data.containers import Table
from unweave.data.downloads import MissingData
from unweave.datasets import Resampled, SquaresXY
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import PCA, BetaVAE, FactorVAE, InfoGANCR, InterventionAutoencoder
from unweave.methods.intervention import MAX_GRADIENT_NORM, RIDGE_STRENGTH, predict_by_ridge, set_feature
from unweave.metrics import dci, sap, translation_difficulty
from unweave.metrics.contract import Scorer, variants
from unweave.metrics.uncertainty import score_table
from unweave.nn.batch_norm import BatchNormLayer, BatchNormNetwork
from unweave.nn.functional import permute_columns
from unweave.nn.spectral_norm import apply_spectral_norm, divide_by_spectral_norm
from unweave.training.loop import train

SMALL = {"steps": 3, "batch_size": 6, "layers": (8,), "discriminator_hidden": (8,), "translator": 4, "inner_steps": 2}


class Squared(nn.Module):
    def forward(self, x):
        return x.square()


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def sheet():
    return np.random.default_rng(0).uniform(-1, 1, (60, 6)).astype(np.float32)


@pytest.fixture
def ready(sheet):
    """A method, its network, and a batch."""

    def make(**settings):
        method = InterventionAutoencoder(**SMALL | {"features": 3, "diff_after": 0.0} | settings).fit(sheet)
        net = method.build((6,))
        x = torch.from_numpy(sheet)
        batch = {"x": x[:6], "x_r": x[6:12], "k": torch.tensor([0, 1, 2, 0, 1, 2]), "progress": torch.tensor(0.5)}
        return method, net, batch

    return make


# The intervention autoencoder -----------------------------------------------------------------------------------------


def test_reconstructions_after_both_interventions_are_those_of_figure_2(ready):
    method, net, batch = ready(feature_dim=2)
    terms = method.loss(net, batch)
    rec = back = 0.0
    for i in range(6):
        x, x_r, k = batch["x"][i : i + 1], batch["x_r"][i : i + 1], int(batch["k"][i])
        z, z_r = net.encoder(x), net.encoder(x_r)
        one = z.clone()
        one[:, 2 * k : 2 * k + 2] = z_r[:, 2 * k : 2 * k + 2]
        again = net.encoder(net.decoder(one))
        again[:, 2 * k : 2 * k + 2] = z[:, 2 * k : 2 * k + 2]
        rec += 0.5 * float((net.decoder(z) - x).square().sum()) / 6
        back += 0.5 * float((net.decoder(again) - x).square().sum()) / 6
    assert float(terms["rec"]) == pytest.approx(rec, rel=1e-5)
    assert float(terms["in"]) == pytest.approx(back, rel=1e-5)


def test_the_adversarial_loss_is_reweighted_and_each_side_gets_its_own_gradient(ready):
    method, net, batch = ready(adversary="minimax")
    x_1, real = batch["x_r"].clone().requires_grad_(), batch["x"]
    adv, critic = method.adversarial_losses(net, real, x_1)
    w = net.weight(x_1)[:, 0].exp()
    belief = torch.sigmoid(net.discriminator(x_1)[:, 0])
    expected = (w / w.mean() * (1 - belief).log()).mean()
    assert float(adv) == pytest.approx(float(expected), rel=1e-4)
    seen = torch.sigmoid(net.discriminator(real)[:, 0]).log().mean() + expected
    assert float(critic) == pytest.approx(-float(seen), rel=1e-4)  # the discriminator maximizes L_adv

    def moved(loss):
        names, tensors = zip(*[*net.named_parameters(), ("x_1", x_1)], strict=True)
        grads = torch.autograd.grad(loss, tensors, allow_unused=True, retain_graph=True)
        return {n.split(".")[0] for n, g in zip(names, grads, strict=True) if g is not None and bool((g != 0).any())}

    assert moved(adv) == {"weight", "x_1"}
    assert moved(critic) == {"discriminator"}
    softer, _ = replace_setting(method, adversary="non-saturating").adversarial_losses(net, real, x_1)
    assert moved(softer) == {"weight", "x_1"}
    slope = torch.autograd.grad(softer, x_1, retain_graph=True)[0]
    fixed = (w / w.mean()).detach()
    expected = torch.autograd.grad(-(fixed * torch.sigmoid(net.discriminator(x_1)[:, 0]).log()).mean(), x_1)[0]
    torch.testing.assert_close(slope, expected, rtol=1e-3, atol=1e-6)
    minimax = torch.autograd.grad(adv, list(net.weight.parameters()), retain_graph=True)
    same = torch.autograd.grad(softer, list(net.weight.parameters()))
    for a, b in zip(minimax, same, strict=True):  # the weights are taught alike by both
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-7)


def replace_setting(method, **settings):
    other = InterventionAutoencoder(**method.get_params() | settings)
    other.shape_ = method.shape_
    return other


def test_weights_have_mean_one_whatever_the_network_says(ready):
    method, net, batch = ready()
    with torch.no_grad():
        for p in net.weight.parameters():
            p.mul_(50)
    adv, critic = method.adversarial_losses(net, batch["x"], batch["x_r"])
    assert math.isfinite(float(adv)) and math.isfinite(float(critic))
    for p in net.discriminator.parameters():
        nn.init.zeros_(p)  # D = 1/2 everywhere: then L_adv is log 1/2 times the mean weight, and once more
    adv, critic = method.adversarial_losses(net, batch["x"], batch["x_r"])
    assert float(adv) == pytest.approx(math.log(2), rel=1e-5) and float(critic) == pytest.approx(
        2 * math.log(2), rel=1e-5
    )


def test_without_reweighing_all_images_count_alike(ready):
    method, net, batch = ready(reweight=False, adversary="minimax")
    adv, _ = method.adversarial_losses(net, batch["x"], batch["x_r"])
    expected = (1 - torch.sigmoid(net.discriminator(batch["x_r"])[:, 0])).log().mean()
    assert float(adv) == pytest.approx(float(expected), rel=1e-5)


def test_difficulty_is_the_loss_on_fresh_pairs_after_s_steps_on_others(ready):
    method, net, batch = ready(inner_lr=0.01)
    z, z_r = net.encoder(batch["x"]), net.encoder(batch["x_r"])
    own = method.feature_mask(torch.tensor([1]), z)
    a, b = z_r[:1], z_r[1:2]
    u, v = net.decoder(set_feature(z, a, b, own)).detach().chunk(2)
    assert torch.equal(set_feature(z, a, b, own)[0, [0, 2]], z[0, [0, 2]])
    assert float(set_feature(z, a, b, own)[0, 1]) == float(a[0, 1]) and float(set_feature(z, a, b, own)[6, 1]) == float(
        b[0, 1]
    )
    theta = {name: p.detach().clone().requires_grad_() for name, p in net.translator.named_parameters()}
    for _ in range(2):
        loss = 0.5 * (functional_call(net.translator, theta, (u,)) - v).square().sum(1).mean()
        grads = torch.autograd.grad(loss, list(theta.values()))
        norm = torch.stack([g.square().sum() for g in grads]).sum().sqrt()
        scale = min(1.0, MAX_GRADIENT_NORM / float(norm))
        theta = {
            n: (p - 0.01 * scale * g).detach().requires_grad_() for (n, p), g in zip(theta.items(), grads, strict=True)
        }
    u, v = net.decoder(set_feature(z_r, a, b, own)).chunk(2)
    expected = 0.5 * (functional_call(net.translator, theta, (u,)) - v).square().sum(1).mean()
    for diff_mode in ("data", "steps"):
        found = replace_setting(method, diff_mode=diff_mode).difficulty(net, z, z_r, own, torch.tensor(1.0))
        assert float(found) == pytest.approx(float(expected), rel=1e-4)


def test_the_weight_of_the_difficulty_is_that_of_the_gradient_which_reaches_the_autoencoder(ready):
    method, net, batch = ready()

    def slopes(weight, diff_mode="data"):
        z, z_r = net.encoder(batch["x"]), net.encoder(batch["x_r"])
        own = method.feature_mask(torch.tensor([1]), z)
        found = replace_setting(method, diff_mode=diff_mode).difficulty(net, z, z_r, own, torch.tensor(weight))
        parts = [*net.decoder.parameters()], [*net.translator.parameters()]
        grads = torch.autograd.grad(found, parts[0] + parts[1], materialize_grads=True)
        return torch.cat([g.flatten() for g in grads[: len(parts[0])]]), grads[len(parts[0]) :]

    half, taught = slopes(0.5)
    whole, same = slopes(1.0)
    torch.testing.assert_close(whole, 2 * half)
    assert all(torch.equal(a, b) for a, b in zip(taught, same, strict=True))
    for diff_mode in ("data", "steps"):
        assert float(slopes(0.0, diff_mode)[0].abs().max()) == 0
    assert not torch.allclose(slopes(1.0, "steps")[0], whole)  # the inner steps depend on the decoder too


def test_a_ridge_translator_is_scikit_learns_and_exact_where_it_can_be():
    rng = np.random.default_rng(0)
    u, u_new = rng.normal(size=(20, 3)), rng.normal(size=(8, 3))
    map_ = rng.normal(size=(3, 3))
    v = u @ map_ + 1
    centered = u - u.mean(0)
    known = Ridge(alpha=RIDGE_STRENGTH * np.square(centered).sum(1).mean(), fit_intercept=False).fit(
        centered, v - v.mean(0)
    )
    found = predict_by_ridge(*(torch.from_numpy(x) for x in (u, v, u_new)))
    np.testing.assert_allclose(found, known.predict(u_new - u.mean(0)) + v.mean(0), rtol=1e-6)
    np.testing.assert_allclose(found, u_new @ map_ + 1, atol=0.1)


def test_ridge_difficulty_is_none_for_an_exchange_that_is_linear(ready):
    method, net, batch = ready(diff_mode="ridge")
    assert not hasattr(net, "translator")
    z, z_r = batch["x"][:, :3], batch["x_r"][:, :3]
    own = method.feature_mask(torch.tensor([1]), z)
    net.decoder = nn.Linear(3, 6)  # exchanging is adding a constant
    easy = method.ridge_difficulty(net, z, z_r, own, torch.tensor(1.0))
    net.decoder = nn.Sequential(nn.Linear(3, 6), Squared())
    hard = method.ridge_difficulty(net, z, z_r, own, torch.tensor(1.0))
    assert float(easy.detach()) < 0.02 * float(hard.detach())
    (slope,) = torch.autograd.grad(
        method.ridge_difficulty(net, z, z_r, own, torch.tensor(0.0)), [net.decoder[0].weight]
    )
    assert float(slope.abs().max()) == 0


def test_packs_learn_by_ridge_too(sheet):
    data = as_data(sheet)
    settings = SMALL | {"features": 3, "diff_after": 0.0, "diff_mode": "ridge", "steps": 5}
    pack = [InterventionAutoencoder(**settings, seed=seed) for seed in (0, 1)]
    alone = InterventionAutoencoder(**settings, seed=1)
    for method in (*pack, alone):
        method.validate_settings(data)
    assert train(pack, data, strategy="stack", compiling="never") == [None, None]
    assert train([alone], data) == [None]
    np.testing.assert_allclose(pack[1].transform(sheet), alone.transform(sheet), atol=1e-5)


def test_the_difficulty_waits_for_its_turn(ready):
    method, net, batch = ready(diff_after=0.7)
    early, late = (
        torch.autograd.grad(
            method.loss(net, batch | {"progress": torch.tensor(p)})["diff"], list(net.encoder.parameters())
        )
        for p in (0.6, 0.7)
    )
    assert all(bool((g == 0).all()) for g in early) and any(bool((g != 0).any()) for g in late)


def test_features_of_several_codes_are_exchanged_whole():
    method = InterventionAutoencoder(features=3, feature_dim=2)
    mask = method.feature_mask(torch.tensor([2, 0]), torch.zeros(2, 6))
    assert mask.tolist() == [[False] * 4 + [True] * 2, [True] * 2 + [False] * 4]
    assert method.feature_groups() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"features": 1}, "one feature only"),
        ({"latent_dim": 2, "feature_dim": 2}, "one feature only"),
        ({"features": 3, "feature_dim": 2, "latent_dim": 5}, "features x feature_dim = 6"),
        ({"latent_dim": 5, "feature_dim": 2}, "features x feature_dim = 4"),
        ({"feature_dim": 0}, "feature_dim=0"),
        ({"batch_size": 1}, "batch_size=1"),
        ({"diff_after": 1.5}, "diff_after=1.5"),
        ({"inner_steps": 0}, "diff_mode='off'"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said, sheet):
    with pytest.raises(InputError, match=said):
        InterventionAutoencoder(**SMALL | settings).fit(sheet)


def test_weights_of_other_features_are_refused(sheet):
    method = InterventionAutoencoder(**SMALL, features=4).fit(sheet)
    other = InterventionAutoencoder(**SMALL, features=3)
    other.shape_ = (6,)
    with pytest.raises(InputError, match="do not fit the settings of intervention-autoencoder"):
        other.rebuild_network(method.net_.state_dict())
    assert method.transform(sheet).shape == (60, 4) and method.latent_dim_ == 4


def test_interventions_can_be_taken_back_after_training():
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    turned = z @ np.array([[0.8, -0.6], [0.6, 0.8]])
    x = np.c_[turned, turned[:, :1] * turned[:, 1:], turned**2].astype(np.float32)
    weights = {"lambda_adv": 0.1, "lr": 2e-3, "weight_lr": 2e-4}
    method = InterventionAutoencoder(
        features=2, layers=(32,), steps=400, batch_size=64, diff_mode="off", **weights
    ).fit(x)
    start, end = method.history.iloc[0], method.history.iloc[-1]
    assert end["rec"] < 0.1 * start["rec"]
    assert end["in"] < 0.1 * start["in"]


# InfoGAN-CR -----------------------------------------------------------------------------------------------------------


def test_pairs_share_one_code_and_differ_in_the_others_by_the_gap():
    method = InfoGANCR(latent_dim=4, noise_dim=2, gap=1.0, gap_stages=2, contrast_after=0.5)
    batch = method.sample_noise(500, rng())
    rows = torch.arange(500)
    for progress, gap in ((0.0, 1.0), (0.5, 1.0), (0.7, 0.5), (0.999, 0.0)):
        a, b = method.sample_pairs(batch, torch.tensor(progress)).chunk(2)
        assert a.shape == (500, 6) and float(a.abs().max()) <= 1 + 1e-6
        distance = (a - b)[:, :4].abs()
        assert bool((distance[rows, batch["k"]] == 0).all())
        distance[rows, batch["k"]] = 2.0
        assert float(distance.min()) >= gap - 1e-6
        assert float(distance.min()) < gap + 0.05
        assert torch.equal(a[:, 4:], b[:, 4:])  # the noise is shared


def test_each_player_of_the_game_gets_its_own_gradient(sheet):
    method = InfoGANCR(latent_dim=2, layers=(8,), steps=2, batch_size=6, contrast_after=0.5).fit(sheet)
    net = method.build((6,))
    batch = {"x": torch.from_numpy(sheet[:6]), **method.sample_noise(6, rng()), "progress": torch.tensor(0.2)}
    terms = method.loss(net, batch)

    def moved(loss):
        names, tensors = zip(*net.named_parameters(), strict=True)
        grads = torch.autograd.grad(loss, tensors, allow_unused=True, retain_graph=True)
        return {n.split(".")[0] for n, g in zip(names, grads, strict=True) if g is not None and bool((g != 0).any())}

    for name in ("fool", "info", "contrast"):
        assert moved(terms[name]) == {"decoder"}
    assert moved(terms["discriminator"]) == {"body", "real"}
    assert moved(terms["loss"]) == {"decoder", "body", "real", "q", "pairs"}
    codes = batch["c"][:, :2]
    fake = net.decoder(batch["c"], rows=6)
    expected = 0.5 * (net.q(net.body(fake)) - codes).square().sum(1).mean()
    assert float(terms["info"]) == pytest.approx(float(expected), rel=1e-5)
    early = float(terms["loss"])
    late = float(method.loss(net, batch | {"progress": torch.tensor(0.5)})["loss"])
    assert late == pytest.approx(early + method.contrast * float(terms["contrast"]), rel=1e-4)


def test_batches_are_normalized_as_torch_does_and_rows_alone_by_the_usual_ones():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Unflatten(1, (2, 2, 2)), nn.ConvTranspose2d(2, 5, 4, 2, 1),
                          nn.ReLU(), nn.Conv2d(5, 1, 3))  # fmt: skip
    usual, x = torch.randn(40, 3), torch.randn(7, 3)
    net = BatchNormNetwork(copy.deepcopy(plain))
    theirs = nn.Sequential(*plain[:2], nn.BatchNorm1d(8), *plain[2:5], nn.BatchNorm2d(5), plain[5])
    for own, other in zip(
        (m for m in net.modules() if isinstance(m, BatchNormLayer)), (theirs[2], theirs[6]), strict=True
    ):
        for weights in (own, other):
            weights.weight.data, weights.bias.data = (
                torch.linspace(0.5, 2, len(own.bias)),
                torch.arange(len(own.bias)) / 3,
            )
        other.momentum = 1.0  # it remembers the last batch alone
    torch.testing.assert_close(net(x, rows=7), theirs(x))
    torch.testing.assert_close(net(torch.cat([x, usual]), rows=7)[:7], theirs(x))  # the others do not count
    net.freeze_statistics(usual)
    theirs(usual)
    for layer, n in ((theirs[2], 40), (theirs[6], 40 * 16)):
        layer.running_var *= (n - 1) / n  # torch remembers the unbiased one
    torch.testing.assert_close(net(x), theirs.eval()(x))
    torch.testing.assert_close(net(x[:1]), net(x)[:1])  # whatever else is in the batch


def test_infogan_cr_makes_images_as_different_as_those_it_sees_and_reads_its_codes_off_them():
    r = np.random.default_rng(0)
    x = np.zeros((1_000, 1, 16, 16), np.float32)
    for image, (a, b), side in zip(x, r.integers(0, 10, (1_000, 2)), r.integers(3, 7, 1_000), strict=True):
        image[0, a : a + side, b : b + side] = 1
    small = {"widths": (16, 16), "hidden": (32,), "batch_size": 32, "noise_dim": 0}
    method = InfoGANCR(latent_dim=3, steps=400, **small).fit(x)
    codes = np.random.default_rng(1).uniform(-1, 1, (300, 3)).astype(np.float32)
    images = method.inverse_transform(codes)
    assert images.std(0).mean() > 0.7 * x.std(0).mean()
    assert r2_score(codes, method.transform(images)) > 0.5


def test_settings_of_infogan_cr_that_cannot_work_are_refused(sheet):
    bad = ({"latent_dim": 1}, "expected two"), ({"gap": 2.0}, "a gap in"), ({"gap_stages": 0}, "stage")
    for settings, said in (*bad, ({"batch_size": 1}, "batch_size=1")):
        with pytest.raises(InputError, match=said):
            InfoGANCR(**{"layers": (8,), "steps": 2} | settings).fit(sheet)


def test_normalized_layers_have_a_largest_singular_value_near_one():
    torch.manual_seed(0)
    W = torch.randn(20, 30)
    found = float(torch.linalg.matrix_norm(divide_by_spectral_norm(W, W.sum(1)), 2))
    assert 1 - 1e-4 <= found < 1.2  # power iteration can only fall short of the largest
    rank_one = torch.outer(torch.randn(5), torch.randn(7))
    torch.testing.assert_close(
        divide_by_spectral_norm(rank_one, rank_one.sum(1)), rank_one / torch.linalg.matrix_norm(rank_one, 2)
    )
    net = apply_spectral_norm(nn.Sequential(nn.Conv2d(2, 3, 4, 2, 1), nn.Flatten(), nn.Linear(12, 2)))
    bias = [net[0].bias, net[2].bias]
    out = net(torch.ones(1, 2, 4, 4))
    with torch.no_grad():
        for layer, b in zip((net[0], net[2]), bias, strict=True):
            layer.weight.mul_(7)
            b.mul_(1)
    torch.testing.assert_close(net(torch.ones(1, 2, 4, 4)), out, rtol=1e-4, atol=1e-5)  # the scale does not matter


# Translation difficulty -----------------------------------------------------------------------------------------------


class Exact:
    """A decoder that knows the truth, up to a rotation of its codes."""

    def __init__(self, degrees):
        self.data = SquaresXY(points=300).load()
        z = self.data.sources.numpy()
        self.middle, a = z.mean(0), np.deg2rad(degrees)
        self.turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        self.codes = (z - self.middle) @ self.turn

    def inverse_transform(self, z):
        return self.data.render(torch.as_tensor((z @ self.turn.T + self.middle).clip(0, 48)).float()).numpy()[
            ..., ::8, ::8
        ]


def test_turned_codes_are_harder_to_translate():
    right, turned = (translation_difficulty(m, m.codes, translator="linear") for m in (Exact(0), Exact(30)))
    assert right.excess < 0.3 * turned.excess
    assert right.relative < 0.3 * turned.relative
    assert right.excess < right.difficulty


def test_a_network_learns_to_translate_and_starts_from_the_identity():
    m = Exact(0)
    none, some = (translation_difficulty(m, m.codes, translator="network", steps=steps, pairs=1) for steps in (0, 40))
    assert none.relative == pytest.approx(1.0, abs=1e-3)
    assert some.relative < 0.9
    again = translation_difficulty(m, m.codes, translator="network", steps=40, pairs=1)
    assert again == some


def test_features_that_do_nothing_make_nothing_easy():
    class Half(Exact):
        def inverse_transform(self, z):
            return super().inverse_transform(z[:, :2])

    m = Half(30)
    noise = np.random.default_rng(0).normal(size=m.codes.shape)
    plain = translation_difficulty(m, m.codes, translator="linear", pairs=8)
    padded = translation_difficulty(m, np.c_[m.codes, noise], translator="linear", pairs=8)
    assert padded.excess < 0.75 * plain.excess  # as the paper has it, idle codes look easy
    assert padded.relative == pytest.approx(plain.relative, rel=0.3)


@pytest.mark.parametrize("pixels", [0.3, 7.0])
@pytest.mark.parametrize("gain", [0.0, 1e-7, 1e-5])
def test_a_decoder_that_does_nothing_is_no_easy_one(pixels, gain):
    class Dead(Exact):
        def inverse_transform(self, z):
            wave = np.sin(np.arange(64)).reshape(1, 1, 8, 8) / 4
            return pixels + pixels * wave + gain * np.asarray(z)[:, :1, None, None]

    dead = translation_difficulty(Dead(0), Exact(0).codes, translator="linear")
    assert dead.relative == 1.0
    assert 0 <= translation_difficulty(Exact(0), Exact(0).codes, translator="linear").relative < 1


@pytest.mark.parametrize("other", [0.0, 1.0])
def test_one_code_that_holds_everything_takes_nothing_apart(other):
    class Curve(Exact):
        def inverse_transform(self, z):
            t = np.asarray(z)[:, :1]
            return super().inverse_transform(np.c_[20 * np.cos(t), 20 * np.sin(3 * t)])

    generator = np.random.default_rng(0)
    codes = np.c_[generator.uniform(0, 6, 300), other * generator.normal(size=300)]  # the decoder ignores the second
    found = translation_difficulty(Curve(0), codes, translator="linear")
    assert found.excess < 0.01 and found.relative == 1.0


@pytest.mark.parametrize("weaker", [1.0, 8.0])
@pytest.mark.parametrize("binary", [False, True])
def test_two_codes_that_are_apart_are_never_taken_for_one(weaker, binary):
    class Linear:
        def inverse_transform(self, z):
            return np.asarray(z) @ np.array([[1.0, 0, 0.3, 0], [0, 1, 0, -1]]) / np.array([1.0, weaker, 1.0, weaker])

    for seed in range(20):  # of values that are drawn, some are the same
        z = np.random.default_rng(seed).normal(size=(100, 2))
        found = translation_difficulty(Linear(), np.sign(z) if binary else z, translator="linear", seed=seed)
        assert found.relative < 0.05


def test_what_cannot_be_translated_is_said():
    m = Exact(0)
    with pytest.raises(InputError, match="at least two"):
        translation_difficulty(m, m.codes, features=[[0, 1]])
    with pytest.raises(InputError, match="every code from 0 to 1"):
        translation_difficulty(m, m.codes, features=[[0], [0]])
    with pytest.raises(InputError, match="varies"):
        translation_difficulty(m, np.ones((20, 2)))
    with pytest.raises(InputError, match="no inverse_transform"):
        translation_difficulty(object(), m.codes)
    with pytest.raises(InputError, match="2 rows of codes"):
        translation_difficulty(m, m.codes[:2])
    with pytest.raises(InputError, match="translator='tree'"):
        translation_difficulty(m, m.codes, translator="tree")
    with pytest.raises(InputError, match="pairs=0"):
        translation_difficulty(m, m.codes, pairs=0)
    one_way = OneWay(latent_dim=2).fit(np.random.default_rng(0).random((20, 2100)))
    for width in (2, 2100):  # its codes, or what somebody took for them
        with pytest.raises(InputError, match="OneWay has no decoder"):
            translation_difficulty(one_way, np.random.default_rng(0).random((20, width)))


def test_intervals_and_chance_of_a_score_without_truth():
    m = Exact(30)
    scorer = next(iter(variants(translation_difficulty, "linear").values()))
    found = score_table("translation", scorer, m, m.codes, chance=True, bootstrap=3)["translation.excess"]
    assert math.isnan(found["chance"]) and found["low"] <= found["value"] <= found["high"]


def test_it_takes_methods_data_and_groups(sheet, tmp_path):
    method = InterventionAutoencoder(**SMALL, features=2, feature_dim=2).fit(sheet)
    data = Table(torch.from_numpy(sheet), torch.zeros(60, 0), [])
    found = translation_difficulty(method, data, translator="linear")
    assert found == translation_difficulty(method, data, translator="linear", features=[[0, 1], [2, 3]])
    assert found != translation_difficulty(method, data, translator="linear", features=[[0], [1], [2], [3]])
    value = Scorer(translation_difficulty, "relative")(method, sheet)
    assert value <= 0, "smaller is better, so scikit-learn is given its negative"


class OneWay(Method):
    """A method without a decoder, and not in the catalog."""

    def learn(self, data):
        self.mean_ = data.collect(10, rng()).x.double().mean(0)

    def encode(self, x):
        return (x - self.mean_).flatten(1)[:, 2000:2002]


def test_runs_are_scored_by_it_where_their_method_has_a_decoder(tmp_path):
    data = SquaresXY(points=60)
    small = {"steps": 2, "batch_size": 8, "widths": (4, 4), "hidden": (8,), "latent_dim": 2}
    runs = [Run(data, m) for m in (BetaVAE(**small), PCA(latent_dim=2), OneWay(latent_dim=2))]
    table = execute(runs, tmp_path, metrics=["translation-difficulty[linear]"])
    assert table["translation-difficulty[linear].relative"].notna().tolist() == [True, True, False]
    done = read_run(tmp_path / runs[0].key)
    again = execute(runs, tmp_path, metrics=["translation-difficulty[linear]", "mcc"])  # scored later, from the folder
    assert again["mcc"].notna().all() and done.scores.items() <= read_run(done.folder).scores.items()


# Scores by group, and the data ----------------------------------------------------------------------------------------


def test_scores_take_features_of_several_codes_as_wholes():
    generator = np.random.default_rng(0)
    c = generator.integers(0, 4, (2000, 2))
    angle = 2 * np.pi * c / 4
    z = np.c_[np.cos(angle[:, 0]), np.sin(angle[:, 0]), np.cos(angle[:, 1]), np.sin(angle[:, 1])]
    z = z + 0.05 * generator.normal(size=z.shape)
    pairs = [[0, 1], [2, 3]]
    apart, together = (sap(c, z, predictor="logistic", features=f) for f in (None, pairs))
    assert together == pytest.approx(0.75, abs=0.05) and apart < 0.3  # the other feature still guesses one in four
    assert dci(c, z, features=pairs).completeness > 0.99 > dci(c, z).completeness + 0.2
    assert dci(c, z, features=pairs).disentanglement > 0.99
    with pytest.raises(InputError, match=r"sap\[logistic\]"):
        sap(c, z, predictor="r2", features=pairs)


def test_resampled_data_are_tied_in_training_and_never_in_the_test():
    small = Resampled(points=4_000, held_out=3_000)
    tied = small.load()
    free, test = replace(small, part="independent").load(), small.evaluation_data(tied)

    def correlation(data):
        c = data.collect(4_000, rng()).c
        return float(torch.corrcoef(torch.stack([c[:, data.column("x")], c[:, data.column("scale")]]))[0, 1])

    assert correlation(tied) > 0.6
    assert abs(correlation(free)) < 0.06 and abs(correlation(test)) < 0.06
    assert len(tied) == len(free) == 4_000 and len(test) == 3_000
    held = {tuple(p) for p in test.points.tolist()}
    assert not held & {tuple(p) for p in tied.points.tolist() + free.points.tolist()}
    assert small.title() == "dsprites (re-rendered), correlated" or small.title() == "dsprites, correlated"
    with pytest.raises(InputError, match="points=0"):
        Resampled(points=0).load()


def test_colored_digits_are_tied_by_their_own_rule():
    data = Resampled(of="colored-mnist", strength=0.1)
    try:
        tied = data.load()
    except MissingData as error:
        pytest.skip(str(error))
    c = tied.collect(2_000, rng()).c
    assert float(torch.corrcoef(c.T)[0, 1]) > 0.7
    assert abs(float(torch.corrcoef(data.evaluation_data(tied).collect(2_000, rng()).c.T)[0, 1])) < 0.08


def test_a_run_is_scored_on_the_test_set_of_its_data(tmp_path):
    data = Resampled(points=300, held_out=200)
    run = Run(data, PCA(latent_dim=2))
    execute([run], tmp_path, metrics=["mcc"])
    done = read_run(tmp_path / run.key)
    truth = data.evaluation_data(data.load()).collect(10_000, rng(1_000_003)).c
    assert np.array_equal(done.truth, truth.numpy())
    assert [f.name for f in done.factors] == ["shape", "scale", "orientation", "x", "y"]


def test_factor_vae_shuffles_features_as_wholes():
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
