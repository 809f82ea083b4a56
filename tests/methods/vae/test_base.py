"""Variational autoencoders: codes, samples, networks, observations."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch

from tests.methods.vae.helpers import IMAGES, SMALL
from unweave import InputError
from unweave.methods import BetaVAE, FactorVAE
from unweave.methods.vae.base import posterior


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
def test_images_of_any_size_are_reconstructed_in_their_shape(shape):
    x = np.random.default_rng(0).uniform(size=(6, *shape)).astype(np.float32)
    method = BetaVAE(steps=2, widths=(4, 4), hidden=(8,), latent_dim=2, batch_size=4).fit(x)
    assert method.inverse_transform(method.transform(x)).shape == x.shape
    flat = BetaVAE(steps=2, network="mlp", layers=(8,), latent_dim=2, batch_size=4).fit(x)
    assert flat.inverse_transform(flat.transform(x)).shape == x.shape


def test_impossible_networks_are_refused():
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="at least one unit"):
        BetaVAE(layers=(0,), steps=1).fit(x)
    with pytest.raises(InputError, match="convolutions expect images"):
        BetaVAE(network="conv", steps=1).fit(x)
    with pytest.raises(InputError, match="network='cnn', expected 'auto' or 'conv' or 'mlp'"):
        BetaVAE(network="cnn").fit(x)


def test_images_outside_of_0_to_1_are_refused_by_a_bernoulli_likelihood():
    images = np.random.default_rng(0).uniform(0, 255, (20, 1, 8, 8))
    with pytest.raises(InputError, match="cannot be Bernoulli: pass bytes"):
        BetaVAE(steps=2, **{k: v for k, v in SMALL.items() if k != "layers"}).fit(images)
    assert BetaVAE(steps=2, likelihood="gaussian", widths=(4,)).fit(images).transform(images).shape == (20, 10)
    as_bytes = BetaVAE(steps=2, widths=(4,)).fit(images.astype(np.uint8))
    assert as_bytes.is_bernoulli()


def test_gray_images_need_no_channel_axis():
    x = np.random.default_rng(0).integers(0, 256, (30, 8, 8), dtype=np.uint8)
    settings = {"steps": 10, "widths": (4,), "hidden": (8,), "latent_dim": 2}
    flat, deep = BetaVAE(**settings).fit(x), BetaVAE(**settings).fit(x[:, None])
    np.testing.assert_allclose(flat.transform(x), deep.transform(x[:, None]), atol=1e-6)
    assert flat.inverse_transform(flat.transform(x)).shape == x.shape


def test_the_kl_is_that_of_each_code_and_a_collapsed_posterior_is_diagnosed(fitted):
    q = fitted.encode_posterior(IMAGES.x)
    by_hand = 0.5 * (q.mean**2 + q.logvar.exp() - 1 - q.logvar)
    torch.testing.assert_close(fitted.kl_per_code(IMAGES.x), by_hand)
    for bias, nats in ((0.0, "0"), (0.4, "0.08"), (0.5, None), (3.0, None)):  # the KL is half of the square
        method = copy.deepcopy(fitted)
        last = [m for m in method.net_.encoder.modules() if isinstance(m, torch.nn.Linear)][-1]
        torch.nn.init.zeros_(last.weight)
        last.bias.data = torch.tensor([bias, 0, 0, 0])
        method.diagnosis_ = ["before"]
        method.after_training(IMAGES)
        notes = [f"The posterior has collapsed: mean KL {nats} nats per observation. "
                 "Try more steps, a smaller beta, or another lr."]  # fmt: skip
        assert method.diagnosis_ == ["before", *notes * (nats is not None)]


def test_the_log_likelihood_is_the_evidence_lower_bound(fitted):
    history = pd.DataFrame({"rec": [3.0, 5], "kl": [1.0, 2]})
    assert fitted.log_likelihood(history) == pytest.approx(-5.5 - fitted.likelihood_constant())
    assert fitted.log_likelihood(history[["rec"]]) is None and "kl" in fitted.figures()
    noise = fitted.sample_noise(5, torch.Generator().manual_seed(0))["eps"]
    assert noise.shape == (5, 2)
    batch = {"x": IMAGES.x[:5], "eps": noise}
    q, z, rec = fitted.reconstruct(fitted.net_, batch)
    torch.testing.assert_close(z, q.mean + noise * (q.logvar / 2).exp())
    out = torch.sigmoid(fitted.net_.decoder(z))
    x = batch["x"]
    expected = -(x * out.log() + (1 - x) * (1 - out).log()).flatten(1).sum(1).mean()
    assert float(rec) == pytest.approx(float(expected), rel=1e-4)
