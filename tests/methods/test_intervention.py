"""InterventionAutoencoder: every loss against hand-computed values, settings, undone interventions."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn
from torch.func import functional_call

from unweave import InputError
from unweave.data.conversion import as_data
from unweave.methods import InterventionAutoencoder
from unweave.methods.intervention import squared_slope
from unweave.methods.translators import (
    DIFFICULTIES,
    MAX_GRADIENT_NORM,
    build_random_features,
    network_difficulty,
    ridge_difficulty,
    set_feature,
)
from unweave.nn.autoencoder import LayerSizes
from unweave.nn.ridge import RIDGE_STRENGTH, invert_regularized, predict_by_ridge
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


def replace_setting(method, **settings):
    other = InterventionAutoencoder(**method.get_params() | settings)
    other.shape_ = method.shape_
    return other


def test_both_reconstruction_losses_are_those_of_figure_2(ready):
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


def test_the_adversarial_loss_is_reweighted_and_each_network_gets_its_own_gradient(ready):
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


def test_weights_have_mean_one(ready):
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


def test_without_reweighting_all_images_have_equal_weight(ready):
    method, net, batch = ready(reweight=False, adversary="minimax")
    adv, _ = method.adversarial_losses(net, batch["x"], batch["x_r"])
    expected = (1 - torch.sigmoid(net.discriminator(batch["x_r"])[:, 0])).log().mean()
    assert float(adv) == pytest.approx(float(expected), rel=1e-5)


def test_difficulty_is_the_loss_on_fresh_pairs_after_s_steps_on_other_pairs(ready):
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
        difficulty = network_difficulty(
            replace_setting(method, diff_mode=diff_mode), net, z, z_r, own, torch.tensor(1.0)
        )
        assert float(difficulty) == pytest.approx(float(expected), rel=1e-4)


def test_the_weight_of_the_difficulty_scales_the_gradient_of_the_autoencoder(ready):
    method, net, batch = ready()

    def slopes(weight, diff_mode="data"):
        z, z_r = net.encoder(batch["x"]), net.encoder(batch["x_r"])
        own = method.feature_mask(torch.tensor([1]), z)
        difficulty = network_difficulty(
            replace_setting(method, diff_mode=diff_mode), net, z, z_r, own, torch.tensor(weight)
        )
        parts = [*net.decoder.parameters()], [*net.translator.parameters()]
        grads = torch.autograd.grad(difficulty, parts[0] + parts[1], materialize_grads=True)
        return torch.cat([g.flatten() for g in grads[: len(parts[0])]]), grads[len(parts[0]) :]

    half, taught = slopes(0.5)
    whole, same = slopes(1.0)
    torch.testing.assert_close(whole, 2 * half)
    assert all(torch.equal(a, b) for a, b in zip(taught, same, strict=True))
    for diff_mode in ("data", "steps"):
        assert float(slopes(0.0, diff_mode)[0].abs().max()) == 0
    assert not torch.allclose(slopes(1.0, "steps")[0], whole)  # the inner steps depend on the decoder too


def test_the_ridge_translator_equals_scikit_learn_and_fits_linear_maps():
    rng = np.random.default_rng(0)
    u, u_new = rng.normal(size=(20, 3)), rng.normal(size=(8, 3))
    map_ = rng.normal(size=(3, 3))
    v = u @ map_ + 1
    centered = u - u.mean(0)
    ridge = Ridge(alpha=RIDGE_STRENGTH * np.square(centered).sum(1).mean(), fit_intercept=False).fit(
        centered, v - v.mean(0)
    )
    predicted = predict_by_ridge(*(torch.from_numpy(x) for x in (u, v, u_new)))
    np.testing.assert_allclose(predicted, ridge.predict(u_new - u.mean(0)) + v.mean(0), rtol=1e-6)
    np.testing.assert_allclose(predicted, u_new @ map_ + 1, atol=0.1)


@pytest.mark.parametrize("rank", [0, 1, 3, 40])
def test_the_iterated_inverse_and_its_gradient_equal_those_of_a_solver(rank):
    torch.manual_seed(rank)
    U, target = torch.randn(40, rank, dtype=torch.float64), torch.randn(40, 5, dtype=torch.float64)
    gram = (U @ U.T * 1e3).requires_grad_()
    found = invert_regularized(gram, RIDGE_STRENGTH) @ target
    ridge = RIDGE_STRENGTH * gram.diagonal().mean() + torch.finfo(torch.float32).tiny
    expected = torch.linalg.solve(gram + ridge * torch.eye(40, dtype=torch.float64), target)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
    if rank:
        weight = torch.randn(40, 5, dtype=torch.float64)
        gradients = [torch.autograd.grad((solution * weight).sum(), gram)[0] for solution in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-12 * float(gradients[1].abs().max()))


def test_ridge_difficulty_is_zero_for_a_linear_exchange(ready):
    method, net, batch = ready(diff_mode="ridge")
    assert not hasattr(net, "translator")
    z, z_r = batch["x"][:, :3], batch["x_r"][:, :3]
    own = method.feature_mask(torch.tensor([1]), z)
    net.decoder = nn.Linear(3, 6)  # exchanging is adding a constant
    easy = ridge_difficulty(method, net, z, z_r, own, torch.tensor(1.0))
    net.decoder = nn.Sequential(nn.Linear(3, 6), Squared())
    hard = ridge_difficulty(method, net, z, z_r, own, torch.tensor(1.0))
    assert float(easy.detach()) < 0.02 * float(hard.detach())
    (slope,) = torch.autograd.grad(
        ridge_difficulty(method, net, z, z_r, own, torch.tensor(0.0)), [net.decoder[0].weight]
    )
    assert float(slope.abs().max()) == 0


NEW_TRANSLATORS = ("persistent", "ridge", "random-features")


@pytest.mark.parametrize("diff_mode", ["data", *NEW_TRANSLATORS])
def test_every_translator_works_in_packs(diff_mode, sheet):
    data = as_data(sheet)
    settings = SMALL | {"features": 3, "diff_after": 0.0, "diff_mode": diff_mode, "steps": 5}
    settings |= {"discriminator_norm": "spectral", "gradient_penalty": 0.1, "weight_average": 0.9}
    pack = [InterventionAutoencoder(**settings, seed=seed) for seed in (0, 1)]
    alone = InterventionAutoencoder(**settings, seed=1)
    for method in (*pack, alone):
        method.validate_settings(data)
    assert train(pack, data, strategy="stack", compiling="never") == [None, None]
    assert train([alone], data) == [None]
    np.testing.assert_allclose(pack[1].transform(sheet), alone.transform(sheet), atol=1e-5)


def exchange(x, x_r):
    """Return codes of a batch, and the mask of their second feature."""
    z, z_r = x[:, :3], x_r[:, :3]
    return z, z_r, torch.tensor([[False, True, False]])


def test_features_of_a_random_network_translate_what_pixels_do_not(sheet):
    """The change depends on the sign of another code, which a linear map of the image cannot know."""
    torch.manual_seed(0)
    x, x_r = torch.randn(2, 200, 6)
    z, z_r, mask = exchange(x, x_r)
    z_r[0, 1], z_r[1, 1] = -1.0, 1.0
    method = InterventionAutoencoder(**SMALL | {"features": 3, "translator": 200}).fit(sheet)
    net = nn.Module()
    net.decoder = SignedExchange()
    net.random = build_random_features((6,), LayerSizes(layers=(200,)))
    losses = {
        name: float(DIFFICULTIES[name](method, net, z, z_r, mask, torch.tensor(1.0))) for name in NEW_TRANSLATORS[1:]
    }
    assert losses["random-features"] < 0.5 * losses["ridge"]
    net.decoder = nn.Linear(3, 6)  # the change is the same everywhere, so both know it
    for name in NEW_TRANSLATORS[1:]:
        assert float(DIFFICULTIES[name](method, net, z, z_r, mask, torch.tensor(1.0))) < 0.01
    assert not any("bias" in name and p.any() for name, p in net.random.named_parameters())


class SignedExchange(nn.Module):
    """Codes (n, 3) -> images (n, 6) in which the second code counts only where both are positive."""

    def forward(self, z):
        shown = z[:, :1].relu() * z[:, 1:2].relu()
        return torch.cat([z[:, :1], z[:, 2:], shown, shown, shown, shown], 1)


def test_the_random_network_stays_as_it_is_and_the_persistent_one_learns(sheet):
    for diff_mode, part in (("random-features", "random"), ("persistent", "translator")):
        method = InterventionAutoencoder(**SMALL | {"features": 3, "diff_mode": diff_mode, "diff_after": 0.0}).fit(
            sheet
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(method.seed)
            initial = dict(getattr(method.build((6,)), part).named_parameters())
        trained = dict(getattr(method.net_, part).named_parameters())
        assert [torch.equal(trained[k], initial[k]) for k in trained] == [part == "random"] * len(trained)


def test_random_features_of_images_keep_their_place():
    for shape in ((1, 16, 16), (16, 16)):
        net = build_random_features(shape, LayerSizes(widths=(4, 8), hidden=()))
        assert net(torch.rand(2, *shape)).shape == (2, 8 * 4 * 4)


def test_a_persistent_translator_is_told_the_exchange_and_trained_on_other_pairs(ready):
    method, net, batch = ready(diff_mode="persistent")
    z, z_r, mask = net.encoder(batch["x"]), net.encoder(batch["x_r"]), torch.tensor([[False, True, False]])
    difficulty = DIFFICULTIES["persistent"](method, net, z, z_r, mask, torch.tensor(1.0))

    def translate(images):
        a, b = z_r[:2, 1]
        told = torch.tensor([[0, 1, 0, 0, a, 0, 0, b, 0]]).expand(len(images), -1)
        return net.translator[1](torch.cat([net.translator[0](images), told], 1))

    u, v = net.decoder(set_feature(z_r, z_r[:1], z_r[1:2], mask)).chunk(2)
    expected = 0.5 * (translate(u) - v).square().sum(1).mean()
    assert float(difficulty) == pytest.approx(float(expected), rel=1e-4)
    of_fresh = torch.autograd.grad(expected, [*net.decoder.parameters()], retain_graph=True)
    parts = {"translator": net.translator, "decoder": net.decoder}
    slopes = {k: torch.autograd.grad(difficulty, [*m.parameters()], retain_graph=True) for k, m in parts.items()}
    u, v = (part.detach() for part in net.decoder(set_feature(z, z_r[:1], z_r[1:2], mask)).chunk(2))
    trained = 0.5 * (translate(u) - v).square().sum(1).mean()
    for own, other in zip(
        slopes["translator"], torch.autograd.grad(trained, [*net.translator.parameters()]), strict=True
    ):
        torch.testing.assert_close(own, other)
    for own, other in zip(slopes["decoder"], of_fresh, strict=True):  # the translator's own loss has no gradient to it
        torch.testing.assert_close(own, other)
    off = DIFFICULTIES["persistent"](method, net, z, z_r, mask, torch.tensor(0.0))
    assert not any(bool((g != 0).any()) for g in torch.autograd.grad(off, [*net.decoder.parameters()]))


def test_the_gradient_penalty_is_that_of_the_logits_on_real_images(ready):
    linear = nn.Linear(6, 1)
    expected = float(linear.weight.square().sum()) / 2
    assert float(squared_slope(linear, torch.randn(5, 6))) == pytest.approx(expected, rel=1e-5)
    method, net, batch = ready(gradient_penalty=3.0)
    terms = method.loss(net, batch)
    others = sum(
        weight * terms[name] for name, weight in (("rec", 1), ("in", 0.25), ("adv", 10), ("critic", 1), ("diff", 1))
    )
    assert float(terms["loss"]) == pytest.approx(float(others + 3 * terms["penalty"]), rel=1e-5)
    z = net.encoder(batch["x"])
    real = net.decoder(z).detach().requires_grad_()
    (slope,) = torch.autograd.grad(net.discriminator(real).sum(), real)
    assert float(terms["penalty"]) == pytest.approx(float(slope.square().sum(1).mean() / 2), rel=1e-4)
    grads = torch.autograd.grad(terms["penalty"], [*net.parameters()], allow_unused=True)
    moved = {
        n.split(".")[0] for (n, _), g in zip(net.named_parameters(), grads, strict=True) if g is not None and g.any()
    }
    assert moved == {"discriminator"}


def test_a_normalized_discriminator_has_slopes_of_at_most_one(ready):
    _, net, _ = ready(discriminator_norm="spectral")
    with torch.no_grad():
        for p in net.discriminator.parameters():
            p.mul_(30)
    x, y = torch.randn(2, 200, 6)
    slope = (net.discriminator(x) - net.discriminator(y))[:, 0].abs() / (x - y).norm(dim=1)
    assert float(slope.max()) < 1.02


def test_the_difficulty_acts_after_its_share_of_the_steps(ready):
    method, net, batch = ready(diff_after=0.7)
    early, late = (
        torch.autograd.grad(
            method.loss(net, batch | {"progress": torch.tensor(p)})["diff"], list(net.encoder.parameters())
        )
        for p in (0.6, 0.7)
    )
    assert all(bool((g == 0).all()) for g in early) and any(bool((g != 0).any()) for g in late)


def test_all_codes_of_a_feature_are_exchanged_together():
    method = InterventionAutoencoder(features=3, feature_dim=2)
    mask = method.feature_mask(torch.tensor([2, 0]), torch.zeros(2, 6))
    assert mask.tolist() == [[False] * 4 + [True] * 2, [True] * 2 + [False] * 4]
    assert method.feature_groups() == [[0, 1], [2, 3], [4, 5]]
    assert method.named_codes() == {"codes 1 to 2": [0, 1], "codes 3 to 4": [2, 3], "codes 5 to 6": [4, 5]}


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
def test_impossible_settings_are_refused(settings, said, sheet):
    with pytest.raises(InputError, match=said):
        InterventionAutoencoder(**SMALL | settings).fit(sheet)


def test_weights_of_another_number_of_features_are_refused(sheet):
    method = InterventionAutoencoder(**SMALL, features=4).fit(sheet)
    other = InterventionAutoencoder(**SMALL, features=3)
    other.shape_ = (6,)
    with pytest.raises(InputError, match="do not fit the settings of intervention-autoencoder"):
        other.rebuild_network(method.net_.state_dict())
    assert method.transform(sheet).shape == (60, 4) and method.latent_dim_ == 4


def test_interventions_can_be_undone_after_training():
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
