"""Studies that are killed, started twice, run out of disk, are edited and damaged: real processes, real files."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pandas as pd
import pytest
import torch

import unweave
from unweave import InputError, execute
from unweave.datasets import SwissRoll
from unweave.experiments.run import read_run
from unweave.experiments.study import run_states
from unweave.experiments.study_file import read_study
from unweave.methods import PCA, BetaVAE
from unweave.utils.atomic import is_disk_full
from unweave.utils.locks import try_lock_all

resource = pytest.importorskip("resource", reason="limits of processes need POSIX")

STUDY = '''"""Does it survive?

In every way."""
import unweave
from unweave.datasets import SwissRoll
from unweave.methods import PCA, BetaVAE

data = SwissRoll(points=200)
small = BetaVAE(steps=700, layers=(8,), batch_size=8)
runs = [
    *unweave.sweep(data, PCA(latent_dim=2), seed=range(32)),
    *unweave.sweep(data, small, latent_dim=[2, 3], seed=range(4)),
]
metrics = ["mcc"]
evaluated = 200
'''


def started(*args, **settings):
    """`unweave ...` as a process of its own."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "unweave", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, **settings)


def finished(process, code=0):
    said, wrong = process.communicate(timeout=120)
    assert process.returncode == code, wrong
    assert "Traceback" not in wrong
    return said, wrong


KEPT = ("scores.json", "model.safetensors", "codes.parquet", "history.parquet")


def kept(out: Path) -> dict[str, bytes]:
    """What the runs found, to the bit."""
    paths = [folder / name for folder in out.glob("[!.]*") for name in KEPT]
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths if path.is_file()}


def scores(out: Path) -> dict[str, str]:
    return {folder.name: (folder / "scores.json").read_text() for folder in out.glob("[!.]*")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "survive.py"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def undisturbed(study):
    """What the runs of the study found, which two processes did together, and what these said."""
    out = study.parent / "together"
    both = [started("study", "run", study, "--out", out) for _ in range(2)]
    said = [finished(process) for process in both]
    return kept(out), said


def test_two_processes_share_a_study_and_do_nothing_twice(study, undisturbed):
    found, said = undisturbed
    assert {name.partition("/")[0] for name in found} == {run.key for run in read_study(study).runs}
    assert len(found) == 40 * 3 + 8  # networks have a history
    learned = [line.split("] ")[1] for _, wrong in said for line in wrong.splitlines() if "training;" in line]
    assert len(learned) == 34  # 32 by themselves, and two packs
    assert [path.name for path in (study.parent / "together").glob(".*")] == [".study.json"]


def test_a_study_that_is_killed_at_any_moment_ends_as_if_it_had_not_been(study, undisturbed):
    out, moments, kills = study.parent / "killed", random.Random(0), 0
    while True:
        process = started("study", "run", study, "--out", out)
        try:
            if kills:
                process.wait(timeout=moments.uniform(3, 6) if kills < 3 else 120)
                break
            while process.poll() is None and not list(out.glob(".*.checkpoint")):
                time.sleep(0.02)  # in the middle of a training
            raise subprocess.TimeoutExpired("", 0)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            for folder in out.glob("[!.]*"):
                read_run(folder)  # whatever has a name is whole
    finished(process)
    assert kills > 1
    assert kept(out) == undisturbed[0]
    assert [path.name for path in out.glob(".*")] == [".study.json"]


def test_a_disk_that_refuses_stops_the_study_and_loses_nothing(study, tmp_path):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))  # every file that is longer cannot be written

    _, wrong = finished(started("study", "run", study, "--out", tmp_path / "out", preexec_fn=small), 2)
    assert "cannot write " in wrong and "free disk space and repeat the command; finished runs are not" in wrong
    assert not list((tmp_path / "out").glob("[!.]*")) and not list((tmp_path / "out").glob(".failed/*"))
    _, wrong = finished(started("study", "run", study, "--out", "/proc/unweave"), 2)
    assert "cannot write /proc/unweave" in wrong or "cannot write to /proc" in wrong


@pytest.mark.parametrize("text", ["OSError: [Errno 28] No space left on device", "I/O error: ... (os error 28)"])
def test_a_full_disk_is_known_by_what_libraries_say(text):
    assert is_disk_full(RuntimeError(text)) and not is_disk_full(RuntimeError("something else"))
    try:
        raise InputError("cannot write") from OSError(28, "No space left on device")
    except InputError as error:
        assert is_disk_full(error)


@pytest.mark.parametrize(("text", "guilty"), [("device(s) busy or unavailable", 0), ("device-side assert", 1)])
def test_a_gpu_that_is_lost_stops_the_study_and_is_no_fault_of_runs_to_come(text, guilty, tmp_path, monkeypatch):
    runs = unweave.sweep(SwissRoll(points=50), PCA(latent_dim=1), seed=range(2))

    def lost(*args, **settings):
        raise torch.AcceleratorError(f"CUDA error: {text}")

    monkeypatch.setattr("unweave.experiments.study.execute_pack", lost)
    monkeypatch.setattr("unweave.utils.validation.torch.ones", lost)
    with warnings.catch_warnings(), pytest.raises(InputError, match=r"stopped responding.*Repeat the command"):
        warnings.simplefilter("ignore")
        execute(runs, tmp_path, metrics=[])
    assert len(list(tmp_path.glob(".failed/*"))) == guilty
    monkeypatch.undo()
    assert len(execute(runs, tmp_path, metrics=[])) == len(runs) - guilty


def test_what_killed_processes_left_is_cleared_by_who_claims_it_and_by_no_one_else(tmp_path):
    small = BetaVAE(steps=20, layers=(8,), batch_size=8, latent_dim=2)
    (run,) = unweave.sweep(SwissRoll(points=100), small)
    name = f".{hashlib.sha256(run.key.encode()).hexdigest()[:12]}.checkpoint"
    mine, other = tmp_path / f".{name}.123.tmp", tmp_path / "..0123.checkpoint.123.tmp"
    for path in (mine, other):
        path.touch()
    for key in (run.key, "other"):
        (tmp_path / f".{key}.123.tmp").mkdir()
    execute([run], tmp_path, metrics=["mcc"])
    assert sorted(p.name for p in tmp_path.glob(".*")) == [other.name, ".other.123.tmp"]  # someone may be writing these


DATA = SwissRoll(points=100)


def runs(n=2, **settings):
    return unweave.sweep(DATA, PCA(latent_dim=2, **settings), seed=range(n))


def test_a_changed_recipe_is_another_run_and_the_old_one_is_kept(tmp_path):
    execute(runs(1), tmp_path, metrics=["mcc"])
    before = scores(tmp_path)
    execute(unweave.sweep(DATA, PCA(latent_dim=1)), tmp_path, metrics=["mcc"])
    assert len(scores(tmp_path)) == 2 and before.items() <= scores(tmp_path).items()


@pytest.mark.parametrize("name", ["scores.json", "codes.parquet", "model.safetensors", "run.json"])
def test_a_damaged_run_is_named_set_aside_and_run_again(tmp_path, name):
    (run,) = runs(1)
    execute([run], tmp_path, metrics=["mcc"])
    before = scores(tmp_path)
    path = tmp_path / run.key / name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.warns(RuntimeWarning, match=rf"{name}.*set aside as .*{run.key}.damaged|{run.key}.*set aside"):
        execute([run], tmp_path, metrics=["mcc"])
    assert scores(tmp_path) == before and (tmp_path / f".{run.key}.damaged" / name).is_file()


def test_a_budget_begins_nothing_new_and_says_so(tmp_path):
    with pytest.warns(RuntimeWarning, match="budget of 1e-06 s is spent: 3 runs not started"):
        assert len(execute(runs(3), tmp_path, budget=1e-6)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(execute(runs(3), tmp_path, budget=1e6)) == 3


def test_a_study_waits_for_what_another_process_is_doing(tmp_path, monkeypatch):
    from unweave.experiments import study as module

    (run,) = runs(1)
    naps = []

    def nap(seconds):
        naps.append(run_states([run], tmp_path)[run.key])
        if len(naps) == 2:
            held.__exit__(None, None, None)  # the other one gives up

    monkeypatch.setattr(module.time, "sleep", nap)
    held = try_lock_all(tmp_path, [run.key])
    assert held.__enter__()
    assert len(execute([run], tmp_path, metrics=["mcc"])) == 1
    assert naps == ["running", "running"]


def test_the_commands_show_where_a_study_stands_and_write_its_rows(tmp_path, capsys, monkeypatch):
    from unweave.cli.main import main

    def said(*args, code=0):
        with pytest.raises(SystemExit) as end:
            main([*map(str, args)])
        assert end.value.code == code
        return capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(STUDY.replace("range(32)", "range(2)").replace("range(4)", "range(1)"))
    assert "no run of mine.py is done" in said("study", "rows", "mine.py", code=2).err
    assert "No run is done yet" in said("study", "status", "mine.py").out
    out = said("study", "run", "mine.py").out
    assert "Does it survive?" in out and "unweave report runs/mine" in out
    found = json.loads(said("study", "status", "mine.py", "--json").out)
    assert list(found["states"].values()) == ["done"] * 4 and found["failures"] == []
    files = ("--csv", "a.csv", "--parquet", "a.parquet")
    assert "4 rows to a.csv and a.parquet" in said("study", "rows", "mine.py", *files).out
    csv, parquet = pd.read_csv("a.csv"), pd.read_parquet("a.parquet")
    assert len(csv) == 4 and list(csv) == list(parquet) and csv["mcc"].notna().all()
    assert said("study", "rows", "mine.py").out.startswith("key,data,method")
    assert read_run(next(Path("runs/mine").glob("[!.]*"))).env["data"]["observations"] == 200
    assert "unweave study" in said("study").out and "did you mean 'status'?" in said("study", "stats", code=2).err
