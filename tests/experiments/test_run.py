"""Run keys, run folders, rows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import remove_manifest
from unweave import InputError, Run, catalog, load, rows
from unweave.data.own_data import OwnData
from unweave.datasets import SquaresXY
from unweave.experiments.run import find_runs, read_run
from unweave.experiments.runner import execute_run
from unweave.methods import PCA, LinearICA

DATA = SquaresXY(points=60, size=12, side=4)


SCORERS = {name: catalog.find(catalog.metrics, name) for name in ("mcc", "local-isometry")}


OWN = """
import unweave
class PCA(unweave.Method):
    'Not the one of the catalog.'
    factor: float = {factor}
    def learn(self, data):
        x = data.collect(10, None).x.flatten(1).numpy()
        self.w_, self.count_, self.names_ = x.std(0) * self.factor, x.max(), ["a", "b"]
    def encode(self, x):
        return x.flatten(1)[:, :2] * float(self.w_.sum())
"""


def test_a_key_is_the_recipe_and_nothing_else():
    assert Run(DATA, PCA()).key == Run(SquaresXY(points=60, size=12, side=4), PCA(latent_dim=2)).key
    different = [Run(DATA, PCA(seed=1)), Run(DATA, LinearICA()), Run(SquaresXY(points=61, size=12, side=4), PCA())]
    assert len({r.key for r in [Run(DATA, PCA()), *different]}) == 4


def test_an_edited_method_of_a_user_is_another_run(tmp_path):
    source = (Path(__file__).parents[2] / "examples" / "my_method.py").read_text()
    (tmp_path / "mine.py").write_text(source)
    first = Run(DATA, catalog.find(catalog.methods, f"{tmp_path}/mine.py:Whitening")()).key
    assert Run(DATA, catalog.find(catalog.methods, f"{tmp_path}/mine.py:Whitening")()).key == first
    (tmp_path / "mine.py").write_text(source + "\n# edited\n")
    os.utime(tmp_path / "mine.py", ns=(1, 1))
    assert Run(DATA, catalog.find(catalog.methods, f"{tmp_path}/mine.py:Whitening")()).key != first


def test_rows_of_own_data_without_factors(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(40, 4)))
    done = execute_run(Run(OwnData(path=tmp_path / "x.npy"), PCA()), tmp_path / "r", SCORERS)
    assert set(done.scores) == {"local-isometry"}
    assert done.truth.shape == (40, 0)
    assert rows([tmp_path / "r"])["data"].tolist() == ["x.npy"]


def test_damaged_runs_are_named(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "r", {})
    remove_manifest(tmp_path / "r")
    (tmp_path / "r" / "codes.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not complete"):
        read_run(tmp_path / "r")
    (tmp_path / "r" / "run.json").write_text('{"key"')
    with pytest.raises(InputError, match=r"run.json cannot be read"):
        read_run(tmp_path / "r")
    (tmp_path / "r" / "run.json").write_text("[1]")
    with pytest.raises(InputError, match="not an object"):
        read_run(tmp_path / "r")


def test_runs_are_found_below_a_folder(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "a" / "r", {})
    (tmp_path / ".b.1.tmp").mkdir()
    (tmp_path / ".b.1.tmp" / "run.json").write_text("{}")
    assert find_runs([tmp_path]) == [tmp_path / "a" / "r"]
    with pytest.raises(InputError, match="does not exist"):
        find_runs([tmp_path / "c"])
    (tmp_path / "d").mkdir()
    with pytest.raises(InputError, match="holds no runs"):
        find_runs([tmp_path / "d"])


def test_altered_run_files_are_refused_whatever_is_altered(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "r", SCORERS)
    remove_manifest(tmp_path / "r")
    whole = {name: (tmp_path / "r" / name).read_text() for name in ("run.json", "env.json", "scores.json")}
    changes = {
        "run.json": ["{}", whole["run.json"].replace('"latent_dim"', '"dim"')],
        "env.json": ["{}", whole["env.json"].replace('"kind"', '"sort"'), whole["env.json"].replace('"title"', '"t"')],
        "scores.json": ['{"mcc": "good"}', '{"mcc": [1]}'],
    }
    for name, texts in changes.items():
        for text in texts:
            (tmp_path / "r" / name).write_text(text)
            with pytest.raises(InputError, match="is not complete, or altered"):
                read_run(tmp_path / "r")
            (tmp_path / "r" / name).write_text(whole[name])
    assert read_run(tmp_path / "r").scores


def test_a_run_without_its_model_is_not_finished(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "r", SCORERS)
    (tmp_path / "r" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"model\.safetensors is missing"):
        execute_run(Run(DATA, PCA()), tmp_path / "r", SCORERS)


def test_classes_of_one_name_in_several_files_are_distinguished(tmp_path):
    for place, factor in (("a", 1), ("b", 2)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mm.py").write_text(OWN.format(factor=factor))
    one, two = (catalog.find(catalog.methods, f"{tmp_path / place}/mm.py:PCA") for place in "ab")
    key = Run(DATA, one()).key
    assert Run(DATA, two()).key != key
    assert Run(DATA, one()).key == key
    done = execute_run(Run(DATA, one()), tmp_path / "r", SCORERS)
    with pytest.raises(InputError, match="not of the catalog"):
        load(tmp_path / "r")
    with pytest.raises(InputError, match="another version of your class 'pca'"):
        two.load(tmp_path / "r")
    again = one.load(tmp_path / "r")
    assert isinstance(again.w_, np.ndarray)
    assert again.names_ == ["a", "b"]
    assert np.array_equal(again.transform(DATA), done.codes.astype(np.float32))


def test_a_class_whose_code_cannot_be_read_has_no_key():
    code = "import unweave\nclass M(unweave.Method):\n    def learn(self, d): ...\n    def encode(self, x): return x\n"
    code += "unweave.Run(unweave.datasets.SquaresXY(), M()).key\n"
    out = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, check=False, timeout=60)
    assert "define it in a file" in out.stderr


def test_a_finished_run_says_what_it_holds(tmp_path):
    done = execute_run(Run(DATA, PCA(latent_dim=1, seed=3)), tmp_path / "run", SCORERS)
    text = f"pca on squares-xy, seed 3; 1 code of 60 observations; mcc {done.scores['mcc']:.3g}, local-isometry"
    assert repr(done).startswith(f"<FinishedRun: {text}")
    assert repr(done).endswith(f" s; {tmp_path / 'run'}>")


def test_a_notebook_shows_the_settings_of_a_run(tmp_path):
    page = Run(DATA, PCA(latent_dim=3))._repr_html_()
    assert "pca on squares-xy" in page
    assert "latent_dim=3" in page
    assert "points=60, size=12, side=4" in page
    assert "all settings at their defaults" in Run(DATA, PCA())._repr_html_()
    own = Run(OwnData(path=tmp_path / "<script>.csv"), PCA())
    assert "<script" not in own._repr_html_()
    assert "sha256" not in vars(own.data), "a large file is not read to show its name"


def test_a_notebook_shows_the_scores_of_a_finished_run(tmp_path):
    done = execute_run(Run(DATA, PCA()), tmp_path / "<b>r</b>", SCORERS)
    page = done._repr_html_()
    assert f'<td>mcc</td><td class="uw-number">{done.scores["mcc"]:.3f}</td>' in page
    assert "2 codes of 60 observations" in page
    assert "&lt;b&gt;r&lt;/b&gt;" in page
    assert "No scores" in done._replace(scores={})._repr_html_()
    assert "trust &lt;it&gt;" in done._replace(diagnosis=("trust <it>",))._repr_html_()


def test_a_notebook_shows_rows_of_runs(tmp_path):
    folders = [tmp_path / str(k) for k in (1, 2, 3)]
    for k, folder in enumerate(folders, 1):
        execute_run(Run(DATA, PCA(latent_dim=k)), folder, SCORERS)
    table = rows(folders)
    assert type(table[table["latent_dim"] > 1]) is type(table)
    assert table.best_scores == {"mcc": 1.0, "local-isometry": 1.0}
    best = table["mcc"].astype(float).round(3).max()
    assert f'uw-best">{best:.3f}</td>' in table._repr_html_()
