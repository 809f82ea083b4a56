"""The diagnosis in sentences."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.helpers import swiss_roll
from unweave.methods import HessianICA, LaplacianICA
from unweave.metrics import mcc


def test_a_single_gaussian_factor_is_not_reported():
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.normal(size=1500), rng.uniform(-2, 2, 1500)])
    method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert not any("Gaussian" in text for text in method.diagnosis_)
    assert mcc(z, method.codes_) > 0.97


def test_few_points_are_reported():
    method = HessianICA(latent_dim=1, n_neighbors=6).fit(np.linspace(0, 1, 20)[:, None] ** [[1, 1.0]])
    assert any("20 points are too few to assess" in text for text in method.diagnosis_)


def test_gaussian_factors_are_reported_with_their_kurtosis():
    z = np.random.default_rng(0).normal(size=(1500, 2))
    with pytest.warns(ConvergenceWarning, match=r"excess kurtosis .* \(0 is Gaussian\)"):
        method = HessianICA(latent_dim=2, n_neighbors=14).fit(z)
    assert any("close to Gaussian" in text and "ICA cannot fix its rotation" in text for text in method.diagnosis_)


def test_a_lack_of_isometry_is_reported():
    x = np.random.default_rng(0).uniform(size=(600, 8))
    method = HessianICA(latent_dim=2, n_neighbors=20).fit(x)
    assert method.isometry_ < 0.7
    assert any("does not keep near distances" in text for text in method.diagnosis_)


def test_noise_is_no_lack_of_isometry():
    """Near distances are noise, which says nothing about codes whose MCC is high."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (700, 2))
    x = np.pad(z, ((0, 0), (0, 8))) + 0.05 * rng.normal(size=(700, 10))
    method = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, method.codes_) > 0.99
    assert method.isometry_ < 0.8
    assert any("keeps near distances, but for noise" in text for text in method.diagnosis_)


def test_a_factor_that_is_lost_is_a_lack_of_isometry():
    """A roll with too few points: codes repeat a factor, and the score is not even low."""
    x, z = swiss_roll(150)
    method = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, method.codes_) < 0.8
    assert method.isometry_ > 0.6
    assert any("does not keep near distances" in text for text in method.diagnosis_)


def test_laplacian_eigenmaps_need_not_keep_distances():
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    method = LaplacianICA(latent_dim=2, n_neighbors=12).fit(z)
    assert not any("does not keep near distances" in text for text in method.diagnosis_)
    assert any("need not keep near distances" in text for text in method.diagnosis_)


def test_few_rows_are_not_reported_as_gaussian():
    for n, reported in ((150, False), (1500, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z = np.random.default_rng(3).normal(size=(n, 2))
            method = HessianICA(latent_dim=2, n_neighbors=14, loops="never").fit(z)
        assert any("close to Gaussian" in text for text in method.diagnosis_) == reported


def test_a_coarse_grid_is_reported():
    z = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    on_grid = HessianICA(latent_dim=2, n_neighbors=12).fit(z + 1e-9 * np.random.default_rng(0).normal(size=z.shape))
    assert any("coarse grid" in text for text in on_grid.diagnosis_)
    spread = HessianICA(latent_dim=2, n_neighbors=12).fit(np.random.default_rng(0).uniform(size=(400, 2)))
    assert not any("coarse grid" in text for text in spread.diagnosis_)
