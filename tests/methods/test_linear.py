"""PCA and linear ICA, where the answer is known."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning

from unweave import InputError, load
from unweave.methods import PCA, HessianICA, LinearICA
from unweave.methods.linear import MIN_KURTOSIS_ROWS, excess_kurtosis, find_gaussians, unmix
from unweave.metrics import mcc


def test_pca_equals_the_singular_value_decomposition():
    x = np.random.default_rng(0).normal(size=(80, 5)) @ np.diag([5, 4, 3, 2, 1])
    codes = PCA(latent_dim=3).fit_transform(x)
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    np.testing.assert_allclose(np.abs(codes), np.abs(u[:, :3] * s[:3]), atol=1e-8)


def test_linear_ica_inverts_a_linear_mixing_and_pca_does_not():
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    x = z @ np.random.default_rng(1).normal(size=(3, 8))
    assert mcc(z, LinearICA(latent_dim=3).fit_transform(x)) > 0.999
    assert mcc(z, PCA(latent_dim=3).fit_transform(x)) < 0.95


def test_ica_does_not_depend_on_the_scale_of_the_data():
    """Embeddings come with tiny variances, where a fixed tolerance would stop ICA at its random start."""
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    x = z @ np.array([[2.0, 1.0], [1.0, 3.0]])
    for scale in (1e-8, 1, 1e8):
        assert mcc(z, LinearICA().fit_transform(scale * x)) > 0.999


def test_gaussian_factors_are_reported_as_inseparable():
    x = np.random.default_rng(4).normal(size=(20_000, 4))
    with pytest.warns(ConvergenceWarning, match=r"excess kurtosis .* \(0 is Gaussian\)"):
        LinearICA(latent_dim=4, seed=1).fit(x)


def test_few_rows_do_not_make_factors_gaussian():
    """With n rows the kurtosis of a Gaussian has the standard error sqrt(24 / n); a uniform factor has -1.2."""
    assert 4 * (24 / MIN_KURTOSIS_ROWS) ** 0.5 <= 1.2 < 4 * (24 / (MIN_KURTOSIS_ROWS - 1)) ** 0.5
    small, error = np.zeros(2), np.full(2, 0.3)
    assert find_gaussians(small, error, MIN_KURTOSIS_ROWS) == [0, 1]
    assert find_gaussians(small, error, MIN_KURTOSIS_ROWS - 1) == []
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(MIN_KURTOSIS_ROWS - 1, 2))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LinearICA().fit(x)
        assert not any("0 is Gaussian" in str(warning.message) for warning in caught)


def test_white_data_along_the_axes_lose_no_component():
    """Where the principal axes are exactly the columns, scikit-learn multiplies one by the sign of zero."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 3))
    y = np.linalg.svd(z - z.mean(0), full_matrices=False)[0] * 600**0.5
    for memory in (np.ascontiguousarray(y), np.asfortranarray(y), y[:, ::-1], np.asfortranarray(y[:, [1, 0, 2]])):
        W = unmix(torch.from_numpy(memory.copy(order="K")), 0)
        np.testing.assert_allclose(W @ W.T, np.eye(3), atol=0.02)


@pytest.mark.parametrize(("draw", "kurtosis", "variance"), [("normal", 0, 24), ("uniform", -1.2, 1.3166)])
def test_the_kurtosis_and_its_error_agree_with_theory(draw, kurtosis, variance):
    u = getattr(np.random.default_rng(0), draw)(size=(200_000, 1))
    found, error = excess_kurtosis((u - u.mean(0)) / u.std(0))
    assert found[0] == pytest.approx(kurtosis, abs=0.05)
    assert error[0] ** 2 * 200_000 == pytest.approx(variance, rel=0.1)


def test_the_error_of_the_kurtosis_accounts_for_the_estimated_mean():
    u = (np.random.default_rng(0).random((2_000, 400)) < 0.2113).astype(float)  # 400 samples of a law with kurtosis 0
    found, error = excess_kurtosis((u - u.mean(0)) / u.std(0))
    assert error.mean() == pytest.approx(found.std(), rel=0.1)


@pytest.mark.parametrize("method", [PCA(), LinearICA(), HessianICA(latent_dim=2)])
def test_more_factors_than_the_rank_of_the_data_are_an_error(method):
    line = np.outer(np.random.default_rng(0).uniform(size=100), [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="all their columns are combinations of 1"):
        method.fit(line)


# Variance, loadings, and the number of codes --------------------------------------------------------------------------


def people(n=400):
    """Two independent factors in five columns of different units, and the factors (n, 2)."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (n, 2))
    noise = rng.normal(size=(n, 5))
    x = np.stack([10 * z[:, 0], 12 * z[:, 0], 15 * z[:, 1], 1e4 * z[:, 1], 3 * z[:, 0] - z[:, 1]], 1)
    table = pd.DataFrame(x + noise * [1, 2, 1, 500, 0.3], columns=["height", "weight", "age", "income", "shoe"])
    return table, z


@pytest.mark.parametrize("cls", [PCA, LinearICA])
def test_auto_finds_the_number_of_codes_and_says_which_columns_they_are_made_of(cls, tmp_path):
    table, z = people()
    method = cls(latent_dim="auto").fit(table)
    assert method.latent_dim_ == 2 and method.transform(table).shape == (400, 2)
    assert method.summary()[1].startswith("2 codes were chosen by cross-validation")
    assert method.summary()[2] == "The 2 codes explain 98 % of the variance."
    correlations = np.corrcoef(np.c_[method.transform(table), table].T)[:2, 2:]
    np.testing.assert_allclose(method.loadings_, correlations, atol=1e-9)
    method.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_allclose(again.loadings_, method.loadings_)
    np.testing.assert_allclose(again.choice_errors_, method.choice_errors_)
    assert again.latent_dim == "auto" and again.latent_dim_ == 2
    if cls is LinearICA:
        assert mcc(z, method.transform(table)) > 0.98
        assert "height (0.98), weight (0.98), shoe (0.93)." in method.summary()[3]


def test_shares_of_the_variance_are_those_of_scikit_learn():
    table, _ = people()
    x = (table - table.mean()) / table.std()
    reference = decomposition.PCA(3).fit(x).explained_variance_ratio_
    method = PCA(latent_dim=3).fit(table)
    np.testing.assert_allclose(method.explained_variance_ratio_, reference, rtol=1e-9)
    np.testing.assert_allclose(method.variance_spectrum_[:3], reference, rtol=1e-9)


def test_independent_components_share_the_variance_of_the_principal_ones():
    table, _ = people()
    pca, ica = PCA().fit(table), LinearICA().fit(table)
    assert ica.explained_variance_ratio_.sum() == pytest.approx(pca.explained_variance_ratio_.sum())
    # Of standardized columns, the share of a code is the mean of its squared correlations.
    np.testing.assert_allclose(ica.explained_variance_ratio_, (ica.loadings_**2).mean(1), rtol=1e-9)


def test_columns_that_share_nothing_give_one_code():
    x = np.random.default_rng(0).uniform(size=(300, 6))
    method = PCA(latent_dim="auto").fit(x)
    assert method.latent_dim_ == 1
    assert method.summary()[:2] == (
        "No component predicts held-out values of the other columns: they share nothing, and one code is kept.",
        "The code explains 20 % of the variance.",
    )
    assert " column " in method.summary()[2]
    method.set_params(latent_dim=2).fit(x)
    assert not hasattr(method, "choice_errors_")


def test_images_have_no_loadings_but_a_number_of_codes():
    z = np.random.default_rng(0).uniform(size=(200, 2))
    images = (z @ np.random.default_rng(1).uniform(size=(2, 36))).reshape(200, 1, 6, 6)
    method = PCA(latent_dim="auto").fit(images)
    assert method.latent_dim_ == 2
    assert not hasattr(method, "loadings_") and "loadings" not in method.figures()
    assert method.summary()[-1] == "The 2 codes explain 100 % of the variance."


def test_ica_does_not_stop_at_a_saddle(monkeypatch):
    """Two uniform factors mixed in equal parts are a fixed point of FastICA, at which a start may end."""
    z = np.random.default_rng(0).uniform(-1, 1, (2_000, 2))
    z = np.concatenate([z, -z, z * [1, -1], z * [-1, 1], z[:, ::-1], z[:, ::-1] * [1, -1]])  # symmetric: an exact one
    z -= z.mean(0)
    FastICA, starts = decomposition.FastICA, []

    def at_saddle_first(**settings):
        turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
        starts.append(settings["random_state"])
        return FastICA(**settings | ({"w_init": turn} if len(starts) == 1 else {}))

    monkeypatch.setattr(decomposition, "FastICA", at_saddle_first)
    codes = z @ unmix(torch.from_numpy(z), 0).numpy().T
    assert mcc(z, codes) > 0.99 and len(set(starts)) >= 2
