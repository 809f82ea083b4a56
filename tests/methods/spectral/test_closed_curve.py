"""Closed curves: the angle of turntables and others, its zero, direction and speed."""

from functools import cache

import numpy as np
import pytest
import torch

import unweave
from tests.turntable import angle_error, photograph, random_object, symmetric_object
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral.closed_curve import ClosedCurve, has_even_steps, project, spread_of_order
from unweave.methods.spectral.neighbors import find_neighbors

TURN = 2 * np.pi


@cache
def turntable(views, size=32, seed=0, offset=0.0):
    """Images of an object from all sides, and the angles."""
    angles = TURN * (np.arange(views) + offset) / views
    return photograph(random_object(seed), angles, size=size), angles


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1)


@pytest.mark.parametrize(("views", "seed"), [(24, 0), (36, 1), (72, 2)])
def test_the_angle_of_a_turntable_is_recovered_with_its_direction(views, seed):
    x, angles = turntable(views, seed=seed)
    method = HessianICA().fit(x)
    assert method.latent_dim_ == 1
    assert method.code_periods() == (TURN,)
    np.testing.assert_allclose(method.transform(x)[:, 0], angles, atol=np.radians(1))


def test_order_noise_and_new_views_do_not_matter():
    x, angles = turntable(72)
    order = np.random.default_rng(0).permutation(72)
    noisy = x + 0.1 * np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
    assert angle_error(HessianICA().fit_transform(x[order])[:, 0], angles[order]) < 1
    assert angle_error(HessianICA().fit_transform(noisy)[:, 0], angles) < 5
    new, between = turntable(72, offset=0.5)
    codes = HessianICA().fit(x).transform(new)[:, 0]
    np.testing.assert_allclose(codes, between, atol=np.radians(2.5))
    assert codes[-1] > 6.2, "the last one lies between the last view and the first, across the cut"


def test_reversed_rows_reverse_the_angle():
    x, angles = turntable(36)
    np.testing.assert_allclose(HessianICA().fit_transform(x[::-1].copy())[:, 0], angles, atol=1e-3)


def test_a_symmetric_object_gives_the_angle_modulo_its_symmetry():
    angles = TURN * np.arange(48) / 48
    x = photograph(symmetric_object(0, 2), angles, size=32, rays=1)
    x = x + 0.01 * np.random.default_rng(0).normal(size=x.shape).astype(np.float32)  # otherwise views repeat
    assert angle_error(HessianICA().fit_transform(x)[:, 0], angles, period=np.pi) < 5


@pytest.mark.parametrize("cls", [HessianICA, TangentICA, LaplacianICA])
def test_uneven_points_are_placed_by_arc_length(cls):
    """A bent circle, four times denser on one side than on the other."""
    grid = np.linspace(0, TURN, 4001)
    angles = np.interp(np.random.default_rng(0).uniform(size=300), (grid + 0.6 * np.sin(grid)) / TURN, grid)
    x = np.column_stack([circle(angles), 0.5 * np.cos(2 * angles), 0.5 * np.sin(2 * angles)])  # speed is constant
    method = cls().fit(x)
    assert angle_error(method.transform(x)[:, 0], angles) < 1
    assert any("It is arc length" in text for text in method.diagnosis_)
    counted = cls(loops="steps").fit(x)
    assert angle_error(counted.transform(x)[:, 0], angles) > 10


def test_arc_length_or_steps_can_be_demanded():
    turn = TURN * np.arange(60) / 60
    ellipse = circle(turn) * [1.5, 1]
    steps, length = (HessianICA(loops=loops).fit_transform(ellipse)[:, 0] for loops in ("steps", "arc-length"))
    np.testing.assert_allclose(steps, turn, atol=1e-3)
    true_steps = np.linalg.norm(np.roll(ellipse, -1, 0) - ellipse, axis=1)
    np.testing.assert_allclose(length[1:], TURN * true_steps.cumsum()[:-1] / true_steps.sum(), atol=1e-6)


def test_an_arc_whose_ends_come_near_is_open():
    for degrees in (300, 330):
        method = HessianICA().fit(circle(np.radians(degrees) * np.arange(60) / 59))
        assert method.code_periods()[0] is None


def test_loops_are_ignored_if_that_is_asked_for():
    x, _ = turntable(60)
    method = HessianICA(loops="never", smooth=0.0).fit(x)
    assert set(method.code_periods()) == {None}
    assert not any("loop" in text for text in method.diagnosis_)


def test_more_codes_than_a_curve_has_are_linear():
    turn = TURN * np.arange(60) / 60
    method = HessianICA(latent_dim=2).fit(circle(turn))
    assert method.code_periods() == (None, None)
    assert any("latent_dim=1 gives its angle" in text for text in method.diagnosis_)
    assert HessianICA(latent_dim=1).fit(circle(turn)).code_periods() == (TURN,)


def test_many_noisy_points_are_averaged_along_the_curve():
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, TURN, 6000)
    x = np.pad(circle(turn), ((0, 0), (0, 8))) + 0.05 * rng.normal(size=(6000, 10))
    method = HessianICA().fit(x)
    assert any("3,000 landmarks" in text for text in method.diagnosis_)
    assert len(method.nodes_) < 1000
    assert angle_error(method.transform(x)[:, 0], turn) < 3


def test_a_saved_angle_is_the_same(tmp_path):
    x, _ = turntable(60)
    method = HessianICA().fit(x)
    method.save(tmp_path / "model")
    loaded = unweave.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(x), method.transform(x))
    assert loaded.code_periods() == (TURN,)
    assert method.set_params(loops="never").fit(x).code_periods()[0] is None, "a refit forgets the curve"


def test_points_are_projected_onto_the_nearest_segment():
    nodes = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    angles = TURN * np.arange(4) / 4
    angle, squared = project(nodes, angles, np.array([[0.5, -0.5], [0.0, 0.25], [2.0, 0.0]]))
    np.testing.assert_allclose(angle, TURN * np.array([0.125, 0.9375, 0.25]))
    np.testing.assert_allclose(squared, [0.25, 0, 1])


def test_a_turned_curve_has_its_zero_and_direction():
    curve = ClosedCurve(torch.from_numpy(circle(TURN * np.arange(12) / 12)), TURN * torch.arange(12).double() / 12)
    points = torch.from_numpy(circle(np.array([0.0, 1.0, 5.0])))
    turned = curve.turn(1.0, -1)(points)
    np.testing.assert_allclose(turned, (1.0 - curve(points)) % TURN, atol=1e-9)


def test_a_band_is_no_curve():
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, TURN, 400)
    for width, is_curve in ((0.0, True), (0.5, False)):
        x = circle(turn) * rng.uniform(1 - width, 1, (400, 1))
        assert (spread_of_order(x, find_neighbors(x, 10), turn) < 1.01) == is_curve


def test_even_steps_are_recognized():
    even, random = TURN * np.arange(90) / 90, np.sort(np.random.default_rng(0).uniform(0, TURN, 90))
    assert has_even_steps(circle(even) * [1.5, 1])
    assert not has_even_steps(circle(even) * [4, 1])
    assert not has_even_steps(circle(random))
