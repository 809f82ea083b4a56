"""Affine coupling: the mathematics, by autograd, and against FrEIA's blocks."""

import math

import pytest
import torch
from torch.func import jacrev, vmap

from unweave.nn.coupling import (
    CLAMPS,
    VOLUMES,
    AffineCoupling,
    Flow,
    Squeeze,
    conv_subnet,
    dense_subnet,
    image_flow,
    permute_channels,
    vector_flow,
)
from unweave.utils.errors import InputError

IMAGE = {"blocks": (4, 2), "widths": (16, 32), "full_width": 392}


def generator():
    torch.manual_seed(0)
    return torch.Generator().manual_seed(0)


def flow(clamp="soft", volume="free", blocks=8, features=10):
    return vector_flow(features, blocks, 10, generator(), clamp=clamp, volume=volume, identity_start=False).double()


def images(volume, shape=(1, 4, 8), identity_start=False):
    net = image_flow(shape, (1, 1), (3, 4), generator(), clamp="soft", volume=volume, full_width=6)
    if not identity_start:  # a last layer of zeros would make every block the identity
        for p in net.parameters():
            torch.nn.init.normal_(p, std=0.3)
    return net.double()


def log_abs_det(net, x):
    """That of the Jacobian of every observation, by autograd."""
    jacobian = vmap(jacrev(lambda v: net(v[None])[0][0]))(x)  # (n, ..., ...)
    size = x[0].numel()
    return torch.linalg.slogdet(jacobian.reshape(len(x), size, size)).logabsdet


@pytest.mark.parametrize("volume", VOLUMES)
@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("features", [3, 10])
def test_the_log_determinant_is_that_of_the_jacobian(clamp, volume, features):
    net = flow(clamp, volume, blocks=3, features=features)
    x = torch.randn(4, features, dtype=torch.float64)
    torch.testing.assert_close(net(x)[1], log_abs_det(net, x), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("volume", VOLUMES)
def test_the_log_determinant_of_an_image_flow_is_that_of_the_jacobian(volume):
    net = images(volume)
    x = torch.randn(3, 1, 4, 8, dtype=torch.float64)
    found = net(x)[1]
    torch.testing.assert_close(found, log_abs_det(net, x), atol=1e-9, rtol=1e-9)
    assert bool((found.abs() > 0.01).all()) == (volume == "free")


@pytest.mark.parametrize("volume", ["last", "mean"])
def test_volume_preserving_blocks_do_scale(volume):
    net = flow(volume=volume, blocks=1)
    jacobian = vmap(jacrev(lambda v: net(v[None])[0][0]))(torch.randn(4, 10, dtype=torch.float64))
    values = torch.linalg.svdvals(jacobian)
    assert (
        float(values.detach().max()) > 1.05 and float(values.detach().min()) < 0.95
    )  # not a rotation, nor a shear alone


@pytest.mark.parametrize("volume", VOLUMES)
@pytest.mark.parametrize("clamp", CLAMPS)
def test_the_inverse_undoes_the_flow_in_single_precision(clamp, volume):
    net, x = flow(clamp, volume).float(), torch.randn(50, 10)
    for p in net.parameters() if clamp == "steep" else ():
        p.data.mul_(0.7)  # eight steep blocks of random weights stretch by a thousand, and rounding with it
    torch.testing.assert_close(net.inverse(net(x)[0]), x, rtol=0, atol=1e-4)


def test_the_inverse_undoes_the_papers_image_flow_in_single_precision():
    net = image_flow((1, 28, 28), rng=generator(), clamp="soft", volume="mean", **IMAGE)
    for p in net.parameters():
        torch.nn.init.normal_(p, std=0.03)
    x = torch.rand(5, 1, 28, 28)
    y = net(x)[0]
    assert y.shape == (5, 784)
    torch.testing.assert_close(net.inverse(y), x, rtol=0, atol=1e-4)
    assert float((y.sort(1).values - x.flatten(1).sort(1).values).abs().max()) > 0.1  # more than a permutation


def test_a_flow_that_starts_as_the_identity_only_permutes():
    x = torch.randn(5, 10)
    y, log_det = vector_flow(10, 8, 10, generator(), clamp="soft", volume="free")(x)
    torch.testing.assert_close(y.sort(1).values, x.sort(1).values, rtol=0, atol=0)
    assert not log_det.any()


def test_the_networks_have_the_papers_numbers_of_parameters():
    assert sum(p.numel() for p in flow().parameters()) == 4_480
    net = image_flow((1, 28, 28), rng=generator(), clamp="soft", volume="mean", **IMAGE)
    assert sum(p.numel() for p in net.parameters()) == 2_620_192


def test_the_clamps_have_the_slopes_and_bounds_that_the_paper_and_the_script_give():
    zero = torch.zeros(1, requires_grad=True)
    slopes = {name: torch.autograd.grad(clamp(zero), zero)[0].item() for name, clamp in CLAMPS.items()}
    assert slopes == {"soft": pytest.approx(2 / math.pi), "steep": pytest.approx(2)}
    assert all(clamp(torch.tensor(1e6)).item() == pytest.approx(2, abs=1e-4) for clamp in CLAMPS.values())


def test_squeezing_separates_the_four_corners_of_every_square():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    y, log_det = Squeeze()(x)
    assert y[0, :, 0, 0].tolist() == [0, 1, 4, 5] and not log_det.any()
    assert torch.equal(Squeeze().inverse(y), x)


@pytest.mark.parametrize("features", [5, 40])
def test_a_permutation_by_sums_is_the_one_by_an_index(features):
    x = torch.randn(7, features, dtype=torch.float64, requires_grad=True)
    order = torch.randperm(features)
    assert torch.equal(permute_channels(x, order), x[:, order])
    (gradient,) = torch.autograd.grad((permute_channels(x, order) * torch.arange(features)).sum(), x)
    assert torch.equal(gradient[0], order.argsort().double())


def test_permutations_differ_between_blocks_and_are_kept_in_the_state():
    net = flow()
    orders = [tuple(block.order.tolist()) for block in net.blocks]
    assert len(set(orders)) == len(orders)
    other = vector_flow(10, 8, 10, torch.Generator().manual_seed(9), clamp="soft", volume="free").double()
    other.load_state_dict(net.state_dict())
    x = torch.randn(4, 10, dtype=torch.float64)
    assert torch.equal(other(x)[0], net(x)[0])


@pytest.mark.parametrize("side", [27, 30])
def test_images_that_cannot_be_halved_twice_are_refused_with_what_to_do(side):
    with pytest.raises(InputError, match=f"{side} x {side} cannot be halved 2 times.*multiples of 4.*dense"):
        image_flow((1, side, side), rng=generator(), clamp="soft", volume="mean", **IMAGE)


# FrEIA as an oracle -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("volume", ["free", "mean"])
@pytest.mark.parametrize("kind", ["dense", "convolutional"])
def test_a_block_is_freias_block_with_the_same_weights(volume, kind):
    modules = pytest.importorskip("FrEIA.modules", reason="FrEIA is not installed")
    shape = (6,) if kind == "dense" else (6, 4, 4)
    subnet = (dense_subnet if kind == "dense" else conv_subnet)(8)
    block = AffineCoupling(6, subnet, generator(), clamp="soft", volume=volume)
    peer = modules.GLOWCouplingBlock if volume == "free" else modules.GINCouplingBlock
    # The authors' version of FrEIA clamped by arctan(s / 2); the newest does by arctan(s).
    clamp = {"clamp": 2.0, "clamp_activation": lambda s: 2 / math.pi * torch.atan(s / 2)}
    theirs = peer([shape], subnet_constructor=subnet, **clamp)
    # Theirs moves the first half by its subnet2 of the second, then the second by its subnet1 of the first.
    theirs.subnet2.load_state_dict(block.first.state_dict())
    theirs.subnet1.load_state_dict(block.second.state_dict())
    x = torch.randn(5, *shape)
    y, log_det = Flow([block])(x)
    (expected,), expected_log_det = theirs([x[:, block.order]], jac=True)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(log_det, torch.as_tensor(expected_log_det).expand(5))
    (back,), _ = theirs([expected], rev=True)
    torch.testing.assert_close(block.inverse(y), back[:, block.back])
