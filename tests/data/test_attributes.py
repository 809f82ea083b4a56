"""Attributes of images: drawn shapes with known answers."""

import colorsys

import numpy as np
import pytest
import torch

import unweave
from unweave import attributes
from unweave.data.attributes import ATTRIBUTES
from unweave.utils.errors import InputError

SIDE = 40
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE] + 0.5  # centers of the pixels


def bar(angle=0.0, length=24.0, thick=4.0, x=20.0, y=20.0):
    """Draw a stroke that leans to the right by `angle` degrees, with soft edges of one pixel."""
    a = np.deg2rad(angle)
    along = (COLUMNS - x) * np.sin(a) - (ROWS - y) * np.cos(a)
    across = (COLUMNS - x) * np.cos(a) + (ROWS - y) * np.sin(a)
    inside = np.minimum(length / 2 - abs(along), thick / 2 - abs(across))
    return np.clip(inside + 0.5, 0, 1)


def box(left, right, top, bottom):
    image = np.zeros((SIDE, SIDE))
    image[top:bottom, left:right] = 1
    return image


def ring(radius, thick, x=20.0, y=20.0):
    distance = np.hypot(COLUMNS - x, ROWS - y)
    return np.clip(thick / 2 - abs(distance - radius) + 0.5, 0, 1)


def one(function, image):
    return float(function(np.asarray(image)[None])[0])


@pytest.mark.parametrize("angle", [-40, -15, 0, 10, 30])
def test_slant_is_the_angle_of_a_stroke(angle):
    assert one(attributes.slant, bar(angle, length=26, thick=2)) == pytest.approx(angle, abs=0.6)


@pytest.mark.parametrize("angle", [0, 30, 45])
@pytest.mark.parametrize("thick", [2, 3, 5])
def test_thickness_is_that_of_a_stroke_at_any_angle(angle, thick):
    assert one(attributes.thickness, bar(angle, thick=thick)) * SIDE == pytest.approx(thick, rel=0.12)


def test_thickness_is_that_of_a_ring():
    assert one(attributes.thickness, ring(10, 3)) * SIDE == pytest.approx(3, rel=0.12)


def test_sizes_and_positions_of_a_box():
    image = box(4, 14, 10, 34)
    known = {
        "width": 10, "height": 24, "upper_width": 10, "lower_width": 10, "upper_height": 10, "lower_height": 14,
        "horizontal_position": 9, "vertical_position": 22, "area": 240 / SIDE, "brightness": 240 / SIDE,
    }  # fmt: skip
    for name, value in known.items():
        assert one(getattr(attributes, name), image) * SIDE == pytest.approx(value, abs=1e-4), name


def test_halves_have_widths_and_heights_of_their_own():
    letter = np.maximum(box(8, 32, 6, 10), box(18, 22, 6, 30))  # a T
    assert one(attributes.upper_width, letter) == pytest.approx(24 / SIDE)
    assert one(attributes.lower_width, letter) == pytest.approx(4 / SIDE)
    assert one(attributes.upper_height, letter) == pytest.approx(14 / SIDE)
    assert one(attributes.lower_height, letter) == pytest.approx(10 / SIDE)


def test_edges_between_pixels_count_by_their_share():
    image = box(10, 20, 10, 20)
    image[10:20, 20] = 0.4
    assert one(attributes.width, image) * SIDE == pytest.approx(10.4, abs=1e-4)


def test_gaps_within_a_shape_belong_to_its_width():
    assert one(attributes.width, np.maximum(box(5, 8, 10, 30), box(30, 33, 10, 30))) == pytest.approx(28 / SIDE)


def test_holes_are_counted_and_measured():
    eight = np.maximum(ring(6, 3, y=13), ring(6, 3, y=25))
    letter_c = ring(8, 3) * (COLUMNS < 24)
    images = np.stack([ring(8, 3), eight, letter_c, bar(), np.zeros((SIDE, SIDE)), 1 - eight])
    assert attributes.holes(images).tolist() == [1, 2, 0, 0, 0, 2]
    assert one(attributes.hole_area, ring(8, 3)) * SIDE**2 == pytest.approx(np.pi * 6.5**2, rel=0.1)
    assert one(attributes.hole_area, letter_c) == 0


def test_strokes_that_touch_at_corners_enclose_a_hole():
    diamond = (abs(COLUMNS - 20.5) + abs(ROWS - 20.5) == 4).astype(float)
    assert one(attributes.holes, diamond) == 1
    assert one(attributes.hole_area, diamond) * SIDE**2 == 25


@pytest.mark.parametrize("rgb", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0.5, 0), (0.6, 0.3, 0.6), (0.2, 0.8, 0.7)])
def test_hue_and_saturation_are_those_of_the_color(rgb):
    image = box(10, 20, 10, 20) * np.array(rgb)[:, None, None]
    hue, saturation, _ = colorsys.rgb_to_hsv(*rgb)
    assert one(attributes.hue, image) == pytest.approx(360 * hue, abs=2.5)
    assert one(attributes.saturation, image) == pytest.approx(saturation, abs=1e-5)


@pytest.mark.parametrize("pixels", [1, 2, 4, 8])
def test_sharpness_is_one_over_the_width_of_an_edge(pixels):
    image = np.clip((COLUMNS - 15.5) / pixels, 0, 1) * 0.5 + 0.2
    assert one(attributes.sharpness, image) == pytest.approx(1 / pixels, rel=0.02)


def test_background_contrast_and_size_do_not_change_a_shape():
    image, shapes = bar(20), ["slant", "thickness", "width", "lower_height", "horizontal_position", "holes"]
    versions = [image, 1 - image, 0.3 + 0.4 * image]
    values = attributes.measure(np.stack(versions), shapes)
    large = attributes.measure(np.kron(image, np.ones((3, 3)))[None], shapes)  # with stairs, which lengthen edges
    for name in shapes:
        np.testing.assert_allclose(values[name], values[name][0], atol=0.02 * abs(values[name][0]) + 1e-3)
        np.testing.assert_allclose(large[name], values[name][0], rtol=0.2 if name == "thickness" else 0.05, atol=1e-3)


def test_arrays_tensors_bytes_and_channels_agree():
    gray = np.stack([bar(10), ring(8, 3)])
    as_bytes = (gray * 255).round().astype(np.uint8)
    color = np.repeat(gray[:, None], 3, 1)
    expected = attributes.measure(gray)
    for images in (as_bytes, color, torch.from_numpy(color)):
        for name, values in attributes.measure(images).items():
            np.testing.assert_allclose(values, expected[name], rtol=0.02, atol=2e-3, err_msg=name)
    assert isinstance(attributes.slant(torch.from_numpy(gray)), torch.Tensor)
    assert isinstance(attributes.slant(gray), np.ndarray)


def test_what_an_image_does_not_have_is_nan():
    values = attributes.measure(np.full((1, 8, 8), 0.5))
    assert all(np.isnan(values[name]).all() for name in ("slant", "width", "area", "hue", "thickness"))
    assert values["holes"] == 0 and values["brightness"] == pytest.approx(0.5)


def test_large_batches_are_measured_in_parts(monkeypatch):
    images = np.stack([bar(angle) for angle in range(-10, 10, 4)])
    expected = attributes.measure(images)
    monkeypatch.setattr(attributes, "MAX_ELEMENTS", 2 * SIDE**2)
    for name, values in attributes.measure(images).items():
        np.testing.assert_array_equal(values, expected[name])


def test_other_shapes_and_names_are_refused():
    with pytest.raises(InputError, match="expected \\(n, h, w\\)"):
        attributes.slant(np.zeros((3, 4)))
    with pytest.raises(InputError, match="expected \\(n, h, w\\)"):
        attributes.measure(np.zeros((3, 2, 4, 4)))
    with pytest.raises(InputError, match="slat"):
        attributes.measure(np.zeros((1, 4, 4)), ["slat"])


def test_every_attribute_is_public_and_named():
    assert unweave.attributes is attributes
    assert all(entry.words and getattr(attributes, name) is entry.function for name, entry in ATTRIBUTES.items())


@pytest.mark.parametrize("name", ["thickness", "sharpness", "area", "width", "height"])
def test_mirrored_images_are_alike(name):
    image = bar(25, length=20, thick=3) + bar(-10, x=12)
    flips = image, image[:, ::-1], image[::-1], image[::-1, ::-1]
    values = [one(getattr(attributes, name), flipped) for flipped in flips]
    assert values == pytest.approx([values[0]] * 4, rel=1e-4)
