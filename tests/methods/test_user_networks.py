"""Networks of the user's own: modules in settings, functions in files, and what is saved of them."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import unweave
from tests.helpers import DATA, METHODS, NETWORKS, X, small_method, train_all, validate
from unweave import InputError
from unweave.datasets import SquaresXY
from unweave.methods import BetaVAE, CNNClassifier
from unweave.methods.user_networks import attach_user_code, describe_module
from unweave.training import step
from unweave.training.loop import initialize_network
from unweave.utils.storage import recipe_hash
from unweave.utils.user_files import execute_file

ENCODERS = [name for name in NETWORKS if "encoder" in METHODS[name].__dataclass_fields__ and name != "infogan-cr"]
Y = DATA.labels(torch.arange(200)[:, None])[:, 0].long().numpy()


def own_encoder(width=9):
    return nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, width))


def own_decoder(codes=2):
    return nn.Sequential(nn.Linear(codes, 12), nn.GELU(), nn.Linear(12, 6))


def vae(**settings):
    return BetaVAE(**{"latent_dim": 2, "steps": 20, "encoder": own_encoder(), "decoder": own_decoder()} | settings)


class Scaled(nn.Module):
    """Has a setting that `repr` does not show, a parameter that nothing resets, and a layer that is reset."""

    def __init__(self, factor=1.0, start=0.0):
        super().__init__()
        self.factor, self.shift, self.linear = factor, nn.Parameter(torch.full((6,), start)), nn.Linear(6, 4)

    def forward(self, x):
        return self.factor * self.linear(x + self.shift)


# Modules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_every_method_with_an_encoder_takes_modules(name):
    fields = METHODS[name].__dataclass_fields__
    networks = {"encoder": own_encoder(), "decoder": nn.Sequential(nn.LazyLinear(6))}
    method = small_method(name, steps=2, **{k: v for k, v in networks.items() if k in fields}).fit(DATA)
    assert method.transform(X).shape == (200, 2)
    assert sum(isinstance(part, nn.GELU) for part in method.net_.encoder.modules()) == 1
    if "decoder" in fields:
        assert method.inverse_transform(method.transform(X)).shape == X.shape
        assert isinstance(method.net_.decoder.module[0], nn.Linear)


def test_a_linear_layer_follows_features_of_another_width():
    method = vae(encoder=own_encoder(9)).fit(X)
    assert (method.net_.encoder.head.in_features, method.net_.encoder.head.out_features) == (9, 4)
    text = "Your encoder has 9 features, and beta-vae needs 4 outputs: a linear layer was appended."
    assert method.diagnosis_[0] == text
    collapsed = vae(encoder=own_encoder(9), beta=100, lr=0.02, steps=100).fit(X)
    assert [line.split()[0] for line in collapsed.diagnosis_] == ["Your", "The"]
    exact = vae(encoder=own_encoder(4)).fit(X)
    assert isinstance(exact.net_.encoder.head, nn.Identity)
    assert not any("linear layer" in text for text in getattr(exact, "diagnosis_", []))


def test_every_seed_starts_from_weights_of_its_own():
    method = vae()
    given = [p.clone() for p in method.encoder.parameters()]
    starts = [initialize_network(*validate([clone(method).set_params(seed=seed)])) for seed in (0, 0, 1)]
    first, again, other = (start.encoder.module[0].weight for start in starts)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, given[0])
    method.fit(X)
    assert all(torch.equal(p, before) for p, before in zip(method.encoder.parameters(), given, strict=True))


def test_given_weights_are_kept_if_asked_for():
    method = vae(keep_weights=True)
    for seed in (0, 1):
        (lane,) = validate([clone(method).set_params(seed=seed)])
        assert torch.equal(initialize_network(lane).encoder.module[0].weight, method.encoder[0].weight)
    trained = method.fit(X).net_.encoder.module[0].weight
    assert 0 < float((trained - method.encoder[0].weight).detach().abs().max()) < 0.1  # twenty steps of Adam


def test_frozen_parameters_are_neither_reset_nor_trained():
    encoder = own_encoder()
    encoder[0].requires_grad_(False)
    pack = [vae(encoder=encoder, seed=seed) for seed in (0, 1)]
    train_all(pack, strategy="stack", compiling="never")
    for method in pack:
        trained = method.net_.encoder.module
        assert torch.equal(trained[0].weight, encoder[0].weight)
        assert torch.equal(trained[0].bias, encoder[0].bias)
        assert not torch.equal(trained[3].weight, encoder[3].weight)
    assert not torch.equal(pack[0].net_.encoder.module[3].weight, pack[1].net_.encoder.module[3].weight)


def test_clone_repr_and_settings_work_with_modules():
    method = vae()
    twin = clone(method)
    assert twin.encoder is not method.encoder
    assert "LayerNorm" in repr(method)
    assert "encoder" not in repr(BetaVAE())
    assert method.get_params()["encoder"] is method.encoder
    assert twin.recipe() == method.recipe()
    np.testing.assert_array_equal(twin.fit(X).transform(X), method.fit(X).transform(X))


def attention_encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Unflatten(1, (3, 2)), nn.Linear(2, 8), nn.TransformerEncoder(layer, 1), nn.Flatten())


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("make", [own_encoder, attention_encoder])
def test_a_lane_with_modules_equals_its_solo_run(make):
    pack = [vae(encoder=make(), decoder=own_decoder(), seed=seed, steps=60) for seed in (0, 1)]
    train_all(pack, strategy="stack", compiling="never")
    (solo,) = train_all([vae(encoder=make(), decoder=own_decoder(), seed=1, steps=60)], compiling="never")
    np.testing.assert_allclose(pack[1].transform(X), solo.transform(X), atol=1e-5)
    assert np.abs(pack[0].transform(X) - pack[1].transform(X)).max() > 1e-3


def test_a_step_with_modules_is_one_graph(monkeypatch):
    monkeypatch.setattr(step, "BACKEND", "eager")
    pack = [vae(seed=seed, steps=3) for seed in (0, 1)]
    train_all(pack, strategy="stack", compiling="always")
    assert pack[0].trained_.startswith("stack, compiled on cpu")


# What cannot be trained ---------------------------------------------------------------------------------------------


def test_modules_that_do_not_fit_are_refused_with_the_shapes_that_do():
    with pytest.raises(InputError, match=r"encoder cannot take inputs of shape \(2, 6\).*\(n, 6\) -> \(n, m\)"):
        vae(encoder=nn.Linear(5, 4)).fit(X)
    with pytest.raises(InputError, match=r"decoder cannot take inputs of shape \(2, 2\).*\(n, 2\) -> \(n, 6\)"):
        vae(decoder=own_decoder(3)).fit(X)
    with pytest.raises(InputError, match=r"decoder maps \(2, 2\) to \(2, 5\): expected \(n, 2\) -> \(n, 6\)"):
        vae(decoder=nn.Linear(2, 5)).fit(X)
    with pytest.raises(InputError, match="expected Module or None"):
        vae(encoder=nn.Linear).fit(X)


def test_networks_that_are_no_function_of_weights_and_batch_are_refused():
    with pytest.raises(InputError, match=r"draws random numbers, see 1 \(Dropout\).*\.eval\(\)"):
        vae(encoder=nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.01))).fit(X)
    norm = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
    with pytest.raises(InputError, match=r"changes its buffer '1\.running_mean'.*GroupNorm"):
        vae(encoder=norm).fit(X)
    assert vae(encoder=norm.eval()).fit(X).transform(X).shape == (200, 2)


def test_settings_that_contradict_each_other_are_refused(tmp_path):
    with pytest.raises(InputError, match="pass encoder= or decoder="):
        BetaVAE(keep_weights=True, steps=2).fit(X)
    (tmp_path / "mine.py").write_text(BUILD)
    for other in ({"encoder": own_encoder()}, {"decoder": own_decoder()}, {"keep_weights": True}):
        with pytest.raises(InputError, match="a function brings its own modules and weights"):
            BetaVAE(latent_dim=2, steps=2, network=f"{tmp_path}/mine.py:build", **other).fit(X)
    with pytest.raises(InputError, match="infogan-cr builds its own networks"):
        small_method("infogan-cr", encoder=own_encoder()).fit(X)
    with pytest.raises(InputError, match=r"'auto' or 'conv' or 'mlp' or text such as 'mine.py:build'"):
        BetaVAE(network="cnn").fit(X)


# Recipes ------------------------------------------------------------------------------------------------------------


def test_recipes_without_networks_of_the_user_are_what_they_were():
    assert not {"encoder", "decoder", "keep_weights"} & set(BetaVAE().recipe())


def test_a_module_is_described_by_all_that_decides_the_result():
    def summary(module, **settings):
        return describe_module(module, **settings).summary

    assert summary(own_encoder()) == summary(own_encoder())  # weights are drawn anew
    assert summary(own_encoder(), keep_weights=True) != summary(own_encoder(), keep_weights=True)
    assert summary(Scaled()) == summary(Scaled())
    assert summary(Scaled(factor=2.0)) != summary(Scaled())
    assert summary(Scaled(start=1.0)) != summary(Scaled())  # no one resets this parameter
    frozen = own_encoder()
    same = clone(vae(encoder=frozen)).encoder
    frozen[0].requires_grad_(False)
    assert summary(frozen) != summary(same)
    assert summary(same.eval()) != summary(own_encoder())
    relu, gelu = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Sequential(nn.Linear(2, 2), nn.GELU())
    assert summary(relu) != summary(gelu)


def test_one_module_is_one_value_of_a_sweep():
    runs = unweave.sweep(SquaresXY(points=40), vae(), encoder=own_encoder(), seed=[0, 1])
    assert len(runs) == 2
    assert [run.recipe()["method"]["encoder"] for run in runs] == [describe_module(own_encoder()).summary] * 2


# Saving and loading -------------------------------------------------------------------------------------------------


def test_a_saved_method_is_loaded_with_the_modules_it_was_trained_with(tmp_path):
    method = vae().fit(X)
    method.save(tmp_path / "m")
    again = unweave.load(tmp_path / "m", encoder=own_encoder(), decoder=own_decoder())
    np.testing.assert_array_equal(again.transform(X), method.transform(X))
    assert again.diagnosis_ == method.diagnosis_
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"config.json", "model.safetensors"}
    architecture = json.loads((tmp_path / "m" / "config.json").read_text())["networks"]["encoder"]["architecture"]
    assert architecture == repr(own_encoder())


def test_loading_without_the_right_modules_says_what_to_pass(tmp_path):
    vae().fit(X).save(tmp_path / "m")
    advice = r"encoder=Sequential \(225 param.*unweave.load\('.*m', encoder=\.\.\., decoder=\.\.\.\)"
    with pytest.raises(InputError, match=advice):
        unweave.load(tmp_path / "m")
    wider = nn.Sequential(nn.Linear(6, 13), nn.LayerNorm(13), nn.GELU(), nn.Linear(13, 9))
    with pytest.raises(InputError, match="trained with another encoder"):
        unweave.load(tmp_path / "m", encoder=wider, decoder=own_decoder())
    relu = own_encoder()
    relu[2] = nn.ReLU()  # the weights fit
    with pytest.raises(InputError, match="trained with another encoder"):
        unweave.load(tmp_path / "m", encoder=relu, decoder=own_decoder())
    small_method("beta-vae").fit(X).save(tmp_path / "plain")
    with pytest.raises(InputError, match="saved without encoder="):
        unweave.load(tmp_path / "plain", encoder=own_encoder())


def test_changed_code_of_a_class_is_a_warning(tmp_path):
    def define(sign):
        source = f"class Signed(nn.Linear):\n    def forward(self, x):\n        return {sign}super().forward(x)\n"
        names = {"nn": nn, "__name__": "notebook"}
        exec(source, names)
        return names["Signed"](6, 4)

    method = vae(encoder=define("-")).fit(X)
    method.save(tmp_path / "m")
    same = unweave.load(tmp_path / "m", encoder=define("-"), decoder=own_decoder())
    np.testing.assert_array_equal(same.transform(X), method.transform(X))
    with pytest.warns(RuntimeWarning, match="the code of the encoder is not the one"):
        unweave.load(tmp_path / "m", encoder=define("+"), decoder=own_decoder())


def test_names_in_the_users_modules_are_never_renamed(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.likelihood = nn.Linear(6, 3)  # the former name of a setting

        def forward(self, x):
            return self.likelihood(x)

    method = CNNClassifier(latent_dim=2, steps=2, encoder=Odd()).fit(X, Y)
    method.save(tmp_path / "m")
    np.testing.assert_array_equal(unweave.load(tmp_path / "m", encoder=Odd()).predict(X), method.predict(X))


# A function in a file -----------------------------------------------------------------------------------------------

BUILD = textwrap.dedent("""
    from math import prod
    from pathlib import Path

    from torch import nn

    with Path(__file__).with_name("executed").open("a") as file:
        file.write("x")


    def build(shape, latent_dim):
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), 5), nn.Tanh())
        nn.init.constant_(encoder[1].bias, 0.5)
        return encoder, nn.Linear(latent_dim, prod(shape))


    def alone(shape, latent_dim):
        return nn.Linear(prod(shape), 7)


    def broken(shape):
        return None


    number = 3
""")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(BUILD)
    return path


def test_a_function_builds_the_networks_with_the_weights_of_the_seed(mine):
    methods = [BetaVAE(latent_dim=2, steps=2, seed=s, network=f"{mine}:build") for s in (0, 0, 1)]
    first, again, other = (initialize_network(m).encoder.module[1] for m in validate(methods))
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)
    assert bool((other.bias == 0.5).all())
    assert methods[0].fit(X).inverse_transform(methods[0].transform(X)).shape == X.shape


def test_a_method_without_decoder_takes_an_encoder_alone(mine):
    assert CNNClassifier(latent_dim=2, steps=2, network=f"{mine}:alone").fit(X, Y).transform(X).shape == (200, 2)
    assert CNNClassifier(latent_dim=2, steps=2, network=f"{mine}:build").fit(X, Y).transform(X).shape == (200, 2)
    with pytest.raises(InputError, match="returned Linear: expected two torch modules"):
        BetaVAE(latent_dim=2, steps=2, network=f"{mine}:alone").fit(X)


def test_what_is_no_such_function_is_refused(mine):
    with pytest.raises(InputError, match=r"mine.py:broken failed for shape=\(6,\), latent_dim=2: TypeError"):
        BetaVAE(latent_dim=2, steps=2, network=f"{mine}:broken").fit(X)
    with pytest.raises(InputError, match=r"mine.py:number is no function"):
        BetaVAE(latent_dim=2, steps=2, network=f"{mine}:number").fit(X)
    with pytest.raises(InputError, match=r"no network in .*mine.py named 'built'; did you mean 'build'"):
        BetaVAE(latent_dim=2, steps=2, network=f"{mine}:built").fit(X)
    with pytest.raises(InputError, match=r"no Python file.*path/to/mine.py:build"):
        BetaVAE(latent_dim=2, steps=2, network=f"{mine}x.py:build").fit(X)


def test_loading_executes_no_file_that_the_caller_does_not_name(mine, tmp_path):
    method = BetaVAE(latent_dim=2, steps=2, network=f"{mine}:build").fit(X)
    method.save(tmp_path / "m")
    before = (tmp_path / "executed").read_text()
    execute_file.cache_clear()
    with pytest.raises(InputError, match=r'mine.py:build \(sha256 .*network="path/to/mine.py:build"'):
        unweave.load(tmp_path / "m")
    assert (tmp_path / "executed").read_text() == before
    again = unweave.load(tmp_path / "m", network=f"{mine}:build")
    np.testing.assert_array_equal(again.transform(X), method.transform(X))


def test_a_forged_model_executes_nothing(mine, tmp_path):
    """Whoever can write a config can also compute its checksum, so the checksum protects nobody from forgery."""
    BetaVAE(latent_dim=2, steps=2, network=f"{mine}:build").fit(X).save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    del config["checksum"], config["networks"]
    config["params"]["network"] = f"{mine}:build"
    path.write_text(json.dumps(config | {"checksum": recipe_hash(config, 16)}))
    before = (tmp_path / "executed").read_text()
    execute_file.cache_clear()
    with pytest.raises(InputError, match="loading executes no code"):
        unweave.load(tmp_path / "m")
    assert (tmp_path / "executed").read_text() == before


def test_an_edited_file_is_another_network(mine, tmp_path):
    settings = {"latent_dim": 2, "steps": 2, "network": f"{mine}:build"}
    method = BetaVAE(**settings).fit(X)
    method.save(tmp_path / "m")
    before = unweave.Run(SquaresXY(), BetaVAE(**settings))
    assert before.recipe()["method"]["network"].startswith("mine.py:build (sha256 ")
    key = before.key
    mine.write_text(BUILD.replace("Tanh", "Sigmoid"))
    assert unweave.Run(SquaresXY(), BetaVAE(**settings)).key != key
    with pytest.raises(InputError, match=r"another version of mine.py:build"):
        unweave.load(tmp_path / "m", network=f"{mine}:build")


def test_networks_travel_to_machines_without_the_users_files(mine, tmp_path):
    methods = [BetaVAE(latent_dim=2, steps=2, network=f"{mine}:build"), vae(encoder=Scaled(2.0))]
    recipes = [method.recipe() for method in methods]
    homes = [module for method in methods for module in attach_user_code(method)]
    assert sys.modules[__name__] in homes
    for module in homes:
        cloudpickle.register_pickle_by_value(module)
    (tmp_path / "sent").write_bytes(cloudpickle.dumps((methods, X)))
    mine.unlink()
    code = "import json, pickle, sys\nmethods, x = pickle.load(open(sys.argv[1], 'rb'))\n"
    code += "print(json.dumps([[m.recipe() for m in methods], [m.fit(x).transform(x).shape for m in methods]]))"
    source = str(Path(unweave.__file__).parents[1])  # without the tests
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "sent")],
        capture_output=True, text=True, check=True, timeout=120, cwd=tmp_path, env=os.environ | {"PYTHONPATH": source},
    )  # fmt: skip
    assert json.loads(out.stdout) == [recipes, [[200, 2], [200, 2]]]


# Runs ---------------------------------------------------------------------------------------------------------------


def test_runs_with_modules_are_trained_once_and_scored_later(tmp_path):
    data = SquaresXY(points=40, size=8, side=3)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.Flatten(), nn.LazyLinear(6))
    runs = unweave.sweep(data, BetaVAE(latent_dim=2, steps=5, encoder=encoder), seed=[0, 1])
    assert len(unweave.execute(runs, tmp_path, metrics=["mcc"])) == 2
    table = unweave.execute(runs, tmp_path, metrics=["translation-difficulty"])  # needs the decoder, and so the modules
    assert table["encoder"].nunique() == 1
    assert "translation-difficulty[linear].relative" in table or "translation-difficulty.relative" in table
