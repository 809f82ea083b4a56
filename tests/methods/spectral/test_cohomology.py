"""Persistent cohomology: loops of finite metric spaces whose answer is known."""

import numpy as np
import pytest

from unweave.methods.spectral.cohomology import persistent_loops


def ring(m):
    """Distances along a circle of length m between m points, (m, m)."""
    steps = np.abs(np.arange(m)[:, None] - np.arange(m)).astype(float)
    return np.minimum(steps, m - steps)


@pytest.mark.parametrize("m", [9, 24, 60])
def test_a_circle_has_one_loop_from_its_step_to_a_third_of_its_length(m):
    """A loop is filled by triangles as soon as their sides span a third of it (Adamaszek and Adams, 2017)."""
    loops = persistent_loops(ring(m))
    assert len([loop for loop in loops if loop.persistence > 1]) == 1
    assert (loops[0].birth, loops[0].death) == (1, m / 3)


def test_the_cocycle_counts_turns():
    loop = persistent_loops(ring(30))[0]
    value = np.zeros((30, 30))
    value[loop.i, loop.j] = loop.value
    value -= value.T
    around = sum(value[i, (i + 1) % 30] for i in range(30))
    there_and_back = sum(value[i, i + 1] for i in range(10)) + sum(value[i + 1, i] for i in range(10))
    assert abs(around) == 1
    assert there_and_back == 0


def test_the_cocycle_is_closed_while_the_loop_lives():
    """Its sum around every triangle of short sides is zero, also as integers."""
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 2 * np.pi, 40)
    points = np.stack([np.cos(turn), np.sin(turn)], 1) * rng.uniform(0.8, 1.2, (40, 1))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    loop = persistent_loops(distances)[0]
    value = np.zeros((40, 40))
    value[loop.i, loop.j] = loop.value
    value -= value.T
    near = distances < loop.death
    i, j, k = np.nonzero(near[:, :, None] & near[None] & near[:, None, :])
    assert len(i) > 1000
    assert not (value[i, j] + value[j, k] + value[k, i]).any()


def test_two_circles_that_touch_have_two_loops():
    m = 24
    joined = np.zeros((2 * m - 1, 2 * m - 1))
    joined[:m, :m] = joined[m - 1 :, m - 1 :] = ring(m)
    joined[: m - 1, m:] = ring(m)[:-1, [-1]] + ring(m)[[0], 1:]
    joined[m:, : m - 1] = joined[: m - 1, m:].T
    assert [round(loop.persistence, 6) for loop in persistent_loops(joined)[:2]] == [8, 8]
    assert not [loop for loop in persistent_loops(joined)[2:] if loop.persistence > 1]


def test_a_line_and_a_grid_have_no_loops():
    line = np.abs(np.arange(30.0)[:, None] - np.arange(30))
    assert not persistent_loops(line)
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), -1).reshape(-1, 2)
    assert all(loop.persistence < 1.5 for loop in persistent_loops(np.linalg.norm(grid[:, None] - grid, axis=2)))
