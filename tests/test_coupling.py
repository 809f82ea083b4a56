"""Affine coupling: the mathematics, by autograd."""

import math

import pytest
import torch

from unweave.nn.coupling import CLAMPS, AffineCoupling, Flow


def flow(clamp, blocks=8, features=10):
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    return Flow([AffineCoupling(features, 10, clamp, rng) for _ in range(blocks)]).double()


@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("features", [3, 10])
def test_the_log_determinant_is_that_of_the_jacobian(clamp, features):
    net = flow(clamp, blocks=3, features=features)
    x = torch.randn(4, features, dtype=torch.float64)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda v: net(v[None])[0][0]))(x)  # (4, features, features)
    torch.testing.assert_close(net(x)[1], torch.linalg.slogdet(jacobian).logabsdet)


@pytest.mark.parametrize("clamp", CLAMPS)
def test_the_inverse_undoes_the_flow(clamp):
    net = flow(clamp)
    x = torch.randn(50, 10, dtype=torch.float64)
    torch.testing.assert_close(net.inverse(net(x)[0]), x, rtol=1e-8, atol=1e-8)


def test_the_network_of_the_artificial_data_has_the_papers_4480_parameters():
    assert sum(p.numel() for p in flow("soft").parameters()) == 4480


def test_the_clamps_have_the_slopes_and_bounds_that_the_paper_and_the_script_give():
    zero = torch.zeros(1, requires_grad=True)
    slopes = {name: torch.autograd.grad(clamp(zero), zero)[0].item() for name, clamp in CLAMPS.items()}
    assert slopes == {"soft": pytest.approx(2 / math.pi), "steep": pytest.approx(2)}
    assert all(clamp(torch.tensor(1e6)).item() == pytest.approx(2, abs=1e-4) for clamp in CLAMPS.values())
