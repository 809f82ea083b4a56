"""Affine transformations of images."""

import pytest
import torch

from tests.helpers import generator
from unweave import as_data
from unweave.data.augment import COMBINATIONS, affine, draw_affine, warp
from unweave.data.supervision import transformed


def test_rotation_shift_and_scale_move_pixels_as_documented():
    image = torch.zeros(1, 1, 8, 8)
    image[0, 0, 1, 6] = 1  # above, on the right
    one, none = torch.ones(1), torch.zeros(1)
    turned = warp(image, affine(torch.tensor([90.0]), torch.zeros(1, 2), one))
    assert turned[0, 0, 1, 1] == pytest.approx(1, abs=1e-5), "counter-clockwise: above, on the left"
    moved = warp(image, affine(none, torch.tensor([[-0.25, 0.5]]), one))
    assert moved[0, 0, 5, 4] == pytest.approx(1, abs=1e-5), "two pixels to the left, four down"
    block = torch.zeros(1, 1, 8, 8)
    block[..., 3:5, 3:5] = 1
    assert warp(block, affine(none, torch.zeros(1, 2), 2 * one)).sum() == pytest.approx(16, abs=2), "twice as wide"
    assert torch.equal(warp(image, affine(none, torch.zeros(1, 2), one)).round(), image)


def test_rotation_of_an_oblong_image_keeps_angles():
    image = torch.zeros(1, 1, 16, 32)
    image[..., 4:12, 20:28] = 1  # eight by eight, eight to the right of the middle
    turned = warp(image, affine(torch.tensor([90.0]), torch.zeros(1, 2), torch.ones(1), aspect=2.0))[0, 0]
    expected = torch.zeros(16, 32)
    expected[:4, 12:20] = 1  # half of it is above the edge
    torch.testing.assert_close(turned, expected, atol=1e-4, rtol=0)
    plan = transformed(as_data(image.numpy()), 4, generator(), kinds=("rotation",), copies=2)
    theta = plan.extras["theta"][1::2]
    torch.testing.assert_close(theta[:, 1, 0], -4 * theta[:, 0, 1])


def test_random_transformations_stay_in_their_ranges():
    theta = draw_affine(2000, generator(), ("translation", "rotation", "scaling"))
    scale = 1 / torch.linalg.det(theta[:, :, :2]).sqrt()
    angle = torch.rad2deg(torch.atan2(theta[:, 1, 0], theta[:, 0, 0]))
    shift = -torch.linalg.solve(theta[:, :, :2], theta[:, :, 2]) / 2
    for value, low, high in ((scale, 0.8, 1.25), (angle, 0, 5), (shift, -0.1, 0.1)):
        assert low - 1e-4 <= value.min() < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < value.max() <= high + 1e-4
    still = draw_affine(3, generator(), ())
    assert torch.equal(still, torch.eye(2, 3).expand(3, 2, 3))


def test_an_augmented_set_is_the_image_and_its_seven_transformations(sprites):
    plan = transformed(sprites, 5, generator())
    assert len(COMBINATIONS) == 7
    theta = plan.extras["theta"].reshape(5, 8, 2, 3)
    assert torch.equal(theta[:, 0], torch.eye(2, 3).expand(5, 2, 3))
    for i, kinds in enumerate(COMBINATIONS, 1):
        moves = theta[:, i, :, 2].abs().amax(1) > 0
        turns = theta[:, i, 0, 1].abs() > 0
        scales = (torch.linalg.det(theta[:, i, :, :2]) - 1).abs() > 1e-5
        assert (moves.all(), turns.all(), scales.all()) == tuple(
            k in kinds for k in ("translation", "rotation", "scaling")
        )
    images = warp(sprites.render(plan.views["x"]), plan.extras["theta"]).reshape(5, 8, 64, 64)
    torch.testing.assert_close(images[:, 0], sprites.render(plan.views["x"][::8])[:, 0], atol=1e-4, rtol=0)
