"""Execution of single runs, and of packs that need more than the memory of the device."""

import json
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch

from unweave import InputError, Method, Run, catalog, execute, sweep
from unweave.data.own_data import OwnData
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.experiments import runner
from unweave.experiments.run import find_runs
from unweave.experiments.runner import execute_run
from unweave.methods import PCA, BetaVAE, HessianICA, LinearICA
from unweave.utils.atomic import atomic_folder, write_atomic
from unweave.utils.locks import try_lock_all

DATA = SquaresXY(points=60, size=12, side=4)


SCORERS = {name: catalog.find(catalog.metrics, name) for name in ("mcc", "local-isometry")}


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


def test_a_folder_appears_complete_or_not_at_all(tmp_path):
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
from tests.experiments.test_runner import DATA, PCA, Run
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


def test_a_metric_that_does_not_fit_the_data_is_asked_for_once(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(40, 4)))
    run, said = Run(OwnData(path=tmp_path / "x.npy"), PCA()), []
    execute_run(run, tmp_path / "r", SCORERS)
    assert json.loads((tmp_path / "r" / "scores.json").read_text())["mcc"] is None
    execute_run(run, tmp_path / "r", SCORERS, said.append)
    assert "already finished" in said[-1]


def test_a_folder_that_cannot_be_written_is_noticed_before_training(tmp_path):
    (tmp_path / "file").write_text("")

    class Never(Method):
        """Must not be reached."""

        def learn(self, data):
            raise AssertionError("learned before the place was tried")

        def encode(self, x):
            return x

    with pytest.raises(InputError, match="cannot write to"):
        execute_run(Run(DATA, Never()), tmp_path / "file" / "r", {})


def test_of_many_processes_one_trains_and_the_others_find_the_run_finished(tmp_path):
    """Another one with other settings and the same --out waits too, and is refused; no work is thrown away."""
    code = SLOW.replace("time.sleep(30)", "while not Path('go').exists(): time.sleep(0.01)")
    (tmp_path / "pausing.py").write_text("from pathlib import Path\n" + code)
    command = [sys.executable, "-m", "unweave", "fit", "pausing.py:Slow", "squares-xy", "--metrics", "mcc"]
    command += ["--out", "run", "--data.points"]
    start = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen([*command, "50"], **start)
    assert first.stdout.readline() == "learning\n"
    others = [subprocess.Popen([*command, points], **start) for points in ("60", *["50"] * 2)]
    try:
        lines = [[process.stderr.readline() for _ in range(2)] for process in others]
    finally:
        (tmp_path / "go").touch()  # otherwise all would wait forever
    texts = [process.communicate(timeout=60) for process in (first, *others)]
    assert all(pair[0] == "computing the run key\n" for pair in lines)
    assert all("waiting for another process that works on run (it holds " in pair[1] for pair in lines)
    assert all(".locks/run)" in pair[1] for pair in lines)
    assert [process.returncode for process in (first, *others)] == [0, 2, *[0] * 2], texts
    assert "run holds another run" in texts[1][1] and "choose another --out" in texts[1][1]
    assert not any("learning" in out for out, _ in texts[1:])
    assert all("already finished" in err for _, err in texts[2:])
    names = {p.name for p in tmp_path.iterdir() if not p.name.startswith("__")}
    assert names == {"pausing.py", "go", "run"}


def test_a_process_that_trains_the_same_run_elsewhere_is_waited_for(tmp_path):
    """Their checkpoint has one name; a run that is finished waits for writers of its own folder only."""
    run, said = Run(DATA, PCA()), []
    execute_run(run, tmp_path / "finished", SCORERS)
    with try_lock_all(tmp_path, [run.key]) as locked:
        assert locked
        execute_run(run, tmp_path / "finished", SCORERS)

    def release(text):
        said.append(text)
        if "waiting" in text:
            other.__exit__(None, None, None)

    other = try_lock_all(tmp_path, [run.key])
    assert other.__enter__()
    execute_run(run, tmp_path / "elsewhere", SCORERS, release)
    assert "waiting for another process" in said[0] and run.key in said[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "finished"]


def test_a_finished_run_in_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    run = Run(DATA, PCA())
    execute_run(run, tmp_path / "r", SCORERS)
    monkeypatch.setattr("unweave.experiments.runner.os.access", lambda path, mode: False)
    monkeypatch.setattr("unweave.experiments.runner.lock_all", None)
    assert execute_run(run, tmp_path / "r", SCORERS).scores


# Packs and the memory of the device ---------------------------------------------------------------------------------


def test_a_pack_that_is_too_large_for_the_device_is_trained_in_halves(tmp_path, monkeypatch):
    sizes, real = [], runner.fit_pack

    def small(methods, *args, **settings):
        sizes.append(len(methods))
        if len(methods) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(methods, *args, **settings)

    monkeypatch.setattr(runner, "fit_pack", small)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(5))
    assert execute(runs, tmp_path, metrics=["mcc"])["seed"].tolist() == [0, 1, 2, 3, 4]
    assert sizes == [5, 2, 3, 1, 2] and not list(tmp_path.glob(".*.checkpoint"))


def test_a_pack_with_a_checkpoint_resumes_after_a_memory_error(tmp_path, monkeypatch):
    sizes, real = [], runner.fit_pack

    def late(methods, *args, **settings):
        sizes.append(len(methods))
        found = real(methods, *args, **settings)
        if len(sizes) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    monkeypatch.setattr(runner, "fit_pack", late)
    execute(sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(3)), tmp_path)
    assert sizes == [3, 3]


def test_one_model_that_is_too_large_for_the_device_is_named(tmp_path, monkeypatch):
    def none(*args, **settings):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(runner, "fit_pack", none)
    with pytest.warns(match="does not fit into the memory of the device .*: use a smaller network or batch_size"):
        execute([Run(DATA, BetaVAE(steps=2))], tmp_path, metrics=["mcc"])
