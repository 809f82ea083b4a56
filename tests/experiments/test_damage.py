"""Damaged run folders: noticed by every command, set aside and run again by a study; empty notes block nothing."""

import json
import random
import re
import shutil

import pandas as pd
import pytest

import unweave
from unweave import InputError, Run, catalog, execute, load, rows
from unweave.cli.main import main
from unweave.datasets import SwissRoll
from unweave.experiments.failures import failure_path
from unweave.experiments.run import read_run
from unweave.experiments.runner import execute_run
from unweave.experiments.study import run_states
from unweave.experiments.study_file import read_note
from unweave.methods import PCA, BetaVAE
from unweave.report.page import write_report
from unweave.utils import manifest

RUN = Run(SwissRoll(points=60), BetaVAE(steps=10, layers=(8,), batch_size=8))
FILES = (
    "codes.parquet", "config.json", "env.json", "history.parquet", "manifest.json", "model.safetensors",
    "ordered.npz", "pairs.parquet", "run.json", "scores.json",
)  # fmt: skip
COMMANDS = {"report": ("--out", "report.html", "--no-explorers"), "select": ("--by", "isometry"), "score": ()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    execute([RUN], out, metrics=["mcc"])
    return out / RUN.key


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out" / RUN.key)


def flip(path, seed):
    content = bytearray(path.read_bytes())
    bit = random.Random(seed).randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def exit_code(*args):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in args])
    return end.value.code


def test_the_manifest_lists_every_file(finished):
    assert tuple(sorted(path.name for path in finished.iterdir())) == FILES
    content = json.loads((finished / "manifest.json").read_text())
    assert tuple(content["files"]) == tuple(name for name in FILES if name != "manifest.json")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed_wherever_it_is(folder, name):
    whole = (folder / name).read_bytes()
    for seed in range(5):
        flip(folder / name, seed)
        for read in (load, read_run, lambda place: rows([place])):
            with pytest.raises(InputError, match=re.escape(name)):
                read(folder)
        (folder / name).write_bytes(whole)
    load(folder)
    assert len(rows([folder])) == 1


@pytest.mark.parametrize("name", ["scores.json", "history.parquet", "model.safetensors"])
def test_every_command_names_a_damaged_run_and_ends(folder, name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    flip(folder / name, 0)
    for command, flags in COMMANDS.items():
        assert exit_code(command, folder, *flags) == 2
        assert name in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_an_edited_score_does_not_pass(folder):
    scores = json.loads((folder / "scores.json").read_text())
    (folder / "scores.json").write_text(json.dumps(scores | {"mcc": 0.999}))
    with pytest.raises(InputError, match=r"scores\.json"):
        rows([folder])
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"manifest\.json is missing"):
        rows([folder])


@pytest.mark.parametrize("name", FILES)
def test_a_study_sets_a_damaged_run_aside_and_repeats_it(folder, name):
    codes = (folder / "codes.parquet").read_bytes()
    flip(folder / name, 1)
    with pytest.warns(RuntimeWarning, match=rf"{re.escape(name)}.*set aside as .*{RUN.key}\.damaged"):
        execute([RUN], folder.parent, metrics=["mcc"])
    assert read_run(folder).scores and (folder / "codes.parquet").read_bytes() == codes
    assert (folder.parent / f".{RUN.key}.damaged" / name).is_file()


def test_a_metric_that_is_added_is_listed(folder):
    before = read_run(folder).scores
    execute([RUN], folder.parent, metrics=["mcc", "sap[r2]"])
    assert read_run(folder).scores.keys() > before.keys()
    assert load(folder)


@pytest.mark.parametrize("moment", range(3))
def test_a_kill_while_a_metric_is_added_costs_nothing(folder, moment, monkeypatch):
    write, moments = manifest.write_atomic, []

    def killed(path, text):
        if len(moments) == moment:
            raise KeyboardInterrupt
        moments.append(path)
        write(path, text)

    monkeypatch.setattr(manifest, "write_atomic", killed)
    scorers = catalog.run_metrics(["mcc", "sap[r2]"])
    with pytest.raises(KeyboardInterrupt):
        execute_run(RUN, folder, scorers)
    monkeypatch.undo()
    assert read_run(folder).scores["mcc"]
    assert "sap[r2]" in execute_run(RUN, folder, scorers).computed


# Empty files ----------------------------------------------------------------------------------------------------------


def test_an_empty_history_blocks_nothing(folder, tmp_path):
    (folder / "history.parquet").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"history\.parquet is empty"):
        assert len(rows([folder])) == 1
    with pytest.warns(UserWarning, match="history"):
        write_report([folder], tmp_path / "report.html", explorers=False)
    with pytest.warns(UserWarning, match="history"):
        assert load(folder).transform(RUN.data).shape == (60, 10)
    with pytest.warns(RuntimeWarning, match="set aside"):
        execute([RUN], folder.parent, metrics=["mcc"])
    assert len(pd.read_parquet(folder / "history.parquet"))


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"question": 1}'])
def test_a_damaged_note_of_a_study_blocks_nothing(folder, tmp_path, text):
    (folder.parent / ".study.json").write_text(text)
    with pytest.warns(UserWarning, match=r"\.study\.json.*left out"):
        write_report([folder.parent], tmp_path / "report.html", explorers=False)
    with pytest.warns(UserWarning, match="left out"):
        assert read_note(folder.parent) == {}


@pytest.mark.parametrize("text", ["", "{", "{}", '{"key": "another", "title": "a", "error": "b"}'])
def test_a_damaged_record_of_a_failure_blocks_nothing(folder, tmp_path, text):
    out, (other,) = folder.parent, unweave.sweep(RUN.data, PCA(latent_dim=1))
    path = failure_path(out, other.key)
    path.parent.mkdir()
    path.write_text(text)
    assert run_states([RUN, other], out) == {RUN.key: "done", other.key: "waiting"}
    write_report([out], tmp_path / "report.html", explorers=False)
    assert len(execute([RUN, other], out, metrics=["mcc"])) == 2 and not path.exists()
