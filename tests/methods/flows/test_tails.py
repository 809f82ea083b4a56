"""Compression of features with heavy tails: its inverse, its Jacobian, and flows that are trained behind it."""

import numpy as np
import pytest
import torch

import unweave
from tests.helpers import FLOW_SETTINGS, blobs
from unweave.methods import GIN
from unweave.methods.flows.tails import fit_tails
from unweave.methods.persistence import saved_settings


def heavy(n: int = 400) -> torch.Tensor:
    """Return features with heavy tails and different units, the last one constant, (n, 3)."""
    e = torch.randn(n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.cat([5 + (3 * e[:, :1]).sinh(), 100 * e[:, 1:], torch.full((n, 1), 7.0)], 1).float()


def test_compressed_features_have_a_deviation_of_one_and_can_be_expanded():
    x = heavy()
    tails = fit_tails(x)
    t = tails.compress(x)
    torch.testing.assert_close(t.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(t.median(0).values, torch.zeros(3))
    torch.testing.assert_close(tails.expand(t), x, rtol=1e-4, atol=1e-4)
    assert float(x[:, 0].abs().max()) > 1000 and float(t[:, 0].abs().max()) < 5


def test_the_log_determinant_of_the_compression_is_that_of_its_jacobian():
    x = heavy(5).double()
    tails = type(fit_tails(heavy()))(*(v.double() for v in fit_tails(heavy())))
    jacobians = torch.stack([torch.autograd.functional.jacobian(tails.compress, row) for row in x])
    torch.testing.assert_close(tails.log_det(tails.compress(x)), torch.linalg.slogdet(jacobians)[1])


@pytest.fixture(scope="module")
def compressed():
    """A flow that changes volumes, on blobs whose features are stretched."""
    x, u = blobs(300, d=3)
    x = np.sinh(2 * x) * [1, 10, 100]
    return GIN(**FLOW_SETTINGS | {"steps": 60}, heavy_tails=True, volume="free", latent_dim="all").fit(x, u), x, u


def test_densities_behind_the_compression_are_those_of_the_observations(compressed):
    method, x, u = compressed
    point = torch.from_numpy(x[:1]).float()
    jacobian = torch.autograd.functional.jacobian(lambda v: method.net_.flow(method.to_network_input(v))[0], point)
    log_det = torch.linalg.slogdet(jacobian[0, :, 0])[1]
    assert float(method.outputs_and_log_det(point)[0, -1]) == pytest.approx(float(log_det), abs=1e-3)
    np.testing.assert_allclose(method.inverse_transform(method.transform(x)), x, rtol=1e-3, atol=1e-3)
    of_history = method.log_likelihood(method.history.tail(1))
    assert of_history == pytest.approx(method.log_prob(x, u).mean(), abs=0.7)


def test_a_saved_flow_keeps_its_compression(compressed, tmp_path):
    method, x, _ = compressed
    method.save(tmp_path / "m")
    np.testing.assert_array_equal(unweave.load(tmp_path / "m").transform(x), method.transform(x))


def test_recipes_of_other_flows_are_as_before():
    assert "heavy_tails" not in saved_settings(GIN()) and saved_settings(GIN(heavy_tails=True))["heavy_tails"]
