"""The command `unweave`: help, dispatch, exit codes, errors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import MY_METHOD, SMALL_SQUARES
from unweave.cli import main as cli


def test_help_explains_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "fit", "score", "report", "list"):
        assert f"\n  {command} " in out
        code, text, _ = run(command, "--help")
        assert code == 0
        assert "usage: unweave" in text
    assert run()[1] == out
    assert run("--version")[1].startswith("unweave 0.")


WRONG_INPUT = {
    "data verb": (["data", "lst"], "lst"),
    "data unnamed": (["data", "show"], "which data?"),
    "data unknown": (["data", "make", "dsprite"], "did you mean 'dsprites'"),
    "data not images": (["data", "show", "gaussian-mixture"], "only images can be shown"),
    "unknown command": (["fti"], "no command named 'fti'; did you mean 'fit'"),
    "unknown method": (["fit", "hesian-ica", "squares-xy"], "did you mean 'hessian-ica'"),
    "unknown data": (["fit", "pca", "square-xy"], "did you mean 'squares-xy'"),
    "unknown flag": (["fit", "pca", "squares-xy", "--latent-dims", "2"], "--latent-dim"),
    "bad number": (["fit", "pca", "squares-xy", "--latent-dim", "two"], "two"),
    "no data": (["fit", "pca", "--latent-dim", "2"], "name the method and the data first"),
    "missing file": (["fit", "pca", "nothing.csv"], "nothing.csv does not exist"),
    "missing folder": (["fit", "pca", "no/such/folder"], "does not exist"),
    "unknown metric": (["fit", "pca", "squares-xy", "--metrics", "mcx"], "did you mean 'mcc'"),
    "codes ending": (["fit", "pca", "squares-xy", "--codes", "z.txt"], "codes are written as .csv"),
    "no points": (["fit", "pca", "squares-xy", "--data.points", "0"], "at least one point"),
    "one point": (["fit", "pca", "squares-xy", "--data.points", "1"], "at most 0 directions"),
    "big square": (["fit", "pca", "squares-xy", "--data.side", "99"], "expected a smaller side"),
    "no factors sought": (["fit", "pca", "squares-xy", *SMALL_SQUARES, "--latent-dim", "0"], "at least one factor"),
    "too many factors": (
        ["fit", "pca", "squares-xy", *SMALL_SQUARES, "--latent-dim", "60"],
        "more than the data allow",
    ),
    "few neighbors": (["fit", "hessian-ica", "squares-xy", *SMALL_SQUARES, "--n-neighbors", "3"], "needs at least 10"),
    "many neighbors": (
        ["fit", "hessian-ica", "squares-xy", *SMALL_SQUARES, "--n-neighbors", "60"],
        "n_samples=60 is too few",
    ),
    "own file missing": (["fit", "mine.py:X", "squares-xy"], "no Python file 'mine.py'"),
    "own name missing": (["fit", f"{MY_METHOD}:Whitning", "squares-xy"], "did you mean 'Whitening'"),
    "score nothing": (["score", "nothing.npy", "--factors", "f.npy"], "nothing.npy does not exist"),
    "score alone": (["score", "z.npy"], "nothing to compare"),
    "score lengths": (["score", "z.npy", "--factors", "f.npy"], "4 rows of z.npy and 3 rows of f.npy"),
    "score swapped": (["score", "z.npy", "--factors", "wide.npy"], "axes swapped"),
    "score needs": (["score", "z.npy", "--factors", "z.npy", "--metrics", "local-isometry"], "needs --inputs"),
    "score folder": (["score", "."], "is not a run folder"),
    "report nothing": (["report"], "name run folders"),
    "report missing": (["report", "nowhere"], "nowhere does not exist"),
    "report empty": (["report", "."], "holds no runs"),
    "unknown list": (["list", "metods"], "metods"),  # codespell:ignore
    "demo points": (["demo", "--points", "-5"], "at least one point"),
}


@pytest.mark.parametrize("case", WRONG_INPUT)
def test_wrong_input_gets_one_line_and_exit_code_2(case, run):
    np.save("z.npy", np.arange(8.0).reshape(4, 2))
    np.save("f.npy", np.arange(6.0).reshape(3, 2))
    np.save("wide.npy", np.arange(8.0).reshape(2, 4))
    args, expected = WRONG_INPUT[case]
    code, _, err = run(*args)
    assert code == 2, err
    assert expected in err
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if line.startswith("unweave: ")] == err.splitlines()[-1:]


def test_errors_in_the_users_own_code_are_reported_with_their_line(run, tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\ndef f(:\n")
    assert "line 2: SyntaxError" in run("fit", "mine.py:X", "squares-xy")[2]
    (tmp_path / "other.py").write_text("import nothing_of_that_name\n")
    assert "ModuleNotFoundError" in run("fit", "other.py:X", "squares-xy")[2]
    (tmp_path / "third.py").write_text("import unweave\nclass M(unweave.Method):\n    '''Half.'''\ny = 3\n")
    assert "is not finished: write encode, learn" in run("fit", "third.py:M", "squares-xy")[2]
    assert "is not a method" in run("fit", "third.py:y", "squares-xy")[2]


def test_internal_errors_exit_with_1_and_debug_shows_the_traceback(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import unweave\nclass M(unweave.Method):\n    '''Bad.'''\n"
        "    def learn(self, data): {}['key']\n    def encode(self, x): return x\n"
    )
    code, _, err = run("fit", "mine.py:M", "squares-xy", *SMALL_SQUARES)
    assert code == 1
    assert "Internal error (KeyError: 'key'). Please report it with the traceback (`--debug`)." in err
    code, _, err = run("fit", "mine.py:M", "squares-xy", *SMALL_SQUARES, "--debug")
    assert code == 1 and "Traceback" in err and "def learn(self, data): {}['key']" in err


def test_python_m_unweave_is_the_same_command_and_closed_pipes_are_no_error():
    command = (
        f"{sys.executable} -m unweave fit --help | head -1; {sys.executable} -m unweave fit pca mnist --help | head -1"
    )
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.startswith("usage: unweave fit METHOD DATA")
    assert out.stderr == ""


@pytest.mark.parametrize(("command", "writes_checkpoints"), [("fit", True), ("score", False)])
def test_only_interrupted_trainings_mention_checkpoints(command, writes_checkpoints, monkeypatch, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, command, interrupted)
    with pytest.raises(SystemExit):
        cli.main([command])
    assert ("checkpoint" in capsys.readouterr().err) == writes_checkpoints


def test_json_output_is_json_and_nothing_else(run):
    code, out, err = run("fit", "pca", "squares-xy", *SMALL_SQUARES, "--json")
    assert (code, err) == (0, "")
    (record,) = json.loads(out)
    assert Path(record["run"]).is_dir()
    assert record["method"] == "pca"
    assert 0 < record["mcc"] < 1
    assert set(json.loads(run("list", "--json")[1])) == {"methods", "datasets", "metrics"}
    assert {"local-isometry", "mcc"} <= {m["name"] for m in json.loads(run("list", "metrics", "--json")[1])["metrics"]}
    assert json.loads(run("report", record["run"], "--json")[1])[0]["mcc"] == record["mcc"]
