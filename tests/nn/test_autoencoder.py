"""Convolutional networks: shapes, and the sizes that the papers' tables imply."""

import pytest
import torch

from unweave import InputError
from unweave.nn.autoencoder import conv_decoder, conv_encoder


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_sizes_are_those_of_the_intervention_papers_table_4():
    """Added up by hand: four convolutions and two fully connected layers, and back."""
    encoder = [544, 16_416, 32_832, 65_600, 131_200, 1_290]
    decoder = [1_408, 132_096, 65_600, 32_800, 16_416, 513]
    assert count(conv_encoder((1, 64, 64), 10)) == sum(encoder)
    assert count(conv_decoder(10, (1, 64, 64))) == sum(decoder)


def test_28_pixels_are_halved_twice_and_then_kept_at_their_size():
    """Table 6 of the intervention paper: 4 x 4 of stride 2 twice, 3 x 3 of stride 1, one fully connected layer."""
    encoder = conv_encoder((3, 28, 28), 32, widths=(64, 128, 128), hidden=())
    kinds = [(m.kernel_size, m.stride) for m in encoder if isinstance(m, torch.nn.Conv2d)]
    assert kinds == [((4, 4), (2, 2)), ((4, 4), (2, 2)), ((3, 3), (1, 1))]
    decoder = conv_decoder(32, (3, 28, 28), widths=(64, 64), hidden=())
    assert decoder(torch.zeros(2, 32)).shape == (2, 3, 28, 28)


@pytest.mark.parametrize(
    "shape", [(1, 64, 64), (3, 32, 32), (3, 28, 28), (1, 16, 48), (2, 6, 10), (1, 7, 7), (3, 75, 45)]
)
def test_images_of_any_size_are_encoded_and_decoded(shape):
    x = torch.rand(5, *shape, generator=torch.Generator().manual_seed(0))
    z = conv_encoder(shape, 4)(x)
    assert z.shape == (5, 4)
    assert conv_decoder(4, shape)(z).shape == x.shape


def test_vectors_are_refused():
    with pytest.raises(InputError, match="convolutions expect images"):
        conv_encoder((10,), 2)


def test_odd_sides_are_padded_and_halved_as_often_as_even_ones():
    def numbers(shape):
        return sum(p.numel() for p in conv_encoder(shape, 4).parameters())

    assert numbers((1, 67, 65)) == numbers((1, 80, 80))
    assert numbers((1, 225, 225)) == numbers((1, 240, 240))
    images = torch.rand(2, 1, 31, 45, generator=torch.Generator().manual_seed(0))
    encoder = conv_encoder((1, 31, 45), 4)
    moved = images.clone()
    moved[:, :, -1, -1] += 1.0  # pixels at the edge matter
    assert not torch.equal(encoder(images), encoder(moved))


def test_channels_in_the_last_axis_are_refused():
    with pytest.raises(InputError, match=r"channels come last.*moveaxis"):
        conv_encoder((32, 40, 3), 2)
    for shape in ((16, 4, 4), (6, 100, 1), (8, 32, 4)):  # many channels of small or long images
        assert conv_encoder(shape, 2)(torch.zeros(2, *shape)).shape == (2, 2)
