"""The command `unweave study`."""

import pytest

from unweave.cli import main as cli


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
