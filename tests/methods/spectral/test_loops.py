"""Loops of point clouds: which data have one, and a first angle along it."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from tests.turntable import angle_error
from unweave.methods.spectral import loops
from unweave.methods.spectral.loops import (
    Loop,
    choose_landmarks,
    find_loop,
    harmonic_angle,
    has_several_loops,
    largest_gap,
    smallest_connected,
    smooth_angle,
    summarize,
    to_full_turn,
    weighted_graph,
    wrap_angle,
)
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


def test_a_second_loop_counts_if_it_is_nearly_as_persistent():
    def several(persistence, second):
        return has_several_loops(Loop(np.zeros(3), persistence, second, 5))

    assert several(3.0, 2.6) and not several(3.0, 2.5) and several(10.0, 7.1) and not several(10.0, 7.0)


def test_the_largest_gap_is_an_arc_without_points():
    assert largest_gap(np.array([5.0, 0, 1])) == 4
    assert largest_gap(np.array([2.0, 1])) == pytest.approx(2 * np.pi - 1)


def test_angles_just_below_their_period_are_zero():
    angle = torch.tensor([-1.0, 0, 5, 6.0 - 1e-7, 6, 5.9], dtype=torch.float64)
    assert to_full_turn(angle, 6.0).tolist() == [5, 0, 5, 0, 0, 5.9]
    assert to_full_turn(torch.tensor([7.0])).item() == pytest.approx(7 - 2 * np.pi)


def test_landmarks_are_far_from_each_other_along_the_graph(monkeypatch):
    path = csr_matrix((np.ones(9), (np.arange(9), np.arange(1, 10))), shape=(10, 10))
    landmarks, distances = choose_landmarks((path + path.T).tocsr())
    assert landmarks[:3].tolist() in ([9, 0, 4], [9, 0, 5]) and sorted(landmarks) == list(range(10))
    assert distances[1].tolist() == list(range(10))
    monkeypatch.setattr(loops, "MAX_LANDMARKS", 3)
    assert len(choose_landmarks((path + path.T).tocsr())[0]) == 3


def test_the_graph_joins_each_point_with_its_neighbors_by_their_distance():
    points = np.array([[0.0], [1], [3], [3]])
    neighbors = np.array([[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1]])
    graph = weighted_graph(points, neighbors, 1).toarray()
    tiny = 1e-9
    np.testing.assert_allclose(graph, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, tiny], [0, 0, tiny, 0]], atol=1e-12)
    assert weighted_graph(points, neighbors, 2)[0, 2] == 3 and weighted_graph(points, neighbors, 2)[1, 3] == 2
    assert smallest_connected(neighbors) == 2 and smallest_connected(neighbors[:, :2]) == 0


def test_many_points_are_averaged_before_loops_are_searched():
    points = np.random.default_rng(0).normal(size=(401, 2))
    near = find_neighbors(points, 7)
    assert summarize(points[:400], near[:400])[0] is not None and len(summarize(points[:400], near)[0]) == 400
    centers, neighbors = summarize(points, near)
    assert centers.shape == (400, 2) and neighbors.shape == (400, 8)


def test_the_angle_that_changes_least_is_found_for_any_steps():
    """Weighted least squares on a triangle with a tail: the sum of steps around is kept, and spread by weights."""
    i, j = np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3])
    steps, weights = np.array([2.0, 2.0, -2.0, 0.5]), np.array([1.0, 2, 4, 1])
    angle = harmonic_angle(np.zeros(4), i, j, steps, weights)
    change = wrap_angle(angle[j] - angle[i])
    shares = 6.0 / (1 + 1 / 2 + 1 / 4) * np.array([1, 1 / 2, -1 / 4])  # of the turn, by inverse weights
    np.testing.assert_allclose(wrap_angle(steps + change)[:3], wrap_angle(shares), atol=1e-6)
    assert change[3] == pytest.approx(-0.5, abs=1e-6)


def test_three_neighborhoods_are_searched_and_one_of_averages(monkeypatch):
    sizes, real = [], loops.find_landmark_loops
    monkeypatch.setattr(loops, "find_landmark_loops", lambda graph, k: sizes.append(k) or real(graph, k))
    loop_of(circle(2 * np.pi * np.arange(100) / 100))
    assert sizes == [3, 4, 6], "1.5, 2 and 3 times the smallest that connects the circle"
    sizes.clear()
    loop_of(circle(2 * np.pi * np.arange(500) / 500))
    assert len(sizes) == 1
