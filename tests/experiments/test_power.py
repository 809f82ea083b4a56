"""Power cuts: at every step of a study what is on the disk is whole, and a repetition ends as if nothing had been."""

import json
import random
import warnings
from pathlib import Path

import pytest
from benchmarks.torture.ledger import leftovers, snapshot
from benchmarks.torture.power import CHOICES, Disk
from benchmarks.torture.runs import difference

import unweave
from unweave import execute
from unweave.datasets import SwissRoll
from unweave.experiments.run import read_run
from unweave.methods import PCA, BetaVAE
from unweave.training import checkpoint

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are found by /proc")
DATA = SwissRoll(points=30)


def watched(task, folder: Path, states: Path) -> dict[str, Path]:
    """Run a task; return what power cuts leave of a folder after every step, each state once."""
    found: dict[str, Path] = {}
    rng, steps = random.Random(0), 0

    def after(disk: Disk) -> None:
        nonlocal steps
        for choice in CHOICES:
            steps += 1
            place = states / f"{steps}"
            disk.write(place, choice, rng)
            found.setdefault(json.dumps(snapshot(place)), place)

    folder.mkdir()
    states.mkdir()
    with Disk(folder).watch(after):
        task(folder)
    return found


def recover(task, state: Path, whole: Path) -> None:
    for folder in state.glob("[!.]*"):
        read_run(folder)  # whatever has a name is whole
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is set aside
        warnings.filterwarnings("ignore", ".*training starts from the beginning")
        task(state)
    assert difference(state, whole) == "" and not leftovers(state)


def test_a_study_recovers_from_a_power_cut_at_every_step(tmp_path):
    runs = unweave.sweep(DATA, PCA(), latent_dim=[1])

    def task(folder):
        execute(runs, folder, metrics=["mcc"])

    states = watched(task, tmp_path / "out", tmp_path / "states")
    assert len(states) > 15
    for state in states.values():
        recover(task, state, tmp_path / "out")


def test_nothing_of_a_finished_study_depends_on_the_cache_of_the_system(tmp_path):
    last = []
    with Disk(tmp_path).watch(last.append):
        execute(unweave.sweep(DATA, PCA(), latent_dim=[1]), tmp_path / "new/out", metrics=["mcc"])
    last[-1].write(tmp_path / "after", "nothing", random.Random(0))
    assert snapshot(tmp_path / "after/new/out") == snapshot(tmp_path / "new/out") != {}


def test_a_training_resumes_from_what_is_left_of_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_SECONDS_BETWEEN_SAVES", 0)
    monkeypatch.setattr(checkpoint, "TRAINING_PER_SAVING", 0)
    runs = unweave.sweep(DATA, BetaVAE(steps=7, layers=(4,), batch_size=4), latent_dim=[1])

    def task(folder):
        execute(runs, folder, metrics=["mcc"])

    states = list(watched(task, tmp_path / "out", tmp_path / "states").values())
    assert any(list(state.glob(".*.checkpoint")) for state in states)
    for state in random.Random(1).sample(states, 12):
        recover(task, state, tmp_path / "out")


def test_a_saved_model_and_a_report_are_whole_or_as_before(tmp_path):
    x = DATA.load().render(DATA.load().all_points(30)).numpy()
    method = PCA(latent_dim=1).fit(x)

    def task(folder):
        method.save(folder / "model")

    for state in watched(task, tmp_path / "out", tmp_path / "states").values():
        if (state / "model").exists():
            unweave.load(state / "model")
            assert snapshot(state / "model") == snapshot(tmp_path / "out/model")
        else:
            method.save(state / "model")
        assert not leftovers(state)
