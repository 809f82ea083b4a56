"""The diagnosis in sentences."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unweave.methods import HessianICA
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


def test_a_coarse_grid_is_reported():
    z = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    on_grid = HessianICA(latent_dim=2, n_neighbors=12).fit(z + 1e-9 * np.random.default_rng(0).normal(size=z.shape))
    assert any("coarse grid" in text for text in on_grid.diagnosis_)
    spread = HessianICA(latent_dim=2, n_neighbors=12).fit(np.random.default_rng(0).uniform(size=(400, 2)))
    assert not any("coarse grid" in text for text in spread.diagnosis_)
