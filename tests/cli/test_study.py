"""The command `unweave study`."""

import json
import shutil
from pathlib import Path

import pytest

import unweave
from tests.helpers import StopTraining, stop_at
from unweave.cli import main as cli
from unweave.experiments.study_file import read_study
from unweave.utils.locks import try_lock_all


def test_a_study_with_failed_runs_exits_with_3(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "import unweave\n\nruns = unweave.sweep('flat-sheet', 'hessian-ica', latent_dim=99)\n"
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(SystemExit) as stopped, pytest.warns(RuntimeWarning):
        cli.main(["study", "run", "mine.py"])
    assert stopped.value.code == 3
    assert "No run is done yet" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        cli.main(["study", "status", "mien.py"])
    assert stopped.value.code == 2 and "does not exist" in capsys.readouterr().err


STUDY = """
import unweave
from unweave.datasets import SquaresXY
from unweave.methods import BetaVAE

model = BetaVAE(steps=900, layers=(4,), network="mlp", latent_dim=2, batch_size=4)
runs = unweave.sweep(SquaresXY(points=20, size=8, side=2), model, beta=[1.0, 4.0])
runs += unweave.sweep(SquaresXY(points=20, size=8, side=2), "pca", latent_dim=[1, 99])
metrics = []
"""


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory):
    """Return a folder with a study whose networks were stopped after step 600, and of which one run has failed."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "mine.py").write_text(STUDY)
    runs = read_study(folder / "mine.py").runs
    with pytest.raises(StopTraining):
        unweave.execute(runs[:2], folder / "runs/mine", callback=stop_at(600))
    with pytest.warns(RuntimeWarning, match=r"pca on squares-xy \(latent_dim=99, data.points=20, .*\) failed"):
        unweave.execute(runs[2:], folder / "runs/mine", metrics=())
    return folder


@pytest.fixture
def stopped_study(study_folder, tmp_path, monkeypatch):
    """Change to a copy of this folder and return the runs."""
    shutil.copytree(study_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return read_study("mine.py").runs


def test_status_shows_the_steps_of_resumable_runs_and_names_settings(stopped_study, capsys):
    with pytest.raises(SystemExit):
        cli.main(["study", "status", "mine.py"])
    lines = capsys.readouterr().out.splitlines()
    resumable = [line for line in lines if line.startswith("resumable")]
    assert resumable == [f"resumable: beta-vae (beta={beta}): step 500 of 900" for beta in (1, 4)]
    assert "To resume from the last checkpoints: unweave study run mine.py" in lines
    assert any(line.startswith("failed: pca (latent_dim=99): ") for line in lines)
    assert not any(run.key in line for run in stopped_study for line in lines)


def test_status_as_json_has_the_steps_by_key(stopped_study, capsys):
    with pytest.raises(SystemExit):
        cli.main(["study", "status", "mine.py", "--json"])
    status = json.loads(capsys.readouterr().out)
    assert status["checkpoints"] == {run.key: [500, 900] for run in stopped_study[:2]}


def test_runs_that_another_process_executes_are_running_not_resumable(stopped_study, capsys):
    with try_lock_all(Path("runs/mine"), [stopped_study[0].key]), pytest.raises(SystemExit):
        cli.main(["study", "status", "mine.py"])
    out = capsys.readouterr().out
    assert "running: beta-vae (beta=1): step 500 of 900" in out
    assert "resumable: beta-vae (beta=4): step 500 of 900" in out


def test_a_finished_run_is_not_resumable(stopped_study, capsys):
    (checkpoint,) = Path("runs/mine").glob(".*.checkpoint")
    content = checkpoint.read_bytes()
    unweave.execute(stopped_study[:2], "runs/mine", metrics=())
    checkpoint.write_bytes(content)  # as if the process had been killed before it removed the file
    with pytest.raises(SystemExit):
        cli.main(["study", "status", "mine.py"])
    assert "step 500" not in capsys.readouterr().out
