"""The beta-VAE: its loss against hand-computed values."""

import numpy as np
import torch

from tests.methods.vae.helpers import IMAGES, build_case, sample_posterior
from unweave.methods import BetaVAE
from unweave.nn.functional import kl_to_standard


def test_the_loss_of_images_sums_bernoulli_pixels_and_averages_observations():
    method, net, batch = build_case(BetaVAE, IMAGES, beta=4.0)
    _, z, kl = sample_posterior(net, batch)
    p = net.decoder(z).sigmoid()
    rec = -(batch["x"] * p.log() + (1 - batch["x"]) * (1 - p).log()).sum((1, 2, 3)).mean()
    terms = method.loss(net, batch)
    torch.testing.assert_close(terms["rec"], rec)
    torch.testing.assert_close(terms["kl"], kl)
    torch.testing.assert_close(terms["loss"], rec + 4 * kl)


def test_the_loss_of_vectors_is_gaussian_with_variance_one():
    method, net, batch = build_case(BetaVAE, beta=1.0)
    _, z, kl = sample_posterior(net, batch)
    rec = 0.5 * ((net.decoder(z) - batch["x"]) ** 2).sum(1).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + kl)
    method, net, batch = build_case(BetaVAE, IMAGES, likelihood="gaussian", beta=1.0)
    _, z, kl = sample_posterior(net, batch)
    rec = 0.5 * ((net.decoder(z) - batch["x"]) ** 2).sum((1, 2, 3)).mean()
    torch.testing.assert_close(method.loss(net, batch)["loss"], rec + kl)


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
