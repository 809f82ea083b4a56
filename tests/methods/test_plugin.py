"""A method in one file of the user's own takes part in every command; nothing of the package is edited."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from unweave import catalog
from unweave.cli import main as cli
from unweave.metrics import translation_difficulty

MINE = '''
"""A method of my own."""

from matplotlib.figure import Figure
from torch import nn

from unweave.methods.neural import Neural


def scatter(method, x, labels):
    """Draw the first two codes."""
    figure = Figure()
    z = method.transform(x)
    figure.add_subplot().scatter(z[:, 0], z[:, 1], c=labels)
    return figure


class Mine(Neural):
    """Linear autoencoder with features of two codes."""

    latent_dim: int = 4
    """Number of codes."""

    def build(self, shape):
        net = nn.Module()
        net.encoder, net.decoder = nn.Linear(shape[0], self.latent_dim), nn.Linear(self.latent_dim, shape[0])
        return net

    def loss(self, net, batch):
        error = (net.decoder(net.encoder(batch["x"])) - batch["x"]).square().sum(1).mean()
        return {"loss": error, "error": error}

    def encode(self, x):
        return self.apply_network(lambda net, rows: net.encoder(rows), x)

    def decode(self, z):
        return self.apply_network(lambda net, rows: net.decoder(rows), z)

    def figures(self):
        return (*super().figures(), scatter)

    def log_likelihood(self, history):
        return -0.5 * float(history["error"].mean())

    def feature_groups(self):
        return [[0, 1], [2, 3]]
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the method's file, a table, and two runs."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "mine.py").write_text(MINE)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    table.assign(kind=np.arange(60) % 3).to_csv(folder / "x.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed in (0, 1):
            options = ["--steps", "20", "--seed", str(seed), "--data.factors", "kind", "--metrics", "mcc", "--json"]
            command("fit", "mine.py:Mine", "x.csv", *options, "--out", f"runs/{seed}")
    return folder


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def command(*args):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(args))
    assert not stopped.value.code


def test_it_is_fitted_and_scored(folder, capsys):
    scores = json.loads((folder / "runs" / "0" / "scores.json").read_text())
    assert 0 <= scores["mcc"] <= 1
    command("score", "runs/0", "--metrics", "mcc", "dci[trees]", "--json")
    assert "mcc" in json.loads(capsys.readouterr().out)


def test_its_own_figure_is_drawn_beside_ours(folder):
    command("draw", "runs/0", "x.csv", "--method", "mine.py:Mine", "--out", "figures")
    assert {path.name for path in (folder / "figures").iterdir()} >= {"curves.png", "along-codes.png", "scatter.png"}


def test_runs_are_selected_by_its_likelihood(folder, capsys):
    capsys.readouterr()
    command("select", "runs", "--by", "likelihood", "--json")
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    log_volume = np.log(pd.read_csv("x.csv").drop(columns="kind").std(ddof=0)).sum()  # columns were standardized
    for seed in (0, 1):
        end = pd.read_parquet(folder / "runs" / str(seed) / "history.parquet")["error"].tail(2).mean()
        env = json.loads((folder / "runs" / str(seed) / "env.json").read_text())
        assert env["log_likelihood"] == pytest.approx(-0.5 * end - log_volume, rel=1e-5)


def test_its_features_are_taken_as_wholes():
    method = catalog.find(catalog.methods, "mine.py:Mine").load("runs/0")
    z = method.transform(pd.read_csv("x.csv").drop(columns="kind"))
    named = translation_difficulty(method, z, features=[[0, 1], [2, 3]])
    assert translation_difficulty(method, z) == named != translation_difficulty(method, z, features=[[0], [1], [2, 3]])


INTERACTIVE = """
import numpy as np, unweave
from torch import nn

class Line(unweave.Neural):
    def build(self, shape):
        return nn.ModuleDict({"encoder": nn.Linear(shape[0], 1), "decoder": nn.Linear(1, shape[0])})
    def loss(self, net, batch):
        error = net["decoder"](net["encoder"](batch["x"])) - batch["x"]
        return {"loss": error.square().sum(1).mean()}
    def encode(self, x):
        return self.apply_network(lambda net, part: net["encoder"](part), x)

print(Line(latent_dim=1, steps=3).fit_transform(np.eye(8)).shape)
"""


def test_a_network_typed_into_an_interpreter_is_fitted():
    """Such a class has no source file; only runs that are saved need one."""
    done = subprocess.run([sys.executable, "-"], input=INTERACTIVE, capture_output=True, text=True, check=False)
    assert done.stdout == "(8, 1)\n", done.stderr
