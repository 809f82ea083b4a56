"""What the methods find, where the answer is known."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from unweave import InputError, Method, as_data
from unweave.datasets import Faces, SquaresXC, SquaresXY, SwissRoll
from unweave.methods import PCA, HessianICA, LinearICA
from unweave.methods.linear import excess_kurtosis
from unweave.metrics import mcc


def swiss_roll(n, seed=0):
    """A roll in three dimensions and its two coordinates: length along the roll, and height; both uniform."""
    data = SwissRoll(points=n, seed=seed).load()
    return data.render(data.sources).numpy(), data.sources.numpy().astype(float)


def test_pca_is_the_singular_value_decomposition():
    x = np.random.default_rng(0).normal(size=(80, 5)) @ np.diag([5, 4, 3, 2, 1])
    codes = PCA(latent_dim=3).fit_transform(x)
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    np.testing.assert_allclose(np.abs(codes), np.abs(u[:, :3] * s[:3]), atol=1e-8)


def test_linear_ica_undoes_a_linear_mixing_and_pca_does_not():
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    x = z @ np.random.default_rng(1).normal(size=(3, 8))
    assert mcc(z, LinearICA(latent_dim=3).fit_transform(x)) > 0.999
    assert mcc(z, PCA(latent_dim=3).fit_transform(x)) < 0.95


def test_the_scale_of_the_data_does_not_decide_what_ica_finds():
    """Embeddings come with tiny variances, where a fixed tolerance would stop ICA at its random start."""
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    x = z @ np.array([[2.0, 1.0], [1.0, 3.0]])
    for scale in (1e-8, 1, 1e8):
        assert mcc(z, LinearICA().fit_transform(scale * x)) > 0.999


def test_gaussian_factors_are_reported_as_inseparable():
    x = np.random.default_rng(4).normal(size=(20_000, 4))
    with pytest.warns(ConvergenceWarning, match=r"excess kurtosis .* \(0 is Gaussian\)"):
        LinearICA(latent_dim=4, seed=1).fit(x)


@pytest.mark.parametrize(("draw", "kurtosis", "variance"), [("normal", 0, 24), ("uniform", -1.2, 1.3166)])
def test_the_kurtosis_and_its_error_are_those_of_theory(draw, kurtosis, variance):
    u = getattr(np.random.default_rng(0), draw)(size=(200_000, 1))
    found, error = excess_kurtosis((u - u.mean(0)) / u.std(0))
    assert found[0] == pytest.approx(kurtosis, abs=0.05)
    assert error[0] ** 2 * 200_000 == pytest.approx(variance, rel=0.1)


def test_the_error_of_a_skewed_kurtosis_counts_that_the_mean_is_estimated():
    u = (np.random.default_rng(0).random((2_000, 400)) < 0.2113).astype(float)  # 400 samples of a law with kurtosis 0
    found, error = excess_kurtosis((u - u.mean(0)) / u.std(0))
    assert error.mean() == pytest.approx(found.std(), rel=0.1)


def test_hessian_ica_unrolls_a_swiss_roll_and_places_new_points():
    x, z = swiss_roll(2200)
    codes = HessianICA(n_neighbors=12).fit(x[:2000]).transform(x)
    assert mcc(z[:2000], codes[:2000]) > 0.999
    assert mcc(z[2000:], codes[2000:]) > 0.999
    assert mcc(z, LinearICA().fit_transform(x)) < 0.75, "a linear map can give the height alone"


def test_hessian_ica_finds_position_in_images_of_squares():
    data = SquaresXY(points=1000, size=32, side=10).load()
    codes = HessianICA().fit(data).transform(data.render(data.sources))
    assert mcc(data.sources, codes) > 0.99


def test_hard_edges_hide_the_color_and_smoothing_shows_it():
    """On hard-edged images HLLE loses a factor; left to itself it blurs them, and finds both."""
    data = SquaresXC(points=900).load()
    x = data.render(data.sources)
    sharp, itself = (HessianICA(smooth=smooth).fit(data) for smooth in (0.0, "auto"))
    assert mcc(data.sources, sharp.transform(x)) < 0.8
    assert mcc(data.sources, itself.transform(x)) > 0.99
    assert itself.smooth_ == 2.0
    assert any("blurred by 2 pixels" in said for said in itself.diagnosis_)
    blurred = SquaresXC(points=900, blur=2.0).load()
    assert HessianICA().fit(blurred).smooth_ == 0, "what is smooth already is left as it is"


def test_an_exact_null_space_is_found_too():
    """Flat data make the Hessian operator exactly singular, which a sparse factorization alone does not survive."""
    z = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    assert mcc(z, HessianICA().fit_transform(z @ np.random.default_rng(1).normal(size=(2, 6)))) > 0.99


def test_points_in_several_pieces_are_refused_with_their_sizes():
    x = np.random.default_rng(0).uniform(size=(300, 3))
    x[200:] += 100
    with pytest.raises(InputError, match=r"2 parts \(sizes 200, 100\)"):
        HessianICA(n_neighbors=10).fit(x)
    with pytest.raises(InputError, match=r"n_neighbors=48 falls into 2 parts"):
        HessianICA().fit(x)


def test_neighbors_are_checked_against_dimension_and_samples():
    x = np.random.default_rng(0).uniform(size=(30, 5))
    with pytest.raises(InputError, match="n_neighbors=9 is too few for latent_dim=3: a neighborhood needs at least 10"):
        HessianICA(latent_dim=3, n_neighbors=9).fit(x)
    with pytest.raises(InputError, match="n_samples=30 is too few for n_neighbors=30"):
        HessianICA(n_neighbors=30).fit(x)
    with pytest.raises(InputError, match="n_samples=8 is too few for n_neighbors=10"):
        HessianICA(latent_dim=3).fit(x[:8])


def test_labels_reach_only_the_methods_that_need_them():
    class Labeled(Method):
        """Takes the class means."""

        needs = "labels"

        def learn(self, data):
            x, c = data.collect(10, None)
            self.means_ = x[c[:, 0] == 1].mean(0)

        def encode(self, x):
            return x @ self.means_[:, None]

    x = np.array([[1.0, 0], [0, 1], [0, 3]])
    assert Labeled(latent_dim=1).fit(x, ["a", "b", "b"]).transform(x).tolist() == [[0], [2], [6]]


def test_a_data_frame_keeps_its_column_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["a", "b", "c"])
    method = PCA().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        method.transform(frame[["c", "b", "a"]])
    broken = frame.copy()
    broken.loc[4, "b"] = np.nan
    with pytest.raises(InputError, match="row 4, column 'b'"):
        PCA().fit(broken)


def test_a_dataset_can_be_fitted_directly():
    codes = PCA().fit(SquaresXY(points=50, size=16, side=4)).transform(np.zeros((3, 1, 16, 16)))
    assert codes.shape == (3, 2)


def test_real_faces_come_apart_into_their_two_factors(real_data):
    """3,000 images of a face generator, two directions of its latent space (Horan et al., 2021, Sec. 4)."""
    if not Faces().is_available():
        pytest.skip("faces-01.zip is not in UNWEAVE_DATA")
    data = Faces().load()
    linear, hessian = (mcc(data.c, m.fit_transform(data)) for m in (LinearICA(), HessianICA()))
    assert hessian > 0.97 > linear


def test_repeated_rows_change_nothing():
    x, _ = swiss_roll(800)
    once = HessianICA(n_neighbors=12).fit(x)
    thrice = HessianICA(n_neighbors=12).fit(np.repeat(x, 3, axis=0))
    assert torch.equal(once.codes_, thrice.codes_)


@pytest.mark.parametrize("method", [PCA(), LinearICA(), HessianICA(latent_dim=2)])
def test_more_factors_than_the_rank_of_the_data_are_refused(method):
    line = np.outer(np.random.default_rng(0).uniform(size=100), [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="all their columns are combinations of 1"):
        method.fit(line)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (PCA(latent_dim="2"), "latent_dim='2', expected a whole number"),
        (PCA(latent_dim=2.5), "latent_dim=2.5, expected a whole number"),
        (PCA(latent_dim=True), "latent_dim=True"),
        (PCA(seed=-1), "seed=-1"),
        (HessianICA(n_neighbors=None), "n_neighbors=None, expected a whole number or 'auto'"),
        (HessianICA(latent_dim=2, project=1), "project=1"),
        (HessianICA(project=-1), "project=-1"),
    ],
)
def test_settings_are_checked_against_their_types_and_ranges(method, text):
    with pytest.raises(InputError, match=text):
        method.fit(np.random.default_rng(0).uniform(size=(50, 4)))


def test_numpy_numbers_are_numbers():
    x = np.random.default_rng(0).uniform(size=(50, 4))
    codes = PCA(latent_dim=np.int64(2), seed=np.int64(3)).fit_transform(x)
    assert np.array_equal(codes, PCA(seed=3).fit_transform(x))


def test_bytes_in_a_table_are_numbers():
    table = np.random.default_rng(0).integers(0, 256, (40, 5), dtype=np.uint8)
    assert np.array_equal(PCA().fit(as_data(table)).transform(table), PCA().fit(table).transform(table))


def test_what_encode_gives_is_checked():
    class Wrong(Method):
        """Gives one code too few."""

        def learn(self, data):
            self.done_ = 1

        def encode(self, x):
            return x[:, :1]

    with pytest.raises(InputError, match=r"codes of shape \(9, 1\), expected \(9, 2\)"):
        Wrong().fit_transform(np.random.default_rng(0).uniform(size=(9, 3)))
    with pytest.raises(InputError, match="cannot be called 'codes'"):
        type("Taken", (Wrong,), {"__annotations__": {"codes": int}, "codes": 1})


def test_learned_state_that_cannot_be_saved_is_named(tmp_path):
    class Odd(Method):
        """Keeps what JSON cannot hold."""

        def learn(self, data):
            self.thing_ = object()

        def encode(self, x):
            return x[:, :2]

    method = Odd().fit(np.random.default_rng(0).uniform(size=(9, 3)))
    with pytest.raises(InputError, match=r"Odd\.thing_ is learned and cannot be saved"):
        method.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_datasets_and_data_can_be_transformed_and_codes_are_named():
    data = SquaresXY(points=30, size=12, side=4)
    codes = PCA().fit_transform(data)
    assert np.array_equal(codes, PCA().fit(data.load()).transform(data.load()))
    assert PCA().fit(data).get_feature_names_out().tolist() == ["pca0", "pca1"]
    frame = PCA().set_output(transform="pandas").fit_transform(np.random.default_rng(0).uniform(size=(9, 3)))
    assert list(frame.columns) == ["pca0", "pca1"]
