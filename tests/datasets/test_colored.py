"""Colored MNIST."""

import colorsys

import pytest
import torch

from tests.helpers import generator
from unweave import InputError
from unweave.data.supervision import pairs
from unweave.datasets import ColoredMNIST, RotationColoredMNIST, Unseen
from unweave.datasets.shapes3d import HUES


def test_ten_colors_are_independent_of_the_digit_or_correlated_with_it(digits):
    free, tied = ColoredMNIST().load(), ColoredMNIST(strength=0.1).load()
    for data, low, high in ((free, -0.05, 0.05), (tied, 0.9, 1)):
        c = data.labels(data.sample(5000, generator()))
        assert low < torch.corrcoef(c.T)[0, 1] < high
    with pytest.raises(InputError, match="positive"):
        ColoredMNIST(strength=-1).load()
    with pytest.raises(InputError, match="leave it out for the form 'backgrounds'"):
        ColoredMNIST(strength=1, form="backgrounds").load()


def test_a_painted_digit_is_the_gray_one_times_its_color(digits):
    data = ColoredMNIST().load()
    points = torch.tensor([[4, 7]])  # row 4 in color 7
    gray = torch.from_numpy(digits[4]).float() / 255
    torch.testing.assert_close(data.render(points)[0], gray * HUES[7][:, None, None])


def test_backgrounds_of_the_test_set_never_occur_in_training_pairs(digits):
    for cls, names in (
        (ColoredMNIST, ("color", "background")),
        (RotationColoredMNIST, ("color", "background", "angle")),
    ):
        options = {"form": "backgrounds"} if cls is ColoredMNIST else {}
        train, test = (cls(split=s, **options).load() for s in ("train", "test"))
        assert tuple(f.name for f in train.factors[1:]) == names
        plan = pairs(train, 400, generator(), k=2, among=names)
        seen = torch.cat([train.labels(plan.views[v]) for v in ("x", "x2")])
        new = test.labels(test.sample(400, generator()))
        assert set(seen[:, 2].tolist()) == {0, 1, 2}
        assert set(new[:, 2].tolist()) == {3, 4, 5}
        if cls is RotationColoredMNIST:
            assert set(seen[:, 3].tolist()) == {2, 3, 4, 5, 6}
            assert set(new[:, 3].tolist()) == {0, 1, 4, 7, 8}


def test_palettes_differ_in_backgrounds_only(digits):
    one, other = (
        ColoredMNIST(form="backgrounds", palette=name).load() for name in ("adjacent-60-65", "adjacent-100-35")
    )
    point = torch.tensor([[4, 0, 1]])  # row 4, a red digit on the second background
    ink = torch.tensor([1.0, 0, 0])
    gray = torch.from_numpy(digits[4]).float() / 255
    for data, background in ((one, [0.455, 0.65, 0.26]), (other, [0.175, 0.35, 0.0])):  # a hue of 90 degrees
        expected = gray * ink[:, None, None] + (1 - gray) * torch.tensor(background)[:, None, None]
        torch.testing.assert_close(data.render(point)[0], expected)
    with pytest.raises(InputError, match="no palette named 'adjacent'"):
        ColoredMNIST(form="backgrounds", palette="adjacent").load()


def test_settings_that_were_added_later_are_in_recipes_only_where_they_are_set():
    assert "palette" not in RotationColoredMNIST().recipe()
    assert RotationColoredMNIST(clockwise=True).recipe()["clockwise"] is True
    assert Unseen(palette="adjacent-60-65").recipe()["palette"] == "adjacent-60-65"


def test_clockwise_angles_are_mirrored(digits):
    plain, clockwise = (RotationColoredMNIST(clockwise=flag).load() for flag in (False, True))
    left, right = (torch.tensor([[4, 0, 1, k]]) for k in (2, 6))  # -45 and 45 degrees
    torch.testing.assert_close(plain.render(left), clockwise.render(right))
    assert not torch.allclose(plain.render(left), clockwise.render(left))


def test_hues_are_one_more_nuisance_of_training(digits):
    plain, data, test = (Unseen(**settings).load() for settings in ({}, {"hues": 6}, {"hues": 6, "part": "test"}))
    assert [f.name for f in data.factors] == [*(f.name for f in plain.factors), "hue"]
    assert [f.name for f in test.factors] == [f.name for f in plain.factors], "images of the test set stay"
    point = torch.tensor([[4, 0, 1]])  # a red digit on the second background
    images = data.render(torch.cat([point.expand(6, -1), torch.arange(6)[:, None]], 1))
    torch.testing.assert_close(images[:1], plain.render(point))
    for k, image in enumerate(images):
        for was, now in zip(images[0].flatten(1).T[::97], image.flatten(1).T[::97], strict=True):
            h, s, v = colorsys.rgb_to_hsv(*was.tolist())
            assert now.tolist() == pytest.approx(colorsys.hsv_to_rgb((h + k / 6) % 1, s, v), abs=1e-6)
    plan = pairs(data, 100, generator(), k=1, among=["hue"])
    a, b = (data.labels(plan.views[v]) for v in ("x", "x2"))
    assert (a[:, 3] != b[:, 3]).all() and (a[:, :3] == b[:, :3]).all()
    held_out = Unseen(hues=6, validation=True)
    assert len(held_out.load().factors) == 4 and len(held_out.evaluation_data(held_out.load()).factors) == 3
    with pytest.raises(InputError, match="expected at least 1"):
        Unseen(hues=0)
    with pytest.raises(InputError, match="1 for shapes3d"):
        Unseen(of="shapes3d", hues=2)
