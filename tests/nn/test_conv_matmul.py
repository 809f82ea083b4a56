"""Convolutions as matrix products give what convolutions give."""

import pytest
import torch
from torch import nn

from unweave.nn.autoencoder import conv_decoder, conv_encoder
from unweave.nn.conv_matmul import StridedConvMatmul, TransposedConvMatmul, replace_convs
from unweave.nn.spectral_norm import apply_spectral_norm


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 28, 28), (2, 8, 16)])
def test_matrix_products_equal_the_convolutions_they_replace(shape):
    x, z = torch.rand(3, *shape), torch.rand(3, 5)
    for net, inputs in ((conv_encoder(shape, 4), x), (conv_decoder(5, shape), z)):
        other = replace_convs(net)
        assert any(isinstance(m, StridedConvMatmul | TransposedConvMatmul) for m in other.modules())
        torch.testing.assert_close(other(inputs), net(inputs), atol=1e-6, rtol=1e-5)
        for a, b in zip(
            torch.autograd.grad(other(inputs).square().sum(), list(other.parameters())),
            torch.autograd.grad(net(inputs).square().sum(), list(net.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(1, 8), (3, 4), (8, 2), (5, 1)])
@pytest.mark.parametrize("size", [(2, 2), (7, 10), (9, 5)])
def test_matrix_products_work_for_any_image_size_and_width(a, b, size):
    x = torch.randn(2, a, *size, dtype=torch.float64)
    for layer in (nn.Conv2d(a, b, 4, 2, 1).double(), nn.ConvTranspose2d(a, b, 4, 2, 1).double()):
        product = replace_convs(nn.Sequential(layer))
        assert isinstance(product[0], StridedConvMatmul | TransposedConvMatmul)
        torch.testing.assert_close(product(x), layer(x))


def test_convolutions_with_spectral_normalization_are_replaced_too():
    torch.manual_seed(0)
    net = apply_spectral_norm(conv_encoder((2, 16, 16), 3, widths=(4, 5), activation=nn.Tanh))
    other, x = replace_convs(net), torch.rand(3, 2, 16, 16)
    assert sum(isinstance(module, StridedConvMatmul) for module in other.modules()) == 2
    assert dict(other.named_buffers()).keys() == dict(net.named_buffers()).keys()
    torch.testing.assert_close(other(x), net(x), atol=1e-6, rtol=1e-5)
    for a, b in zip(
        torch.autograd.grad(other(x).sum(), list(other.parameters())),
        torch.autograd.grad(net(x).sum(), list(net.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_matrix_products_follow_autocast_like_convolutions():
    net = nn.Sequential(nn.Conv2d(4, 4, 4, 2, 1), nn.ConvTranspose2d(4, 4, 4, 2, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert replace_convs(net)(torch.rand(2, 4, 8, 8)).dtype == net(torch.rand(2, 4, 8, 8)).dtype == torch.bfloat16


def test_other_convolutions_are_not_replaced():
    wider = nn.ConvTranspose2d(2, 3, 4, 2, 1, output_padding=1)
    assert type(replace_convs(nn.Sequential(wider))[0]) is nn.ConvTranspose2d
    x = torch.rand(1, 2, 5, 5)
    layer = nn.ConvTranspose2d(2, 3, 4, 2, 1)
    asked = replace_convs(nn.Sequential(layer))[0](x, output_size=[11, 11])
    torch.testing.assert_close(asked, layer(x, output_size=[11, 11]))
