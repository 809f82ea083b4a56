"""Loops of point clouds: which data have one, and a first angle along it."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.turntable import angle_error
from unweave.methods.spectral.loops import find_loop, has_several_loops, largest_gap, smooth_angle, wrap_angle
from unweave.methods.spectral.neighbors import find_neighbors


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def loop_of(points):
    return find_loop(points, find_neighbors(points, min(40, len(points) - 1)))


@pytest.mark.parametrize("n", [24, 100, 1000])
def test_a_closed_curve_is_a_loop_and_an_open_one_is_none(n):
    share = np.arange(n) / n
    loop = loop_of(circle(2 * np.pi * share) * [3, 1])
    assert loop.persistence > 5
    assert loop.second == 1
    for open_curve in (circle(np.pi * share), circle(np.radians(300) * share), np.stack([share, share**2], 1)):
        assert loop_of(open_curve) is None


def test_the_angle_follows_the_loop():
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 2 * np.pi, 600)
    cylinder = np.column_stack([circle(turn), rng.uniform(-0.5, 0.5, 600)])
    loop = loop_of(cylinder)
    assert angle_error(loop.angle, turn) < 10
    assert largest_gap(loop.angle) < 0.3


def test_sheets_have_no_persistent_loop():
    rng = np.random.default_rng(0)
    for points in (rng.uniform(size=(1000, 2)), rng.uniform(size=(1000, 3)), rng.normal(size=(1000, 5))):
        loop = loop_of(points)
        assert loop is None or loop.persistence < 2.5


def test_two_loops_are_counted():
    turn = np.linspace(0, 2 * np.pi, 60)[:-1]
    eight = np.concatenate([circle(turn) - [1, 0], -circle(turn[1:]) + [1, 0]])
    assert has_several_loops(loop_of(eight))
    assert not has_several_loops(loop_of(circle(turn)))


def test_points_that_no_neighborhood_connects_have_no_loop():
    turn = np.linspace(0, 2 * np.pi, 60)[:-1]
    assert loop_of(np.concatenate([circle(turn), 100 + circle(turn)])) is None


def test_angles_along_a_chain_are_proportional_to_its_steps():
    steps = np.random.default_rng(0).uniform(0.2, 1.0, 30)
    i = np.arange(30)
    chain = csr_matrix((steps, (i, (i + 1) % 30)), shape=(30, 30))
    angle = smooth_angle(2 * np.pi * i / 30, (chain + chain.T).tocsr())
    expected = 2 * np.pi * steps / steps.sum()
    np.testing.assert_allclose(wrap_angle(np.roll(angle, -1) - angle), expected, atol=1e-6)


def test_angles_are_wrapped_to_half_a_turn():
    angles = np.array([0.0, 3.5, -3.5, 7.0])
    np.testing.assert_allclose(wrap_angle(angles), [0, 3.5 - 2 * np.pi, 2 * np.pi - 3.5, 7 - 2 * np.pi])
