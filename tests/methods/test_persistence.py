"""Saved methods that somebody has forged: whoever can write a config can also compute its checksum."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import unweave
from unweave import InputError
from unweave.methods import PCA, BetaVAE
from unweave.utils.storage import recipe_hash, sha256

X = np.random.default_rng(0).normal(size=(40, 4))


def forge(folder, learned=(), tensors=(), arrays=(), **config):
    """Change a saved method as an attacker does, with valid checksums."""
    path, weights = folder / "config.json", folder / "model.safetensors"
    save_file(load_file(weights) | dict(tensors), weights)
    saved = json.loads(path.read_text()) | {"sha256": sha256(weights)} | config
    del saved["checksum"]
    saved["learned"] |= dict(learned)
    saved["arrays"] += list(arrays)
    path.write_text(json.dumps(saved | {"checksum": recipe_hash(saved, 16)}))
    return folder


@pytest.fixture(params=[PCA, BetaVAE])
def model(request, tmp_path):
    settings = {} if request.param is PCA else {"steps": 2, "layers": (4,)}
    request.param(latent_dim=2, **settings).fit(X).save(tmp_path / "m")
    return tmp_path / "m"


NAMES = [
    "transform",
    "name",
    "decode",
    "latent_dim",
    "__class__",
    "__dict__",
    "_x_",
    "evil_",
    "a b_",
    "restarts",
    "fit",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_no_learned_values_are_refused(model, name):
    with pytest.raises(InputError, match="is no learned value of"):
        unweave.load(forge(model, learned={name: [1]}))


@pytest.mark.parametrize("name", ["transform", "evil_", "encode.weight", "evil_.weight", "_net_.weight"])
def test_so_are_names_of_tensors_and_networks(model, name):
    with pytest.raises(InputError, match="is no learned value of"):
        unweave.load(forge(model, tensors={name: torch.ones(2)}))


def test_so_are_names_of_arrays(model):
    with pytest.raises(InputError, match="'evil_' is no learned value of"):
        unweave.load(forge(model, tensors={"evil_": torch.ones(2)}, arrays=["evil_"]))


@pytest.mark.parametrize(
    "config",
    [{"params": []}, {"learned": 3}, {"arrays": "abc"}, {"method": None}, {"sha256": {}}, {"params": {"x": 1}}],
)
def test_a_config_of_other_types_is_refused(model, config):
    path = model / "config.json"
    saved = json.loads(path.read_text()) | config
    del saved["checksum"]
    path.write_text(json.dumps(saved | {"checksum": recipe_hash(saved, 16)}))
    with pytest.raises(InputError, match="was not written by"):
        unweave.load(model)


@pytest.mark.parametrize("shape", ["ab", [1.5], ["4"], 4, [None], [[4]]])
def test_a_forged_shape_is_refused(model, shape):
    with pytest.raises(InputError, match="was not written by this version"):
        unweave.load(forge(model, learned={"shape_": shape}))


@pytest.mark.parametrize("name", [-3, None, ["a"], {}])
def test_forged_names_of_arrays_are_refused(model, name):
    with pytest.raises(InputError, match="was not written by this version"):
        unweave.load(forge(model, arrays=[name]))


class Center(unweave.Method):
    """A class of a user, which may call its learned values as it likes."""

    def learn(self, data):
        setattr(self, "mean" + "_", torch.zeros(data.shape[0]))

    def encode(self, x):
        return x - self.mean_

    @property
    def double_(self):
        return 2 * self.mean_


def test_a_class_of_a_user_has_values_of_any_name_but_those_of_its_own_code(tmp_path):
    Center(latent_dim=4).fit(X).save(tmp_path / "m")
    np.testing.assert_allclose(Center.load(tmp_path / "m").transform(X), X, atol=1e-6)
    with pytest.raises(InputError, match="'double_' is no learned value"):
        Center.load(forge(tmp_path / "m", learned={"double_": 1}))
