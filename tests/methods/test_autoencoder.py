"""Deterministic autoencoders: their losses."""

import numpy as np
import pytest
import torch

from tests.methods.vae.helpers import IMAGES, D, build_case
from unweave.data.conversion import as_data
from unweave.methods import IRMAE, Autoencoder, BetaVAE, HessianAutoencoder


@pytest.fixture(scope="module")
def fitted():
    settings = {"steps": 60, "latent_dim": 2, "widths": (4, 4), "hidden": (8,)}
    return BetaVAE(**settings).fit(IMAGES)


def test_the_loss_is_half_the_squared_error():
    method, net, batch = build_case(Autoencoder, IMAGES)
    out = net.decoder(net.encoder(batch["x"]))
    torch.testing.assert_close(method.loss(net, batch)["loss"], 0.5 * ((out - batch["x"]) ** 2).sum((1, 2, 3)).mean())


def test_irmae_has_square_linear_layers_after_the_encoder():
    method, net, batch = build_case(IRMAE, linear=3)
    assert [tuple(p.shape) for p in net.linear.parameters()] == [(D, D)] * 3  # and no bias
    product = net.linear[2].weight @ net.linear[1].weight @ net.linear[0].weight
    torch.testing.assert_close(method.compute_codes(net, batch["x"]), net.encoder(batch["x"]) @ product.T)


def test_encoder_and_decoder_learn_the_codes_of_the_teacher_separately():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (300, 2))
    data = as_data(np.column_stack([z, 0.2 * z**2]))
    method, net, batch = build_case(HessianAutoencoder, data, latent_dim=2)
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
