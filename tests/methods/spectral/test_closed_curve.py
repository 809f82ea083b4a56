"""Closed curves: the angle of turntables and others, its zero, direction and speed."""

from functools import cache

import numpy as np
import pytest
import torch

import unweave
from tests.turntable import angle_error, photograph, random_object, symmetric_object
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral import closed_curve
from unweave.methods.spectral.closed_curve import (
    ClosedCurve,
    _validation_error,
    average_blocks,
    fit_closed_curve,
    fit_nodes,
    follows_rows,
    has_even_steps,
    node_angles,
    project,
    rescale_angle,
    spread_of_order,
)
from unweave.methods.spectral.loops import Loop
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


# Formulas -------------------------------------------------------------------------------------------------------------


def test_blocks_of_points_are_averaged_in_the_order_of_their_angles():
    angle = np.array([0.3, 0.1, 0.2, 0.5, 0.4, 0.6, 0.7])
    points = np.stack([angle, 10 * angle], 1)
    np.testing.assert_allclose(average_blocks(points, angle, 1), points[np.argsort(angle)])
    np.testing.assert_allclose(average_blocks(points, angle, 2)[:, 0], [0.2, 0.45, 0.65], atol=1e-12)
    np.testing.assert_allclose(average_blocks(points, angle, 9)[:, 1], [2, 4.5, 6.5], err_msg="three at least")
    assert len(average_blocks(points[:2], angle[:2], 2)) == 2


def test_angles_of_nodes_are_arc_length_or_even_steps():
    square = np.array([[0.0, 0], [3, 0], [3, 1], [0, 1]])
    np.testing.assert_allclose(node_angles(square, even=False), TURN * np.array([0, 3, 4, 7]) / 8)
    np.testing.assert_allclose(node_angles(square, even=True), TURN * np.arange(4) / 4)


def test_rows_in_order_go_around_the_circle_in_either_direction():
    around = TURN * np.arange(40) / 40
    for start in (0, 17):
        for angle in (np.roll(around, start), np.roll(around[::-1], start), np.roll(around, start) % 3.0001 * 2):
            assert follows_rows(angle)
    assert not follows_rows(np.random.default_rng(0).permutation(around))
    third = np.concatenate([around[::4], around[1::4], around[2::4], around[3::4]])
    assert not follows_rows(third), "four places are skipped"
    assert follows_rows(np.concatenate([around[::3], around[1::3], around[2::3]]))
    swapped = TURN * np.arange(80) / 80
    swapped[[4, 20]] = swapped[[20, 4]]
    assert follows_rows(swapped), "four of 79 steps do not follow"
    swapped[[10, 30]] = swapped[[30, 10]]
    assert not follows_rows(swapped)


def test_the_spread_of_an_order_is_one_on_a_curve_and_large_elsewhere():
    points = circle(TURN * np.arange(50) / 50)
    neighbors = find_neighbors(points, 10)
    angle = TURN * np.arange(50) / 50
    assert spread_of_order(points, neighbors, angle) == pytest.approx(1)
    assert spread_of_order(points, neighbors, (3 * angle) % TURN + 0.001 * angle) > 2
    eight = circle(TURN * np.array([0, 0.1, 0.25, 0.3, 0.5, 0.55, 0.8, 0.9]))
    order = np.arange(8) * 0.5
    expected = spread_by_distances(eight, order, count=4)
    assert spread_of_order(eight, find_neighbors(eight, 7), order) == pytest.approx(expected)
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, TURN, 300)
    band = np.column_stack([circle(turn), rng.uniform(-0.3, 0.3, 300)])
    by_hand = spread_by_distances(band, turn)
    assert spread_of_order(band, find_neighbors(band, 10), turn) == pytest.approx(by_hand, rel=0.02)


def spread_by_distances(points, angle, count=6):
    """The six nearest points along the polygon through all points, and the six nearest points."""
    order = np.argsort(angle)
    ordered = points[order]
    steps = np.linalg.norm(np.roll(ordered, -1, 0) - ordered, axis=1)
    position = np.cumsum(steps) - steps
    apart = np.abs(position[:, None] - position)
    apart = np.minimum(apart, steps.sum() - apart)
    direct = np.linalg.norm(ordered[:, None] - ordered, axis=2)
    along = np.take_along_axis(direct, np.argsort(apart, 1, kind="stable")[:, 1 : count + 1], 1)
    return along.mean() / np.sort(direct, 1)[:, 1 : count + 1].mean()


def test_without_noise_points_are_nodes_and_with_noise_averages_of_several():
    angle = TURN * np.arange(480) / 480
    rng = np.random.default_rng(0)
    assert len(fit_nodes(circle(angle), angle)) == 480
    noisy = fit_nodes(circle(angle) + 0.05 * rng.normal(size=(480, 2)), angle)
    assert 60 <= len(noisy) <= 240 and np.abs(np.linalg.norm(noisy, axis=1) - 1).mean() < 0.1
    few = circle(angle[::4])[:119]
    assert len(fit_nodes(few + 0.05 * rng.normal(size=few.shape), angle[::4][:119])) == 119, "sixty nodes at least"


def test_held_out_points_are_predicted_between_blocks():
    """On a polygon with every second point in the middle of its neighbors there is no error but at the corners."""
    angle = np.linspace(0, TURN, 8, endpoint=False)
    points = np.array([[0.0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [1, 2], [0, 2], [0, 1]])
    assert _validation_error(points, angle, 1) == pytest.approx(4 * 0.5), "each corner is cut by (1/2, 1/2)"
    assert _validation_error(3 * points, angle, 1) == pytest.approx(9 * 4 * 0.5)


def test_a_wide_loop_is_rescaled_by_averages_over_its_blocks():
    turn = TURN * np.arange(720) / 720
    warped = (turn + 0.4 * np.sin(turn)) % TURN
    wide = np.column_stack([circle(turn), np.tile([-0.5, 0.5], 360)])
    found = rescale_angle(wide, warped)
    assert np.abs(np.angle(np.exp(1j * (found - found[0] - turn)))).max() < 0.05
    assert (found >= 0).all() and (found < TURN).all()


def loop_along(angle, persistence=3.0, second=1.0):
    return Loop(angle, persistence, second, 9)


@pytest.mark.parametrize(
    ("n", "spread", "persistence", "fit"),
    [
        (150, 1.05, 3.0, "certain"),
        (150, 1.07, 3.0, "doubtful"),
        (150, 1.09, 4.1, "certain"),
        (150, 1.09, 4.0, "doubtful"),
        (150, 1.11, 4.1, "doubtful"),
        (150, 1.13, 9.0, None),
        (152, 1.19, 4.1, "certain"),
        (152, 1.21, 4.1, "doubtful"),
        (152, 1.27, 4.1, "doubtful"),
        (152, 1.29, 9.0, None),
    ],
)
def test_a_curve_is_certain_where_its_order_spreads_little(n, spread, persistence, fit, monkeypatch):
    angle = TURN * np.arange(n) / n
    points = circle(angle)
    monkeypatch.setattr(closed_curve, "spread_of_order", lambda *args: spread)
    found = fit_closed_curve(points, find_neighbors(points, 12), loop_along(angle, persistence))
    assert found is None if fit is None else found is not None and found.certain == (fit == "certain")


def test_open_curves_and_several_loops_are_no_closed_curve():
    for gap, is_closed in ((2.4, True), (2.6, False)):
        angle = TURN * np.arange(100) / (99 + gap)
        points = circle(angle)
        found = fit_closed_curve(points, find_neighbors(points, 12), loop_along(angle))
        assert (found is not None) == is_closed
    angle = TURN * np.arange(100) / 100
    points = circle(angle)
    neighbors = find_neighbors(points, 12)
    assert fit_closed_curve(points, neighbors, loop_along(angle, 3.0, 2.9)) is None
    found = fit_closed_curve(points, neighbors, loop_along(angle))
    assert found is not None and found.even and found.difference < 1e-6


@pytest.mark.parametrize("shift", [np.sin, lambda turn: 1 - np.cos(turn)])
def test_steps_or_arc_length_are_taken_and_their_difference_is_reported(shift):
    angle = TURN * (np.arange(120) + 8 * shift(TURN * np.arange(120) / 120)) / 120
    points = circle(angle)
    neighbors, steps = find_neighbors(points, 12), TURN * np.arange(120) / 120
    for even, expected in ((True, steps), (False, angle)):
        found = fit_closed_curve(points, neighbors, loop_along(angle), even=even)
        assert found is not None and found.even == even
        np.testing.assert_allclose(found.curve(torch.from_numpy(points)), expected, atol=0.01)
        gap = np.abs(angle - steps - np.median(angle - steps))
        assert found.difference == pytest.approx(np.median(gap), abs=0.01)


def polygon(steps):
    """A closed polygon with these steps, along a large circle."""
    return circle(TURN * np.cumsum(steps) / np.sum(steps))


def test_limits_of_even_steps():
    """From step to step they may vary by a factor of 1.42, slowly by 2.5; in a sequence by 2.46, and slowly by 8."""
    turns = TURN * np.arange(108) / 108
    for in_order, rough, slow in ((False, np.exp(0.35), 2.5), (True, np.exp(0.9), 8.0)):
        for share, is_even in ((0.97, True), (1.03, False)):
            alternating = np.where(np.arange(100) % 2, rough**share if share < 1 else rough * share, 1.0)
            assert has_even_steps(polygon(alternating), in_order=in_order) == is_even
            waves = np.exp(0.5 * np.log(slow * share**3) * np.cos(turns))
            assert has_even_steps(polygon(waves), in_order=in_order) == is_even


def test_a_single_angle_depends_on_nothing_and_is_not_assessed_as_an_embedding():
    method = HessianICA().fit(circle(TURN * np.arange(90) / 90))
    assert method.periods_ == [TURN] and method.latent_dim_ == 1 and method.codes_.shape == (90, 1)
    assert (method.averaged_isometry_, method.dependence_, method.independence_p_value_) == (0.0, 0.0, 1.0)
    assert method.eigenvalues_ == method.kurtosis_ == method.kurtosis_error_ == [] and method.eigengap_ == np.inf
    assert method.searched_ == {} and method.dimension_ == {} and method.recovered_ and not method.straightened_
    assert method.isometry_ > 0.99
    np.testing.assert_allclose(method.embedding_, np.column_stack([np.cos(method.codes_), np.sin(method.codes_)]))
