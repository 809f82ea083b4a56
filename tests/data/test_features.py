"""Frozen features: outputs of a model, once for every observation, with the factors and names of the data."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import unweave
from unweave import InputError, as_data, features
from unweave.datasets import SquaresXY
from unweave.methods import PCA, HessianICA

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (30, 1, 4, 4), dtype=np.uint8)
KIND = np.array(["cat", "dog", "owl"])[np.arange(30) % 3]


def trunk():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(12, 5)
    return nn.Sequential(*layers)


def test_features_are_those_of_the_model_in_evaluation_mode():
    model = trunk()
    model[3].eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    table = features(model, IMAGES, batch_size=7)
    assert [part.training for part in model] == [True, True, True, False, True, True]
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    torch.testing.assert_close(table.x, model.eval()(torch.from_numpy(IMAGES) / 255).detach())
    assert not table.x.requires_grad
    assert table.shape == (5,)


def test_factors_and_names_of_rows_are_kept():
    data = as_data(IMAGES, pd.DataFrame({"kind": KIND, "size": np.linspace(0, 1, 30)}))
    data.row_names = tuple(f"{i}.png" for i in range(30))
    table = features(trunk(), data, batch_size=8)
    assert table.factors == data.factors
    assert torch.equal(table.c, data.c)
    assert table.row_names == data.row_names
    assert table.feature_names == ("feature1", "feature2", "feature3", "feature4", "feature5")


def test_every_method_learns_from_features():
    data = SquaresXY(points=200, size=8, side=3)
    table = features(lambda x: x.flatten(1)[:, ::2], data)
    assert PCA(latent_dim=2).fit_transform(table).shape == (200, 2)
    assert HessianICA(latent_dim=2, n_neighbors=10).fit_transform(table).shape == (200, 2)


def test_features_of_data_without_end_are_those_of_a_sample():
    endless = unweave.Mixing(
        [unweave.Factor("t")], (3,), lambda n, rng: torch.rand(n, 1, generator=rng), lambda t: t**3
    )
    table = features(lambda x: 2 * x.expand(-1, 3), endless, samples=50)
    torch.testing.assert_close(table.x[:, :1], 2 * table.c**3)
    assert len(table) == 50


def test_outputs_of_transformers_are_pooled():
    pooled, states = torch.rand(30, 6), torch.rand(30, 4, 6)
    outputs = {
        "pooler": SimpleNamespace(pooler_output=pooled, last_hidden_state=states),
        "dict": {"last_hidden_state": states, "pooler_output": None},
        "maps": SimpleNamespace(last_hidden_state=states.transpose(1, 2)[..., None]),
        "tuple": (pooled, states),
    }
    x = {name: features(lambda _, out=out: out, IMAGES).x for name, out in outputs.items()}
    torch.testing.assert_close(x["pooler"], pooled)
    torch.testing.assert_close(x["dict"], states.mean(1))
    torch.testing.assert_close(x["maps"], states.mean(1))
    torch.testing.assert_close(x["tuple"], pooled)
    with pytest.raises(InputError, match="returned SimpleNamespace: expected a tensor"):
        features(lambda _: SimpleNamespace(logits=1), IMAGES)


def test_observations_are_changed_before_the_model_sees_them():
    model = nn.Sequential(nn.Conv2d(3, 2, 2), nn.Flatten()).double()
    with pytest.raises(InputError, match=r"cannot take observations of shape \(30, 1, 4, 4\).*transform="):
        features(model, IMAGES)
    table = features(model, IMAGES, transform=lambda x: x.expand(-1, 3, -1, -1) - 0.5)
    x = torch.from_numpy(IMAGES).double() / 255 - 0.5
    torch.testing.assert_close(table.x, model(x.expand(-1, 3, -1, -1)).float().detach())
    with pytest.raises(InputError, match=r"maps \(30, 1, 4, 4\) to \(4,\)"):
        features(lambda x: x.sum((0, 1, 2)), IMAGES)


@pytest.mark.parametrize("name", ["features.csv", "deeper/features.parquet"])
def test_written_features_are_read_as_data(name, tmp_path):
    data = as_data(IMAGES, pd.DataFrame({"kind": KIND, "angle": np.arange(30) % 4 * 90, "size": np.linspace(0, 1, 30)}))
    table = features(trunk(), data, out=tmp_path / name)
    again = unweave.OwnData(path=tmp_path / name, factors=("kind", "angle", "size")).load()
    torch.testing.assert_close(again.render(again.all_points(30)).float(), table.x)
    assert [factor.values for factor in again.factors] == [("cat", "dog", "owl"), (0, 90, 180, 270), ()]
    data.row_names = tuple(f"{i}.png" for i in range(30))
    features(trunk(), data, out=tmp_path / name)
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    assert tuple(read(tmp_path / name)[data.row_key]) == data.row_names
    with pytest.raises(InputError, match=r"features are written as \.csv or \.parquet"):
        features(trunk(), data, out=tmp_path / "features.npy")
