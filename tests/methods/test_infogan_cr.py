"""InfoGAN-CR: pairs, gradients of each network, generated images."""

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score

from unweave import InputError
from unweave.methods import InfoGANCR


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def sheet():
    return np.random.default_rng(0).uniform(-1, 1, (60, 6)).astype(np.float32)


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


def test_each_network_gets_the_gradient_of_its_own_loss(sheet):
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


def test_generated_images_vary_as_the_data_and_show_their_codes():
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


def test_impossible_settings_are_refused(sheet):
    bad = ({"latent_dim": 1}, "expected two"), ({"gap": 2.0}, "a gap in"), ({"gap_stages": 0}, "stage")
    for settings, said in (*bad, ({"batch_size": 1}, "batch_size=1")):
        with pytest.raises(InputError, match=said):
            InfoGANCR(**{"layers": (8,), "steps": 2} | settings).fit(sheet)


def test_the_loss_is_the_sum_of_equations_2_to_4_for_all_networks(sheet):
    method = InfoGANCR(latent_dim=2, noise_dim=1, layers=(8,), steps=2, batch_size=6, info=0.3, contrast=5.0).fit(sheet)
    net = method.build((6,))
    batch = {"x": torch.from_numpy(sheet[:6]), **method.sample_noise(6, rng()), "progress": torch.tensor(0.7)}
    terms = method.loss(net, batch)
    images = net.decoder(torch.cat([batch["c"], method.sample_pairs(batch, batch["progress"])]), rows=6)
    fake, first, second = images.chunk(3)
    log_real, log_fake = (torch.sigmoid(net.real(net.body(x))).log() for x in (batch["x"], fake))
    log_not_fake = torch.sigmoid(-net.real(net.body(fake))).log()
    info = 0.5 * ((net.q(net.body(fake)) - batch["c"][:, :2]) ** 2).sum(1).mean()
    shared = torch.log_softmax(net.pairs(torch.cat([first, second], 1)), 1)
    contrast = -shared[torch.arange(6), batch["k"]].mean()
    expected = {
        "fool": -log_fake.mean(), "info": info, "contrast": contrast,
        "discriminator": -log_real.mean() - log_not_fake.mean(),
    }  # fmt: skip
    for name, value in expected.items():
        assert float(terms[name]) == pytest.approx(float(value), rel=1e-4)
    total = expected["fool"] + expected["discriminator"] + 2 * 0.3 * info + (5 + 1) * contrast
    assert float(terms["loss"]) == pytest.approx(float(total), rel=1e-4)


def test_latents_are_uniform_and_every_code_is_shared_by_some_pairs():
    noise = InfoGANCR(latent_dim=3, noise_dim=2).sample_noise(4_000, rng())
    assert {name: tuple(v.shape) for name, v in noise.items()} == {
        "c": (4_000, 5), "k": (4_000,), "one": (4_000, 3), "other": (4_000, 3), "rest": (4_000, 2),
    }  # fmt: skip
    for name, low in (("c", -1), ("one", 0), ("other", 0), ("rest", -1)):
        assert low <= noise[name].min() < low + 0.01 and 0.99 < noise[name].max() <= 1
        assert noise[name].mean() == pytest.approx((low + 1) / 2, abs=0.03)
    assert noise["k"].bincount().tolist() == pytest.approx([4_000 / 3] * 3, rel=0.1)


def test_the_gap_falls_in_equal_stages_to_zero():
    """Stages change at a third and two thirds of the steps that remain; rounding does not delay them by a step."""
    method = InfoGANCR(latent_dim=2, noise_dim=0, gap=1.2, gap_stages=2, contrast_after=0.4)
    batch = method.sample_noise(4_000, rng()) | {"k": torch.zeros(4_000, dtype=torch.long)}
    for progress, gap in ((0.0, 1.2), (0.59, 1.2), (0.6 - 1e-6, 0.6), (0.79, 0.6), (0.8 - 1e-6, 0.0), (1.0, 0.0)):
        a, b = method.sample_pairs(batch, torch.tensor(progress)).chunk(2)
        distance = (a - b)[:, 1].abs()
        assert gap - 1e-6 <= distance.min() < gap + 0.01 and distance.max() > 1.9
        assert a.min() >= -1 - 1e-6 and b.max() <= 1 + 1e-6
        assert torch.equal(a[:, 0], 2 * batch["one"][:, 0] - 1)
        assert torch.equal(a[:, 1] > b[:, 1], batch["one"][:, 1] > batch["other"][:, 1])


def test_the_regularizer_acts_from_its_share_of_the_steps_on(sheet):
    method = InfoGANCR(latent_dim=2, layers=(8,), steps=2, batch_size=6, contrast_after=0.5, contrast=5.0).fit(sheet)
    net = method.build((6,))
    batch = {"x": torch.from_numpy(sheet[:6]), **method.sample_noise(6, rng())}
    losses = []
    for progress in (0.4998, 0.49995, 0.5):
        terms = method.loss(net, batch | {"progress": torch.tensor(progress)})
        rest = terms["fool"] + terms["discriminator"] + 2 * method.info * terms["info"] + terms["contrast"]
        losses.append(float((terms["loss"] - rest) / terms["contrast"]))
    assert losses == pytest.approx([0, 5, 5], abs=1e-3)


def test_networks_have_the_widths_of_their_settings(sheet):
    method = InfoGANCR(latent_dim=3, noise_dim=4, hidden=(32, 7), layers=(9,), steps=1, batch_size=4).fit(sheet)
    net = method.net_
    assert net.real.out_features == 1 and net.real.in_features == 7
    assert net.q[0].in_features == net.q[0].out_features == 7 and net.q[2].out_features == 3
    assert net.pairs[2].out_features == 3 and net.q[1].negative_slope == net.pairs[1].negative_slope == 0.2
    z = np.zeros((2, 3), np.float32)
    assert method.inverse_transform(z).shape == (2, 6)
    decoded = net.decoder(torch.zeros(2, 7))
    np.testing.assert_allclose(method.inverse_transform(z), decoded.detach().numpy(), atol=1e-5)
    adam = method.optimizers()[""]
    assert (adam.lr, adam.betas) == (1e-3, (0.5, 0.999))
