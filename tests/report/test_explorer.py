"""The explorer: the sample that it packs, and the page."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from unweave import Factor, InputError, Table, as_data
from unweave.datasets import SquaresXY
from unweave.methods import PCA, HessianICA, LinearICA
from unweave.report.explorer import data as explorer_data
from unweave.report.explorer.data import describe_data, sample_data
from unweave.report.explorer.thumbnails import pack_thumbnails


@pytest.fixture(scope="module")
def squares():
    return SquaresXY(points=300, size=16, side=6).load()


@pytest.fixture(scope="module")
def pca(squares):
    return PCA(latent_dim=3).fit(squares)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_a_sample_has_each_observation_once_and_keeps_its_factors(squares, pca, monkeypatch):
    sample = sample_data(pca, squares)
    assert len(sample.x) == 300 and len(np.unique(sample.truth, axis=0)) == 300
    packed = describe_data(pca, sample)
    np.testing.assert_allclose(floats(packed["codes"]).reshape(-1, 3), pca.transform(sample.x), rtol=1e-6)
    np.testing.assert_allclose(floats(packed["factors"][1]["values"]), sample.truth[:, 1], rtol=1e-6)
    monkeypatch.setattr(explorer_data, "MAX_CODE_VALUES", 600)
    monkeypatch.setattr(explorer_data, "MIN_OBSERVATIONS", 10)
    assert len(sample_data(pca, squares).x) == 200, "600 values of three codes"
    with pytest.raises(InputError, match="trained on shape"):
        sample_data(pca, np.zeros((5, 2)))


def test_codes_are_ordered_by_their_effect_and_named_by_their_factor():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, size=(400, 2))
    x = torch.as_tensor(c * [0.1, 3.0])
    data = Table(x, torch.as_tensor(c), [Factor("small"), Factor("large")])
    method = PCA(latent_dim=2).fit(data)
    packed = describe_data(method, sample_data(method, data))
    facts = packed["facts"]
    assert [packed["factors"][facts[j]["factor"]]["name"] for j in range(2)] == ["large", "small"]
    assert facts[0]["score"] > 0.7 and packed["scored"] == [0, 1]
    assert np.argmax(packed["information"][0]) == 1 and np.argmax(packed["importance"][1]) == 0
    for fact in facts:
        assert fact["low"] < fact["lower"] < fact["upper"] < fact["high"]
        assert sum(fact["counts"]) == 400 and fact["counts"][0] == fact["counts"][-1] == 0, "the margin has no data"


def test_dead_codes_come_last():
    x = np.random.default_rng(0).uniform(size=(200, 1, 1, 3)) * [1.0, 0.5, 1e-4]
    method = PCA(latent_dim=3).fit(x)
    method.components_ = method.components_.flip(0)  # the strongest is the last
    packed = describe_data(method, sample_data(method, x))
    assert packed["order"] == [2, 1, 0] and packed["scored"] == []
    assert [fact["is_dead"] for fact in packed["facts"]] == [True, False, False]
    constant = describe_data(method, sample_data(method, np.repeat(x[:1], 200, 0)))
    assert all(fact["is_dead"] for fact in constant["facts"])
    assert all(fact["low"] < fact["high"] for fact in constant["facts"])


def test_a_method_without_a_decoder_orders_codes_by_information(squares):
    method = HessianICA(latent_dim=2).fit(squares)
    packed = describe_data(method, sample_data(method, squares))
    best = [fact["score"] for fact in packed["facts"]]
    assert packed["order"] == np.argsort([-score for score in best], kind="stable").tolist()


def test_thumbnails_are_in_order_and_shrink_with_their_number():
    x = np.zeros((40, 3, 20, 10))
    x[7, 0] = 1.0
    packed = pack_thumbnails(x)
    assert (packed["width"], packed["height"], packed["perSheet"]) == (10, 20, 40)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed["sheets"][0].split(",")[1]))))
    assert sheet[20 * (7 // packed["columns"]) + 5, 10 * (7 % packed["columns"]) + 5].tolist() == [255, 0, 0]
    assert sheet.reshape(-1, 3)[:, 0].sum() == 255 * 200
    many = pack_thumbnails(np.random.default_rng(0).integers(255, size=(2500, 64, 64)).astype(np.uint8))
    assert len(many["sheets"]) == 3 and many["width"] == 56
    assert many["sheets"][0].startswith("data:image/jpeg"), "noise does not compress without loss"


def test_tables_keep_names_values_and_units():
    x = np.random.default_rng(0).normal(size=(50, 2)) * [1, 100]
    method = LinearICA(latent_dim=2).fit(x)
    packed = describe_data(method, sample_data(method, as_data(x, np.arange(50) % 2)))
    assert packed["kind"] == "table" and packed["columns"] == ["column 1", "column 2"]
    np.testing.assert_allclose(packed["deviations"], x.std(0), rtol=1e-4)
    assert floats(packed["values"]).reshape(-1, 2)[:, 1].std() > 50
