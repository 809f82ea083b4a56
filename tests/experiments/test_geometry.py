"""Geometry of samples with known answers."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from unweave.experiments.geometry import (
    count_parts,
    estimate_dimension,
    has_loop,
    local_noise,
    measure_gaussianity,
    neighboring_blocks,
)
from unweave.methods.spectral.neighbors import find_neighbors


def dimension(points: np.ndarray):
    return estimate_dimension(points, find_neighbors(points, 20), np.random.default_rng(0))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [150, 1_000])
def test_the_interval_of_the_dimension_holds_that_of_a_sheet(d, n):
    rng = np.random.default_rng(d)
    sheet = rng.uniform(size=(n, d)) @ np.linalg.qr(rng.normal(size=(10, 10)))[0][:d]
    interval = dimension(sheet)
    assert interval.low <= d <= interval.high
    assert interval.high - interval.low < 0.6 * d
    assert interval.estimate == pytest.approx(d, rel=0.15)


def test_equal_spacing_and_curvature_do_not_raise_the_dimension():
    angle = np.arange(59) / 59 * 2 * np.pi
    circle = dimension(np.c_[np.cos(angle), np.sin(angle)])
    assert circle.low == 1 and circle.estimate < 1.3
    assert circle.high > circle.estimate, "59 points are not certain"
    normal = np.random.default_rng(0).normal(size=(1_000, 3))
    sphere = dimension(normal / np.linalg.norm(normal, axis=1, keepdims=True))
    assert sphere.low <= 2 <= sphere.high


def test_noise_in_many_dimensions_is_at_the_limit():
    noise = dimension(np.random.default_rng(0).normal(size=(500, 50)))
    assert noise.text() == "20 or more"
    few = np.random.default_rng(0).normal(size=(10, 3))
    assert estimate_dimension(few, find_neighbors(few, 9), np.random.default_rng(0)) is None


def test_blocks_hold_every_point_once_and_points_near_each_other():
    points = np.random.default_rng(0).uniform(size=(500, 2))
    blocks = neighboring_blocks(points)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(500))
    assert np.mean([np.ptp(points[block], axis=0).max() for block in blocks]) < 0.4


def test_parts_are_counted_and_outliers_are_not_parts():
    rng = np.random.default_rng(0)
    centers = 100 * np.array([[0, 0], [1, 0], [0, 1]])
    clusters = np.concatenate([center + rng.normal(size=(60, 2)) for center in centers])
    parts = count_parts(find_neighbors(clusters, 15))
    assert (parts.number, parts.outliers) == (3, 0) and parts.largest == pytest.approx(1 / 3)
    assert count_parts(find_neighbors(rng.uniform(size=(200, 2)), 15)).number == 1


def test_noise_is_the_variance_outside_of_the_tangent_space():
    rng = np.random.default_rng(0)
    flat = np.c_[rng.uniform(size=(800, 2)), np.zeros((800, 4))]
    near = find_neighbors(flat, 20)
    assert local_noise(flat, near) == (2, pytest.approx(0, abs=1e-9))
    full = rng.uniform(size=(800, 3))
    assert local_noise(full, find_neighbors(full, 20)) == (3, 0), "no direction of three is noise"
    thick = np.c_[rng.uniform(size=(800, 2)), 0.03 * rng.uniform(size=(800, 1))]  # noise across a sheet
    near = find_neighbors(thick, 20)
    d, noise = local_noise(thick, near)
    local = thick[near] - thick[near].mean(1, keepdims=True)
    across = np.median((local[:, :, 2] ** 2).sum(1) / (local**2).sum((1, 2)))
    assert d == 2 and noise == pytest.approx(across, rel=0.15) and noise > 0.01


def test_gaussian_components_are_recognized():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 4))
    gaussian = measure_gaussianity(rng.normal(size=(1_000, 4)) @ mixing, 4)
    assert (gaussian.components, gaussian.gaussian) == (4, 4)
    uniform = measure_gaussianity(rng.uniform(size=(1_000, 4)) @ mixing, 4)
    assert uniform.gaussian == 0 and max(uniform.kurtosis) < -0.8
    mixed = np.c_[rng.laplace(size=(2_000, 2)), rng.normal(size=(2_000, 2))]
    assert measure_gaussianity(mixed @ mixing, 4).gaussian == 2
    assert measure_gaussianity(rng.normal(size=(100, 4)), 4) is None


def test_a_loop_is_examined_where_it_can_be(monkeypatch):
    points = np.random.default_rng(0).normal(size=(50, 2))
    near = find_neighbors(points, 10)
    name = "unweave.methods.spectral.loops"
    monkeypatch.setitem(sys.modules, name, None)  # as if the module did not exist
    assert has_loop(points, near) is None
    for answer in (None, "a loop"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(find_loop=lambda x, k, answer=answer: answer))
        assert has_loop(points, near) is (answer is not None)
