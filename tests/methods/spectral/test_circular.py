"""Products of a loop with intervals: one angle, and linear codes besides."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import unweave
from tests.turntable import angle_error, photograph, random_object
from unweave.methods import HessianICA, LaplacianICA, TangentICA
from unweave.methods.spectral import circular
from unweave.methods.spectral.circular import (
    AngleSearch,
    circular_isometry,
    circular_steps,
    orient_angles,
    remove_shear,
    straighten_angle,
)
from unweave.methods.spectral.isometry import ColumnChoice, closest_pairs
from unweave.methods.spectral.loops import Loop
from unweave.methods.spectral.out_of_sample import AffineMaps
from unweave.methods.spectral.point_cloud import Embedding, build_cloud

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


# The choice between an angle and linear codes, with given isometries --------------------------------------------------


def embedding(d, score):
    return Embedding(9, d, np.zeros((5, d)), np.zeros(d), ColumnChoice((0,), score), {})


def chosen_dimension(monkeypatch, flat, around, chosen, persistence=3.0, dimensions=(1, 2, 3), features=4, most=48):
    """The dimension of the embedding with an angle that is chosen; None for linear codes. Isometries by dimension."""
    monkeypatch.setattr(AngleSearch, "_best_flat", lambda self, d: embedding(d, flat[d]))
    monkeypatch.setattr(AngleSearch, "_best_circular", lambda self, d: embedding(d, around[d]))
    cloud = SimpleNamespace(neighbors=np.zeros((5, most + 1)), points=np.zeros((5, features)))
    search: Any = SimpleNamespace(cloud=cloud)
    unused: Any = None
    loop = Loop(np.zeros(5), persistence, 1.0, 9)
    found = AngleSearch(search, loop, unused).choose(embedding(chosen, flat[chosen]), dimensions)
    return found and found.d


@pytest.mark.parametrize(
    ("flat", "around", "chosen", "persistence", "found"),
    [
        ({1: 0.3, 2: 0.5, 3: 0.9}, {2: 0.95, 3: 0.99}, 3, 3.0, 2),
        ({1: 0.3, 2: 0.9, 3: 0.9}, {2: 0.94, 3: 0.94}, 3, 3.0, None),
        ({1: 0.3, 2: 0.9, 3: 0.9}, {2: 0.96, 3: 0.5}, 3, 3.0, 2),
        ({1: 0.3, 2: 0.5, 3: 0.5}, {2: 0.84, 3: 0.86}, 3, 3.0, 3),
        ({1: 0.3, 2: 0.5, 3: 0.97}, {2: 0.96, 3: 0.5}, 3, 3.0, 2),
        ({1: 0.3, 2: 0.5, 3: 0.99}, {2: 0.96, 3: 0.5}, 3, 3.0, None),
        ({1: 0.95, 2: 0.5, 3: 0.5}, {2: 0.97, 3: 0.97}, 3, 3.0, None),
        ({1: 0.3, 2: 0.5, 3: 0.6}, {2: 0.41, 3: 0.51}, 3, 4.1, 2),
        ({1: 0.3, 2: 0.5, 3: 0.6}, {2: 0.39, 3: 0.51}, 3, 4.1, 3),
        ({1: 0.3, 2: 0.5, 3: 0.6}, {2: 0.41, 3: 0.51}, 3, 4.0, None),
        ({1: 0.3, 2: 0.5, 3: 0.89}, {2: 0.41, 3: 0.5}, 3, 4.1, 2),
        ({1: 0.3, 2: 0.5, 3: 0.9}, {2: 0.41, 3: 0.5}, 3, 4.1, None),
    ],
)
def test_an_angle_is_taken_where_it_keeps_distances_better(flat, around, chosen, persistence, found, monkeypatch):
    assert chosen_dimension(monkeypatch, flat, around, chosen, persistence) == found


def test_an_angle_needs_neighbors_and_features_for_its_dimensions(monkeypatch):
    flat, around = {1: 0.1, 2: 0.1, 3: 0.1}, {2: 0.1, 3: 0.95}
    assert chosen_dimension(monkeypatch, flat, around, 2) == 3
    assert chosen_dimension(monkeypatch, flat, around, 2, features=2) is None
    assert chosen_dimension(monkeypatch, flat, around, 2, most=10) == 3, "ten neighbors for three dimensions"
    assert chosen_dimension(monkeypatch, flat, around, 2, most=9) is None


@pytest.mark.parametrize(("n_neighbors", "sizes"), [("auto", [6, 9]), (5, [6]), (7, [7])])
def test_the_best_size_with_an_angle_is_searched(n_neighbors, sizes, monkeypatch):
    seen = []

    def embed(cloud, angle, y, values, k, d):
        seen.append(k)
        return embedding(d, k / 100)

    monkeypatch.setattr(circular, "embed_with_angle", embed)
    search: Any = SimpleNamespace(cloud=None, n_neighbors=n_neighbors, connected_sizes=lambda d: [5, 6, 9])
    found = AngleSearch(search, Loop(np.zeros(5), 3.0, 1.0, 9), lambda cloud, d, k: (None, None))._best_circular(2)
    assert seen == sizes and found.choice.score == sizes[-1] / 100


def test_isometry_of_an_angle_is_measured_the_short_way_around():
    angle = np.linspace(0, TURN, 50, endpoint=False)
    pairs = closest_pairs(np.stack([np.cos(angle), np.sin(angle)], 1), 0.1)
    assert circular_isometry((angle + 3) % TURN, pairs) > 0.99
    np.testing.assert_allclose(np.abs(circular_steps(angle, pairs)), 2 * np.arcsin(pairs.dx / 2))


def test_a_screw_is_straightened_to_an_angle():
    x, turn, h = cylinder()
    cloud = build_cloud(torch.from_numpy(x), np.random.default_rng(0), n_neighbors=(6, 12))
    found = remove_shear((turn + 0.7 * h) % TURN, h[:, None], cloud)
    assert np.abs(np.angle(np.exp(1j * (found - turn)))).max() < 0.02
    assert (found >= 0).all() and (found < TURN).all()
    wavy = (turn + 0.2 * np.sin(turn)) % TURN
    straight = straighten_angle(cloud, wavy, h[:, None] / h.std(), 12)
    difference = np.angle(np.exp(1j * (straight - turn)))
    assert np.abs(difference - np.median(difference)).max() < 0.05
