"""Spectral methods on images and tables, and settings that cannot work."""

import numpy as np
import pytest
import torch

from tests.helpers import flat_sheet, swiss_roll
from unweave import InputError
from unweave.datasets import Faces, SquaresXC, SquaresXY
from unweave.methods import HessianICA, LaplacianICA, LinearICA
from unweave.methods.spectral import base
from unweave.metrics import mcc


def test_hessian_ica_unrolls_a_swiss_roll_and_encodes_new_points():
    x, z = swiss_roll(2200)
    codes = HessianICA(n_neighbors=12).fit(x[:2000]).transform(x)
    assert mcc(z[:2000], codes[:2000]) > 0.999
    assert mcc(z[2000:], codes[2000:]) > 0.999
    assert mcc(z, LinearICA().fit_transform(x)) < 0.75, "a linear map can give the height alone"


def test_hessian_ica_finds_position_in_images_of_squares():
    data = SquaresXY(points=1000, size=32, side=10).load()
    codes = HessianICA().fit(data).transform(data.render(data.sources))
    assert mcc(data.sources, codes) > 0.99


def test_automatic_blur_recovers_a_factor_that_hard_edges_hide():
    """On hard-edged images a linear map of HLLE has lost a factor; by default they are blurred, and it has both."""
    data = SquaresXC(points=500, size=32, side=10).load()
    sharp, automatic = (HessianICA(latent_dim=2, smooth=smooth).fit(data) for smooth in (0.0, "auto"))

    def explained(method):
        y = np.column_stack([method.embedding_.numpy(), np.ones(500)])
        z = data.sources.numpy()
        return 1 - (z - y @ np.linalg.lstsq(y, z, rcond=None)[0]).var(0) / z.var(0)

    assert explained(sharp).min() < 0.7
    assert explained(automatic).min() > 0.95
    assert mcc(data.sources, automatic.codes_) > 0.99
    assert automatic.smooth_ == 1.0
    assert any("blurred by 1 pixel." in text for text in automatic.diagnosis_)
    blurred = SquaresXC(points=500, size=32, side=10, blur=1.0).load()
    assert HessianICA().fit(blurred).smooth_ == 0, "smooth images need no blur"


def test_flat_data_with_an_exactly_singular_operator_are_solved():
    """Flat data make the Hessian operator exactly singular, which a sparse factorization alone does not survive."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    assert mcc(z, HessianICA().fit_transform(z @ np.random.default_rng(1).normal(size=(2, 6)))) > 0.99


def test_two_factors_of_real_faces_are_recovered(real_data):
    """3,000 images of a face generator, two directions of its latent space (Horan et al., 2021, Sec. 4)."""
    if not Faces().is_available():
        pytest.skip("faces-01.zip is not in UNWEAVE_DATA")
    data = Faces().load()
    linear, hessian = (mcc(data.c, m.fit_transform(data)) for m in (LinearICA(), HessianICA()))
    assert hessian > 0.97 > linear


def test_laplacian_ica_recovers_factors_of_similar_range_only():
    z = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    assert mcc(z, LaplacianICA(latent_dim=2, n_neighbors=12).fit(z).transform(z), correlation="spearman") > 0.95
    long = z * [6, 1]
    assert mcc(long, LaplacianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) < 0.8, (
        "sensitive to rescaling"
    )
    assert mcc(long, HessianICA(latent_dim=2, n_neighbors=12).fit(long).transform(long)) > 0.99


def test_repeated_rows_change_nothing():
    x, _ = swiss_roll(800)
    once = HessianICA(n_neighbors=12).fit(x)
    thrice = HessianICA(n_neighbors=12).fit(np.repeat(x, 3, axis=0))
    assert torch.equal(once.codes_, thrice.codes_)


def test_scales_and_repeats_do_not_matter():
    x, z = flat_sheet(900, 2)
    for scale in (1e-25, 1e19):
        assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit(scale * x).transform(scale * x)) > 0.99
    many = np.repeat(x[:300], 20, 0)
    method = HessianICA(latent_dim=2, n_neighbors=12).fit(many)
    assert len(method.points_) == 300
    assert any("5,700 observations repeat others" in text for text in method.diagnosis_)
    assert not any("landmarks" in text for text in method.diagnosis_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"samples": 0}, "samples=0"),
        ({"latent_dim": 9}, "latent_dim=9 is more than the data allow: n_features=4"),
        ({"latent_dim": 2, "n_neighbors": 5}, "at least 6"),
        ({"smooth": -1.0}, "smooth=-1"),
        ({"smooth": 1.0}, "rows of numbers"),
        ({"landmarks": -5}, "landmarks=-5"),
        ({"landmarks": "few"}, "landmarks='few'"),
        ({"on_disconnected": "ignore"}, "on_disconnected='ignore'"),
    ],
)
def test_settings_that_cannot_work_are_named(settings, text):
    with pytest.raises(InputError, match=text):
        HessianICA(**settings).fit(np.random.default_rng(0).uniform(size=(200, 4)))


def test_too_few_points_and_constant_data_are_errors():
    with pytest.raises(InputError, match="n_samples=5 is too few"):
        HessianICA(latent_dim=2).fit(np.random.default_rng(0).uniform(size=(5, 4)))
    with pytest.raises(InputError, match="constant"):
        HessianICA(latent_dim=2).fit(np.ones((50, 4)))
    with pytest.raises(InputError, match="NaN"):
        HessianICA(latent_dim=2).fit(np.full((50, 4), np.nan))


def test_constant_columns_are_ignored():
    x, z = flat_sheet(800, 2)
    padded = np.column_stack([x, np.full(800, 5.0)])
    assert mcc(z, HessianICA(latent_dim=2, n_neighbors=12).fit_transform(padded)) > 0.99


@pytest.mark.parametrize(
    ("d", "n_neighbors", "n", "k"), [(2, 30, 99, 10), (4, 30, 99, 12), (4, 11, 99, 11), (4, 30, 9, 8)]
)
def test_maps_for_new_points_have_few_neighbors_each(d, n_neighbors, n, k, monkeypatch):
    sizes = []

    class Maps:
        def __init__(self, points, codes, size, periods):
            sizes.append(size)

        def __call__(self, points):
            return points

    monkeypatch.setattr(base, "AffineMaps", Maps)
    method = HessianICA()
    method.latent_dim_, method.n_neighbors_, method.points_ = d, n_neighbors, torch.zeros(n, 5)
    method.codes_, method.periods_ = torch.zeros(n, d), [None] * d
    method._encode_points(torch.zeros(2, 5))
    method._encode_points(torch.zeros(2, 5))
    assert sizes == [k], "fitted once"


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, (3, 48)),
        ({"latent_dim": 2}, (6, 48)),
        ({"latent_dim": 6}, (28, 56)),
        ({"latent_dim": 2, "n_neighbors": 9}, (9, 9)),
    ],
)
def test_neighborhoods_up_to_forty_eight_points_are_tried(settings, sizes, monkeypatch):
    seen = {}

    def stop(points, rng, **arguments):
        seen.update(arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(base, "build_cloud", stop)
    x = np.random.default_rng(0).uniform(size=(80, 7))
    with pytest.raises(ZeroDivisionError):
        HessianICA(**settings).fit(np.concatenate([x, x[:3]]))
    assert seen["n_neighbors"] == sizes and seen["notes"] == ("3 observations repeat others.",)
    assert seen["size_name"] == "n_samples" and seen["on_disconnected"] == "error"
    with pytest.raises(ZeroDivisionError):
        HessianICA(**settings, landmarks=40).fit(x)
    assert seen["size_name"] == "landmarks" and seen["notes"] == ("40 landmarks are averages of 80 observations.",)
