"""Products of a loop with intervals: one angle, and linear codes besides."""

from functools import cache

import numpy as np
import pytest
import torch

import unweave
from tests.turntable import angle_error, photograph, random_object
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral.circular import orient_angles
from unweave.methods.spectral.out_of_sample import AffineMaps

TURN = 2 * np.pi


@cache
def cylinder(n=500, height=1.5, seed=0):
    rng = np.random.default_rng(seed)
    turn, h = rng.uniform(0, TURN, n), rng.uniform(-height, height, n)
    x = np.column_stack([np.cos(turn), np.sin(turn), h, np.zeros((n, 3))])
    return x, turn, h


@pytest.mark.parametrize("cls", [HessianICA, TangentICA])
def test_a_cylinder_has_an_angle_and_a_height(cls):
    x, turn, h = cylinder()
    method = cls().fit(x)
    assert method.code_periods() == (TURN, None)
    codes = method.transform(x)
    assert angle_error(codes[:, 0], turn) < 1
    assert abs(np.corrcoef(h, codes[:, 1])[0, 1]) > 0.99
    assert codes[0, 0] < 1e-9
    assert method.isometry_ > 0.95
    assert any("code 1 is an angle in radians, period 2 pi" in text for text in method.diagnosis_)


def test_the_angle_does_not_depend_on_the_height():
    """Angle + c * height has no second derivatives either: a high cylinder would be wound up like a screw."""
    x, turn, h = cylinder(800, 4.0)
    codes = HessianICA(latent_dim=2).fit_transform(x)
    error = np.angle(np.exp(1j * (codes[:, 0] - turn))) if angle_error(codes[:, 0], turn) < 5 else None
    if error is None or np.abs(error - np.median(error)).max() > 1:
        error = np.angle(np.exp(1j * (codes[:, 0] + turn)))
    error = np.angle(np.exp(1j * (error - np.median(error))))
    assert abs(np.polyfit(h, error, 1)[0]) < 0.01


def test_new_points_are_placed_across_the_cut():
    x, turn, _ = cylinder()
    new, new_turn, _ = cylinder(seed=1)
    method = HessianICA(latent_dim=2).fit(x)
    assert angle_error(method.transform(new)[:, 0], new_turn) < 1
    both = np.concatenate([method.transform(x)[:, 0], method.transform(new)[:, 0]])
    worst = np.abs(np.angle(np.exp(1j * np.subtract.outer(both, both))) - 0)
    far = np.abs(np.angle(np.exp(1j * np.subtract.outer(np.r_[turn, new_turn], np.r_[turn, new_turn]))))
    assert np.abs(worst - far).max() < 0.2, "no point is averaged to the other side of the circle"


def test_maps_average_on_the_circle():
    """Four dimensions: four maps are averaged, some from before the cut and some from after it."""
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, TURN, 400)
    points = torch.from_numpy(np.column_stack([np.cos(turn), np.sin(turn), 0.1 * rng.normal(size=(400, 3))]))
    codes = torch.column_stack([torch.from_numpy(turn), points[:, 2:]])
    found = AffineMaps(points, codes, 12, (TURN, None, None, None))(points)
    assert float(torch.from_numpy(np.angle(np.exp(1j * (found[:, 0].numpy() - turn)))).abs().max()) < 0.2
    assert 0 <= float(found[:, 0].min()) <= float(found[:, 0].max()) <= TURN


def test_a_saved_cylinder_is_the_same(tmp_path):
    x, _, _ = cylinder()
    method = HessianICA(latent_dim=2).fit(x)
    method.save(tmp_path / "model")
    loaded = unweave.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(x[:50]), method.transform(x[:50]))
    assert loaded.code_periods() == (TURN, None)


def with_hole(n, radius):
    x = np.random.default_rng(0).uniform(-1, 1, (4 * n, 2))
    return x[np.linalg.norm(x, axis=1) > radius][:n]


def test_a_sheet_with_a_hole_stays_linear_and_that_is_reported():
    method = HessianICA().fit(with_hole(600, 0.5))
    assert method.code_periods() == (None, None)
    assert any("lie flat, like a sheet with a hole" in text for text in method.diagnosis_)


def test_several_loops_are_reported():
    a, b = np.random.default_rng(0).uniform(0, TURN, (2, 1000))
    method = HessianICA(latent_dim=2).fit(np.column_stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)]))
    assert method.code_periods() == (None, None)
    assert any("several loops" in text for text in method.diagnosis_)


def test_the_number_of_codes_is_what_was_asked_for():
    x, _, _ = cylinder()
    for latent_dim in (1, 2, 3):
        assert HessianICA(latent_dim=latent_dim).fit_transform(x).shape == (500, latent_dim)
    assert HessianICA(latent_dim=3).fit(x).code_periods() == (None, None, None)
    assert LaplacianICA(latent_dim=2).fit(x).code_periods() == (None, None)


def test_sparse_views_under_changing_light_give_the_angle_alone():
    angles, lights = np.repeat(TURN * np.arange(36) / 36, 5), np.tile(np.linspace(-1, 1, 5), 36)
    x = photograph(random_object(1), angles, lights, size=24, rays=1)
    method = HessianICA(latent_dim=2).fit(x)
    assert method.code_periods() == (TURN, None)
    assert angle_error(method.transform(x)[:, 0], angles) < 10
    assert any("trust the angle alone" in text for text in method.diagnosis_)


def test_the_first_row_is_zero_and_rows_rise():
    angles = np.array([2.0, 2.5, 6.0, 0.3, 1.0])
    assert orient_angles(angles) == (2.0, 1)
    assert orient_angles(-angles % TURN) == ((-2.0) % TURN, -1)
