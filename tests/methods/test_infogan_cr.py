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
