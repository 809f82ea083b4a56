"""The contract of `Method`: what it accepts, checks and saves."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unweave import InputError, Method, as_data
from unweave.datasets import SquaresXY
from unweave.methods import PCA, BetaVAE, CNNClassifier, HessianICA, SwapContrast


def test_labels_reach_methods_that_need_them():
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


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (PCA(latent_dim="2"), "latent_dim='2', expected an integer"),  # type: ignore[arg-type]
        (PCA(latent_dim=2.5), "latent_dim=2.5, expected an integer"),  # type: ignore[arg-type]
        (PCA(latent_dim=True), "latent_dim=True"),
        (PCA(seed=-1), "seed=-1"),
        (HessianICA(n_neighbors=None), "n_neighbors=None, expected an integer or 'auto'"),  # type: ignore[arg-type]
        (HessianICA(latent_dim=2, project=1), "project=1"),
        (HessianICA(project=-1), "project=-1"),
    ],
)
def test_settings_are_checked_against_their_types_and_ranges(method, text):
    with pytest.raises(InputError, match=text):
        method.fit(np.random.default_rng(0).uniform(size=(50, 4)))


def test_a_setting_under_its_former_name_is_refused_with_the_current_one():
    with pytest.raises(InputError, match="SwapContrast: known is now called nuisances"):
        SwapContrast(known=("color",))
    with pytest.raises(InputError, match="CNNClassifier: likelihood was removed"):
        CNNClassifier(likelihood="normal")


def test_numpy_numbers_are_valid_settings():
    x = np.random.default_rng(0).uniform(size=(50, 4))
    codes = PCA(latent_dim=np.int64(2), seed=np.int64(3)).fit_transform(x)
    assert np.array_equal(codes, PCA(seed=3).fit_transform(x))


def test_bytes_in_a_table_are_numbers():
    table = np.random.default_rng(0).integers(0, 256, (40, 5), dtype=np.uint8)
    assert np.array_equal(PCA().fit(as_data(table)).transform(table), PCA().fit(table).transform(table))


def test_the_shape_of_codes_is_checked():
    class Wrong(Method):
        """Gives one code too few."""

        def learn(self, data):
            self.done_ = 1

        def encode(self, x):
            return x[:, :1]

    with pytest.raises(InputError, match=r"codes of shape \(9, 1\), expected \(9, 2\)"):
        Wrong().fit_transform(np.random.default_rng(0).uniform(size=(9, 3)))
    with pytest.raises(InputError, match="'codes' is a flag of `unweave fit`"):
        type("Taken", (Wrong,), {"__annotations__": {"codes": int}, "codes": 1})


def test_a_learned_attribute_that_cannot_be_saved_is_named(tmp_path):
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


def test_a_fitted_method_says_what_it_holds():
    method = BetaVAE(latent_dim=2, steps=20, layers=(4,))
    settings = repr(method)
    assert settings == "BetaVAE(latent_dim=2, layers=(4,), steps=20)"
    method.fit(np.eye(8, 6))
    loss = f"{method.history['loss'].iloc[-1]:.4g}"
    assert repr(method) == f"{settings}  # fitted: shape (6,) -> 2 codes, 20 steps, loss {loss}"
    assert repr(clone(method)) == repr(eval(repr(method))) == settings  # the rest is a comment
    assert repr(PCA(latent_dim=1).fit(np.eye(8))) == "PCA(latent_dim=1)  # fitted: shape (8,) -> 1 code"


def test_scikit_learn_shows_a_fitted_method_in_its_own_way():
    method = PCA(latent_dim=1).fit(np.eye(8))
    assert "('pca', PCA(latent_dim=1))])" in repr(make_pipeline(StandardScaler(), method))
    assert "PCA" in method._repr_html_()


def test_a_notebook_shows_the_diagram_of_scikit_learn():
    x = np.random.default_rng(0).normal(size=(30, 3))
    unfitted, fitted = BetaVAE(), BetaVAE(latent_dim=2, steps=5, layers=(4,)).fit(x)
    for method in (unfitted, fitted, PCA().fit(x), HessianICA()):
        page = method._repr_html_()
        assert "sk-container-id" in page
        assert f"<div>{type(method).__name__}</div>" in page
        assert "latent_dim" in page
        assert "href" not in page, "scikit-learn has no page about our methods"
    assert "<span>Not fitted</span>" in unfitted._repr_html_()
    assert "<span>Fitted</span>" in fitted._repr_html_()


def test_a_notebook_shows_pipelines_with_methods():
    x = np.random.default_rng(0).normal(size=(30, 3))
    page = make_pipeline(StandardScaler(), PCA(latent_dim=2)).fit(x)._repr_html_()
    links = re.findall(r'href="([^"#]*)', page)
    assert "<div>PCA</div>" in page
    assert {link.rpartition("/")[2] for link in links} == {
        "sklearn.pipeline.Pipeline.html", "sklearn.preprocessing.StandardScaler.html",
    }  # fmt: skip


def test_settings_are_escaped_in_notebooks():
    class Hostile(Method):
        """Has a text as a setting."""

        text: str = "<script>alert(1)</script>"

        def learn(self, data):
            self.mean_ = 0.0

        def encode(self, x):
            return x

    page = Hostile()._repr_html_()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
