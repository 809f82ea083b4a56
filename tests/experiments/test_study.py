"""Runs: addresses, folders that appear whole, and what survives."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch

from unweave import InputError, Method, Run, catalog, execute, load, rows, sweep
from unweave.data.downloads import MissingData
from unweave.data.own_data import OwnData
from unweave.datasets import MNIST, GaussianMixture, SquaresXY
from unweave.experiments import evaluation, pack_training, runner
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import find_runs, read_run
from unweave.experiments.runner import execute_run
from unweave.methods import PCA, BetaVAE, HessianICA, LinearICA
from unweave.utils.storage import atomic_folder, write_atomic

DATA = SquaresXY(points=60, size=12, side=4)
SCORERS = {name: catalog.find(catalog.metrics, name) for name in ("mcc", "local-isometry")}


def test_a_key_is_the_recipe_and_nothing_else():
    assert Run(DATA, PCA()).key == Run(SquaresXY(points=60, size=12, side=4), PCA(latent_dim=2)).key
    different = [Run(DATA, PCA(seed=1)), Run(DATA, LinearICA()), Run(SquaresXY(points=61, size=12, side=4), PCA())]
    assert len({r.key for r in [Run(DATA, PCA()), *different]}) == 4


def test_data_that_are_not_here_are_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(MNIST, "load", missing := Mock(side_effect=MissingData("digits are not here")))
    digits, bad = Run(MNIST(), PCA()), Run(DATA, PCA(latent_dim=10**6))
    for calls in (1, 2):
        with pytest.warns(RuntimeWarning, match="digits are not here"):
            assert execute([digits], tmp_path, metrics=[]).empty
        assert missing.call_count == calls
    assert str(no_finished_runs(tmp_path, [digits])) == "no run is done: pca on mnist: digits are not here"
    with pytest.warns(RuntimeWarning):
        execute([bad], tmp_path, metrics=[])
    execute([bad], tmp_path, metrics=[])  # not again
    assert re.search(
        r"done: pca on squares-xy: .*10{6}.*\. To try again, remove", str(no_finished_runs(tmp_path, [bad]))
    )


def test_a_sweep_is_the_product_of_its_axes():
    runs = sweep(DATA, PCA(), latent_dim=[1, 2], seed=range(3))
    assert sorted((r.method.latent_dim, r.method.seed) for r in runs) == [(d, s) for d in (1, 2) for s in range(3)]
    with pytest.raises(InputError, match="beta"):
        sweep(DATA, PCA(), beta=[1])


def test_a_study_gives_a_row_per_run_and_a_folder_per_key(tmp_path):
    runs = [*sweep(DATA, PCA(), latent_dim=[1, 2]), Run(DATA, HessianICA(latent_dim=2))]
    table = execute(runs, tmp_path)
    assert list(table["method"]) == ["pca", "pca", "hessian-ica"]
    assert list(table["latent_dim"]) == [1, 2, 2]
    assert table["n_neighbors"].isna().tolist() == [True, True, False]
    assert table["mcc"].between(0, 1).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(r.key for r in runs)
    for run in runs:
        files = {p.name for p in (tmp_path / run.key).iterdir()}
        assert files == {
            "config.json",
            "model.safetensors",
            "run.json",
            "scores.json",
            "env.json",
            "codes.parquet",
            "pairs.parquet",
        }
        codes = load(tmp_path / run.key).transform(DATA.load().render(DATA.load().sources))
        assert np.array_equal(codes, read_run(tmp_path / run.key).codes.astype(codes.dtype))


def test_a_finished_run_is_not_repeated_and_its_row_stays_the_same(tmp_path):
    first = execute([Run(DATA, PCA())], tmp_path)
    stamp = (tmp_path / Run(DATA, PCA()).key / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []
    second = execute([Run(DATA, PCA())], tmp_path, notify=said.append)
    pd.testing.assert_frame_equal(first, second)
    assert (tmp_path / Run(DATA, PCA()).key / "model.safetensors").stat().st_mtime_ns == stamp
    assert any("finished before" in text for text in said)


def test_a_score_asked_for_later_is_added(tmp_path):
    execute([Run(DATA, PCA())], tmp_path, metrics=["mcc"])
    table = execute([Run(DATA, PCA())], tmp_path, metrics=["local-isometry"])
    assert {"mcc", "local-isometry"} <= set(table.columns)
    direct = execute([Run(DATA, PCA())], tmp_path / "b", metrics=["local-isometry"])
    assert table["local-isometry"][0] == direct["local-isometry"][0]


def test_the_same_recipe_gives_the_same_files_to_the_bit(tmp_path):
    for place in ("a", "b"):
        execute_run(Run(DATA, HessianICA(seed=1)), tmp_path / place, SCORERS)
    for name in ("model.safetensors", "scores.json", "run.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_classes_and_noise_are_left_out_of_the_correlation(tmp_path):
    done = execute_run(Run(GaussianMixture(points=300), PCA()), tmp_path / "r", SCORERS)
    assert [f.name for f in done.factors[:3]] == ["cluster", "z1", "z2"]
    truth = done.truth[:, 1:3]
    assert done.scores["mcc"] == pytest.approx(SCORERS["mcc"](truth, done.codes))


def test_another_run_in_the_way_is_not_overwritten(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "r", {})
    with pytest.raises(InputError, match="holds another run"):
        execute_run(Run(DATA, LinearICA()), tmp_path / "r", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="is not a run"):
        execute_run(Run(DATA, PCA()), tmp_path / "other", {})
    assert (tmp_path / "other" / "thesis.tex").read_text() == "precious"


def test_a_metric_that_fails_does_not_cost_the_model(tmp_path):
    def broken(truth, codes):
        raise InputError("no luck")

    broken.facts = SCORERS["mcc"].facts
    with pytest.warns(UserWarning, match="broken was not computed: no luck"):
        done = execute_run(Run(DATA, PCA()), tmp_path / "r", {"broken": broken} | SCORERS)
    assert set(done.scores) == {"mcc", "local-isometry"}


def test_an_edited_method_of_ones_own_is_another_run(tmp_path):
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


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "r") as tmp:
        (tmp / "half").write_text("x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(tmp_path / "r") as tmp:
        (tmp / "file").write_text("1")
        assert not (tmp_path / "r").exists()
    with pytest.raises(InputError, match="exists already"), atomic_folder(tmp_path / "r"):
        pass
    with atomic_folder(tmp_path / "s") as tmp:
        (tmp / "file").write_text("2")
        (tmp_path / "s").mkdir()
        (tmp_path / "s" / "file").write_text("another process was first")
    assert (tmp_path / "s" / "file").read_text() == "another process was first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "s"]


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"), atomic_folder(tmp_path / "file" / "r"):
        pass
    with pytest.raises(InputError, match="cannot write"):
        write_atomic(tmp_path / "file" / "page.html", "x")


SLOW = """
import signal
import time
from unweave import Method

# A process that was started in the background is deaf to Ctrl-C, as are its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Slow(Method):
    '''Takes its time.'''
    paper = "none"

    def learn(self, data):
        self.x_ = data.collect(10, None).x
        print("learning", flush=True)
        time.sleep(30)

    def encode(self, x):
        return x.flatten(1)[:, :2]
"""


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_fit_leaves_nothing_behind(tmp_path, stop, code):
    (tmp_path / "slow.py").write_text(SLOW)
    command = [
        sys.executable,
        "-m",
        "unweave",
        "fit",
        "slow.py:Slow",
        "squares-xy",
        "--data.points",
        "20",
        "--out",
        "r",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "learning\n"
        process.send_signal(stop)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith("__")] == ["slow.py"]


def test_a_killed_fit_leaves_no_run_and_the_next_one_finishes(tmp_path):
    """SIGKILL while the folder is being written: what is there is under a hidden name, and is not taken for a run."""
    code = f"""
import os, signal
from unweave.experiments import run
from unweave.experiments.runner import execute_run
from tests.experiments.test_study import DATA, PCA, Run
from pathlib import Path
run._write_codes = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
execute_run(Run(DATA, PCA()), Path({str(tmp_path / "r")!r}), {{}})
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "r").exists()
    with pytest.raises(InputError, match="holds no runs"):
        find_runs([tmp_path])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execute_run(Run(DATA, PCA()), tmp_path / "r", SCORERS)
    assert find_runs([tmp_path]) == [tmp_path / "r"]
    assert json.loads((tmp_path / "r" / "scores.json").read_text())
    assert time.time() - (tmp_path / "r").stat().st_mtime < 60


def test_altered_run_files_are_refused_whatever_is_altered(tmp_path):
    execute_run(Run(DATA, PCA()), tmp_path / "r", SCORERS)
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


def test_a_metric_that_does_not_fit_the_data_is_asked_for_once(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(40, 4)))
    run, said = Run(OwnData(path=tmp_path / "x.npy"), PCA()), []
    execute_run(run, tmp_path / "r", SCORERS)
    assert json.loads((tmp_path / "r" / "scores.json").read_text())["mcc"] is None
    execute_run(run, tmp_path / "r", SCORERS, said.append)
    assert "kept" in said[-1]


def test_a_place_that_cannot_be_written_to_is_found_before_the_learning(tmp_path):
    (tmp_path / "file").write_text("")

    class Never(Method):
        """Must not be reached."""

        def learn(self, data):
            raise AssertionError("learned before the place was tried")

        def encode(self, x):
            return x

    with pytest.raises(InputError, match="cannot write to"):
        execute_run(Run(DATA, Never()), tmp_path / "file" / "r", {})


def test_numpy_numbers_and_names_of_data_are_welcome_in_a_sweep(tmp_path):
    runs = sweep("squares-xy", PCA(), seed=np.arange(2), latent_dim=np.array([1, 2]))
    assert [type(r.method.seed) for r in runs] == [int] * 4
    assert runs[0].key == sweep(SquaresXY(), PCA(), seed=[0], latent_dim=[1])[0].key
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(9, 3)))
    assert sweep(tmp_path / "x.npy", PCA(), seed=[0])[0].data.title() == "x.npy"


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


def test_files_of_one_name_and_classes_of_a_catalog_name_are_told_apart(tmp_path):
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


def test_an_axis_of_tuples_keeps_its_tuples():
    class Tupled(Method):
        """Has a setting that is a tuple."""

        parts: tuple[int, ...] = (1,)

        def learn(self, data):
            self.done_ = 1

        def encode(self, x):
            return x

    assert [r.method.parts for r in sweep(DATA, Tupled(), parts=[(1, 2), (3, 4)])] == [(1, 2), (3, 4)]


def test_runs_that_are_scored_at_once_score_as_they_would_alone(tmp_path, monkeypatch):
    model = BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3)
    runs = sweep(DATA, model, seed=range(3))
    asked = ["mcc", "local-isometry", "translation-difficulty"]
    alone = execute(runs, tmp_path / "alone", metrics=asked)
    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    said: list[str] = []
    together = execute(runs, tmp_path / "together", metrics=asked, notify=said.append)
    assert any("scoring 3 more, several at once" in line for line in said)
    names = [column for column in alone if column != "seconds"]
    pd.testing.assert_frame_equal(alone[names], together[names], check_exact=True)


def test_a_run_that_cannot_be_scored_costs_no_other(tmp_path, monkeypatch):
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    plain = BetaVAE.transform

    def transform(self, X):
        if self.seed == 1:
            raise InputError("no codes today")
        return plain(self, X)

    monkeypatch.setattr(BetaVAE, "transform", transform)
    with pytest.warns(RuntimeWarning, match="no codes today"):
        found = execute(runs, tmp_path, metrics=["mcc"])
    assert found["seed"].tolist() == [0, 2]


def test_a_metric_that_cannot_be_sent_to_another_process_is_computed_here(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no processes today")

    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    monkeypatch.setattr(evaluation, "Parallel", broken)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    with pytest.warns(RuntimeWarning, match="one does it"):
        found = execute(runs, tmp_path, metrics=["mcc"])
    assert found["mcc"].notna().sum() == 3


def test_a_single_processor_scores_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    how = runner.RunSettings(catalog.find_metrics(["mcc"]), jobs=1)
    assert not runner.execute_pack(runs, [tmp_path / run.key for run in runs], how).errors
    time.sleep(1.5)  # who watches over helpers would have ended this process by now
    assert len(find_runs([tmp_path])) == 3


def test_a_pack_that_is_too_large_for_the_device_is_trained_in_halves(tmp_path, monkeypatch):
    sizes, real = [], pack_training.fit_pack

    def small(methods, *args, **settings):
        sizes.append(len(methods))
        if len(methods) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(methods, *args, **settings)

    monkeypatch.setattr(pack_training, "fit_pack", small)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(5))
    assert execute(runs, tmp_path, metrics=["mcc"])["seed"].tolist() == [0, 1, 2, 3, 4]
    assert sizes == [5, 2, 3, 1, 2] and not list(tmp_path.glob(".*.checkpoint"))


def test_a_pack_that_has_fitted_before_goes_on_from_its_checkpoint_when_memory_was_short(tmp_path, monkeypatch):
    sizes, real = [], pack_training.fit_pack

    def late(methods, *args, **settings):
        sizes.append(len(methods))
        found = real(methods, *args, **settings)
        if len(sizes) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    monkeypatch.setattr(pack_training, "fit_pack", late)
    execute(sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(3)), tmp_path)
    assert sizes == [3, 3]


def test_one_model_that_is_too_large_for_the_device_is_named(tmp_path, monkeypatch):
    def none(*args, **settings):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(pack_training, "fit_pack", none)
    with pytest.warns(match="does not fit into the memory of the device .*: a smaller batch_size"):
        execute([Run(DATA, BetaVAE(steps=2))], tmp_path, metrics=["mcc"])
