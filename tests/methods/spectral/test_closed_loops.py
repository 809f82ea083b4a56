"""Closed loops: recognized, not invented, and given as angles."""

import numpy as np
import pytest

import unweave
from tests.turntable import photograph, random_object
from unweave.methods import HessianICA
from unweave.metrics import angle_error, mcc, prepared

TURN = 2 * np.pi


def embed(points, dims=20, seed=0):
    """Rotate points (n, k) into more dimensions."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(dims, points.shape[1])))[0]
    return points @ basis.T


def circle(angle):
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def truth(angle, method):
    return prepared(np.rad2deg(angle)[:, None], kinds=("circular", 360), code_periods=method.code_periods())


@pytest.mark.parametrize("views", [36, 72])
@pytest.mark.parametrize("seed", [11, 12])
def test_a_turntable_in_order_gives_angle_and_direction(seed, views):
    angle = np.arange(views) * TURN / views
    x = photograph(random_object(seed), angle, size=24, rays=1)
    method = HessianICA(latent_dim="auto").fit(x)
    z = method.transform(x)
    assert z.shape == (views, 1) and method.code_periods() == (TURN,)
    error = np.angle(np.exp(1j * (z[:, 0] - angle)))
    assert np.rad2deg(np.median(np.abs(error))) < 5
    assert any("closed loop" in text for text in method.diagnosis_)


def test_shuffled_views_and_uneven_angles_are_recovered_up_to_offset_and_direction():
    rng = np.random.default_rng(0)
    angle = rng.permutation(np.arange(90) * TURN / 90)
    x = photograph(random_object(13), angle, size=24, rays=1)
    method = HessianICA(latent_dim="auto").fit(x)
    assert angle_error(truth(angle, method), method.transform(x)) < 5
    assert mcc(truth(angle, method), method.transform(x)) > 0.99
    uneven = np.sort(rng.uniform(0, TURN, 200))
    x = embed(circle(uneven))
    method = HessianICA(latent_dim="auto").fit(x)
    assert angle_error(truth(uneven, method), method.transform(x)) < 5


@pytest.mark.parametrize("arc", [180, 300])
def test_an_open_arc_is_no_loop(arc):
    x = embed(circle(np.deg2rad(np.linspace(0, arc, 200))))
    method = HessianICA(latent_dim="auto").fit(x)
    assert set(method.code_periods()) == {None}


def test_a_sheet_is_no_loop():
    x = embed(np.random.default_rng(0).uniform(size=(400, 2)))
    assert HessianICA(latent_dim=2).fit(x).code_periods() == (None, None)


def test_new_points_are_interpolated_along_the_circle(tmp_path):
    angle = np.linspace(0, TURN, 100, endpoint=False)
    method = HessianICA(latent_dim="auto").fit(embed(circle(angle)))
    between = angle + TURN / 200
    z = method.transform(embed(circle(between)))
    assert angle_error(truth(between, method), z) < 2
    assert np.rad2deg(np.abs(np.angle(np.exp(1j * (z[:, 0] - between))))).max() < 10, "not across the cut"
    method.save(tmp_path / "m")
    loaded = unweave.load(tmp_path / "m")
    assert loaded.code_periods() == (TURN,)
    np.testing.assert_allclose(loaded.transform(embed(circle(between))), z)


def test_loops_can_be_ignored():
    x = embed(circle(np.linspace(0, TURN, 100, endpoint=False)))
    assert HessianICA(latent_dim=2, loops="never").fit(x).code_periods() == (None, None)


def test_near_distances_are_measured_around_the_circle(tmp_path):
    angle = np.linspace(0, TURN, 120, endpoint=False)
    np.save(tmp_path / "x.npy", embed(circle(angle)))
    run = unweave.Run(unweave.OwnData(path=tmp_path / "x.npy"), HessianICA(latent_dim="auto"))
    (row,) = unweave.execute([run], tmp_path / "runs", metrics=["local-isometry"]).to_dict("records")
    assert row["local-isometry"] > 0.99
