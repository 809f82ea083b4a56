"""`Neural`: what a subclass may define."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers import StepRecorder, X, small_method
from unweave import InputError, catalog
from unweave.methods import BetaVAE, neural
from unweave.methods.neural import FORMER_NAMES, Neural


@pytest.mark.parametrize(("former", "current"), FORMER_NAMES.items())
def test_a_hook_by_its_former_name_is_refused_and_the_new_name_given(former, current):
    with pytest.raises(InputError, match=f"Mine.{former} is no longer called: rename it to `{current}`"):
        type("Mine", (Neural,), {former: lambda self: None})


def test_every_new_hook_name_is_a_hook():
    assert all(callable(getattr(Neural, current)) for current in FORMER_NAMES.values())


def test_the_same_settings_make_the_same_recipe():
    recipe = small_method("beta-vae", seed=3).recipe()
    assert recipe["name"] == "beta-vae"
    assert recipe["layers"] == [8]
    assert json.loads(json.dumps(recipe)) == recipe
    assert set(catalog.methods()["beta-vae"].lane_names()) == {"lr", "beta"}


def test_a_method_whose_fit_failed_is_not_fitted():
    from sklearn.exceptions import NotFittedError

    method = small_method("beta-vae", steps=0)
    with pytest.raises(InputError):
        method.fit(X)
    with pytest.raises(NotFittedError):
        method.transform(X)


class Tied(StepRecorder):
    """Two names for one weight."""

    def build(self, shape):
        net = nn.ModuleDict({"a": nn.Linear(shape[0], 3, bias=False), "b": nn.Linear(shape[0], 3, bias=False)})
        net["b"].weight = net["a"].weight
        return net

    def loss(self, net, batch):
        return {"loss": (net["a"](batch["x"]) + net["b"](batch["x"]) - 1).square().mean()}

    def encode(self, x):
        return self.apply_network(lambda net, part: net["b"](part), x)


def test_tied_weights_are_trained_and_saved(tmp_path):
    method = Tied(steps=20, latent_dim=3).fit(X)
    assert torch.equal(method.net_["a"].weight, method.net_["b"].weight)
    method.save(tmp_path / "m")
    np.testing.assert_array_equal(Tied.load(tmp_path / "m").transform(X), method.transform(X))


def test_settings_out_of_range_are_refused():
    for settings, text in (({"clip": -1.0}, "clip=-1.0"), ({"batch_size": 0}, "batch_size=0")):
        with pytest.raises(InputError, match=text):
            small_method("beta-vae", **settings).fit(X)
    with pytest.raises(InputError, match="anneal=0"):
        small_method("annealed-vae", anneal=0.0).fit(X)
    with pytest.raises(InputError, match=r"widths=\(\)"):
        small_method("beta-vae", widths=()).fit(np.zeros((4, 1, 8, 8)) + np.arange(4)[:, None, None, None] / 4)


def test_encoding_falls_back_to_the_cpu_if_the_device_is_gone(monkeypatch):
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    model = BetaVAE(steps=2, layers=(8,), latent_dim=2).fit(x)
    z = model.transform(x)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(neural, "MAX_NETWORK_ELEMENTS", 30)  # ten rows
    model.device = "cuda:7"  # of the machine that it was trained on
    np.testing.assert_allclose(model.transform(x), z, rtol=1e-6)
