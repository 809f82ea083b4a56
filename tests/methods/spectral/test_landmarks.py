"""Landmarks represent many points, with less noise."""

import warnings

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from tests.helpers import flat_sheet, swiss_roll
from unweave.data import lazy
from unweave.methods import HessianICA
from unweave.methods.spectral.landmarks import average_landmarks, thin
from unweave.metrics import mcc


def test_landmarks_are_averages_and_less_noisy_than_any_point():
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(20_000, 1))
    x = np.hstack([z, 0.1 * rng.normal(size=(20_000, 3))])
    places = average_landmarks(x, 8, rng)
    assert places[:, 1:].std() < 0.06 < x[:, 1:].std()
    assert np.ptp(places[:, 0]) > 0.7


def test_no_more_observations_are_read_than_landmarks_average():
    rows = thin(10_000, 20, 100, np.random.default_rng(0))  # 30 for each landmark, after the first 100
    assert len(rows) == 700 and (np.diff(rows) > 0).all() and rows[99] == 99 and rows[-1] > 9_000
    assert thin(700, 20, 100, np.random.default_rng(0)).tolist() == list(range(700))


def test_a_fit_reads_a_part_of_many_observations():
    x, z = flat_sheet(9_000, 2)
    method = HessianICA(latent_dim=2, n_neighbors=12, landmarks=200).fit(x)
    assert any("200 landmarks are averages of 7,000 observations" in text for text in method.diagnosis_)
    assert mcc(z, method.transform(x)) > 0.99


def test_all_rows_that_are_read_on_demand_take_part_in_landmarks(monkeypatch):
    x, z = flat_sheet(6_500, 2)
    monkeypatch.setattr(lazy, "MAX_STORED_ELEMENTS", 1_000)  # as if they did not fit into memory
    rows = lazy.LazyTable(lazy.ItemRows(list(torch.from_numpy(x))), torch.zeros(len(x), 0), [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a sample is used instead
        method = HessianICA(latent_dim=2, n_neighbors=12, landmarks=200).fit(rows)
    assert any("200 landmarks are averages of 6,500 observations" in text for text in method.diagnosis_)
    assert mcc(z, method.transform(x)) > 0.99


def test_landmarks_recover_the_factors_and_are_reported():
    x, z = flat_sheet(8000, 2)
    few, every = (
        HessianICA(latent_dim=2, n_neighbors=12, landmarks=1000),
        HessianICA(latent_dim=2, n_neighbors=12, landmarks=0),
    )
    codes = few.fit_transform(x)
    assert len(few.points_) == 1000
    assert len(every.fit(x).points_) == 8000
    assert mcc(z, codes) > 0.995
    assert any("1,000 landmarks are averages of 8,000" in text for text in few.diagnosis_)


def test_landmarks_average_noise_that_hides_a_factor():
    """Noise as large as the spacing of points: solved for all of them, one factor is lost."""
    x, z = swiss_roll(10_000)
    x = x @ np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3)))[0].T
    x = x + 0.4 * np.random.default_rng(1).normal(size=x.shape)
    averaged = HessianICA(latent_dim=2).fit(x)
    assert mcc(z, averaged.transform(x)) > 0.997
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        everything = HessianICA(latent_dim=2, n_neighbors=12, landmarks=0).fit(x)
    assert mcc(z, everything.transform(x)) < 0.8
