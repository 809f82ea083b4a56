"""What people run into with their own files, names and settings."""

import io
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import unweave
from unweave import InputError, OwnData, Run
from unweave.catalog import run_metrics
from unweave.cli import main as cli
from unweave.cli import terminal
from unweave.cli.draw import read_as_trained
from unweave.cli.fit import write_codes
from unweave.data.readers.files import read_codes
from unweave.datasets import FlatSheet
from unweave.experiments.study import execute, sweep
from unweave.experiments.study_file import read_study
from unweave.methods import PCA, BetaVAE, CNNClassifier, FactorVAE, HessianICA
from unweave.metrics import mcc
from unweave.metrics.contract import Scorer
from unweave.utils.validation import as_classes, normalize_numbers


class Both(NamedTuple):
    """Two numbers."""

    first: float
    second: float


def test_four_and_four_point_nothing_are_the_same_run():
    one, other = (Run(FlatSheet(points=50), BetaVAE(beta=beta)) for beta in (4, 4.0))
    assert one.key == other.key and repr(one.recipe()["method"]["beta"]) == "4.0"
    assert one.method.recipe() == other.method.recipe()
    assert Run(FlatSheet(points=50), BetaVAE(beta=4.5)).key != one.key
    assert isinstance(one.recipe()["method"]["latent_dim"], int)
    assert Run(FlatSheet(points=50), BetaVAE(beta=np.int64(4))).key == one.key
    assert normalize_numbers(HessianICA, {"smooth": 2, "landmarks": 5}) == {"smooth": 2.0, "landmarks": 5}
    assert isinstance(normalize_numbers(HessianICA, {"smooth": 2})["smooth"], float)


def test_settings_are_spelled_without_looking_names_up():
    from dataclasses import make_dataclass

    # As on another machine, where the module of a user's class is not: its names mean nothing there.
    cls = make_dataclass("Sent", [("kind", "Elsewhere | None"), ("strength", "Lane"), ("count", "int | float")])
    found = normalize_numbers(cls, {"kind": 1, "strength": 2, "count": 3})
    assert [type(v) for v in found.values()] == [int, float, int]


def test_a_sweep_takes_names_and_single_values():
    runs = sweep("flat-sheet", "pca", latent_dim=1, seed=[0, 1])
    assert [(run.method.latent_dim, run.method.seed) for run in runs] == [(1, 0), (1, 1)]
    assert [run.method.network for run in sweep("flat-sheet", "beta-vae", network="mlp")] == ["mlp"]
    with pytest.raises(InputError, match="did you mean 'pca'"):
        sweep("flat-sheet", "pcaa")


def test_a_study_may_import_what_lies_beside_it(tmp_path):
    beside = "from unweave.methods import PCA\n\nMINE = PCA(latent_dim=1)\n"
    (tmp_path / "beside_the_study.py").write_text(beside)
    code = (
        "import unweave\nfrom beside_the_study import MINE\n\nruns = unweave.sweep('flat-sheet', MINE, seed=range(2))\n"
    )
    (tmp_path / "mine.py").write_text(code)
    assert len(read_study(tmp_path / "mine.py").runs) == 2


def test_the_codes_that_fit_writes_can_be_scored(tmp_path):
    path = tmp_path / "codes.csv"
    codes = np.random.default_rng(0).normal(size=(5, 2))
    write_codes(path, codes, [f"{i}.png" for i in range(5)])
    np.testing.assert_allclose(read_codes(path), codes)
    pd.DataFrame({"file": [1.0, 2.0], "b": [3.0, 5.0]}).to_csv(path, index=False)
    assert read_codes(path).shape == (2, 2)  # a number is a code, whatever it is called
    pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"'name'.* holds no numbers"):
        read_codes(path)


@pytest.mark.parametrize(
    ("text", "settings", "match"),
    [
        ("a,b,b\n1,2,3\n4,5,7\n", {}, "several columns named 'b'"),
        ('"a, c","b","b"\n1,2,3\n4,5,7\n', {}, "several columns named 'b'"),
        ("a,b\n1,2\n4,n/a?\n5,6\n", {}, r"numbers, and in 1 row text: first 'n/a\?' in row 1"),
        ("a,b\n1,x\n4,y\n5,z\n", {}, r"holds text \('x'\), not numbers.*--data.factors b"),
        ("a,b\n1,2\n4,5\n", {"columns": ("a", "a")}, "'a'.* is named more than once"),
    ],
)
def test_tables_that_are_not_right_are_told_where(text, settings, match, tmp_path):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        OwnData(path=tmp_path / "mine.csv", **settings).load()


def test_a_name_that_is_neither_data_nor_a_file_is_told_as_both():
    with pytest.raises(InputError, match="no file or folder 'photoz' here, and no dataset named"):
        unweave.catalog.dataset("photoz")


def test_scores_that_no_run_can_have_are_refused_before_it_learns(tmp_path):
    with pytest.raises(InputError, match=r"classifier's predictions.*unweave\.metrics\.average_accuracy"):
        run_metrics(["average-accuracy"])
    with pytest.raises(InputError, match="unweave select"):
        execute([Run(FlatSheet(points=50), PCA(latent_dim=1))], tmp_path, metrics=["udr"])
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:local-isometry was not computed")
def test_a_model_of_fewer_rows_than_codes_is_kept_and_shown(tmp_path):
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(4, 30)))
    run = Run(OwnData(path=tmp_path / "few.npy"), BetaVAE(steps=2, latent_dim=10, layers=(8,), batch_size=4))
    assert len(execute([run], tmp_path / "runs", metrics=["local-isometry"])) == 1
    unweave.write_report([tmp_path / "runs"], tmp_path / "page.html")
    assert "beta-vae" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["dci[trees]", "dci[trees].foo", "mcc.foo"])
def test_a_scorer_knows_its_parts_before_it_is_used(name):
    with pytest.raises(InputError, match="no part of"):
        unweave.scorer(name)
    assert unweave.scorer("dci[trees].completeness").part == "completeness"


def test_a_scorer_of_one_s_own_metric_asks_for_no_hints():
    def told(factors, codes):
        return Both(0.25, 0.5)

    told.__annotations__ = {"return": "Unheard"}  # a name that cannot be looked up
    mine = unweave.metric(paper="none")(told)
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert Scorer(mine, "second")(PCA(latent_dim=2).fit(x), x, x) == 0.5


def test_a_posterior_that_collapsed_is_named():
    x = np.random.default_rng(0).normal(size=(200, 5))
    small = {"steps": 400, "layers": (16,), "latent_dim": 2, "lr": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gone = BetaVAE(beta=1e4, **small).fit(x)
    assert "posterior has collapsed" in " ".join(gone.diagnosis_)
    assert not getattr(BetaVAE(beta=0.01, **small).fit(x), "diagnosis_", [])
    assert not getattr(FactorVAE(gamma=0.0, critic=(8,), **small).fit(x * 10), "diagnosis_", [])


def test_a_classifier_says_what_it_was_taught_and_how_well_it_knows_that():
    x = np.random.default_rng(0).normal(size=(300, 4))
    y = pd.DataFrame({"sign": np.where(x[:, 0] > 0, "plus", "minus"), "other": np.arange(300) % 2})
    known = CNNClassifier(steps=300, layers=(16,), lr=0.01).fit(x, y)
    share = float(re.search(r"'sign' right in ([\d.]+)%.*2 classes", known.diagnosis_[-1])[1])
    assert share > 95
    assert abs(share / 100 - known.score(x, y)) < 0.03


@pytest.mark.parametrize("first", ["a" * 30, "b" * 70])
def test_tables_are_no_wider_than_the_terminal(first, monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(terminal, "STDOUT", Console(file=page, width=80))
    terminal.print_table(["name", "one", "two"], [[first, "words and words " * 9, "more of them " * 9]])
    lines = page.getvalue().splitlines()
    assert all(len(line) <= 80 and line[-1] in "┓┃┩│┘" for line in lines)
    assert any(first in line for line in lines) == (len(first) < 40)


@pytest.mark.parametrize("width", [50, 90, 200])
def test_numbers_of_a_table_stay_in_one_piece_in_any_terminal(width, monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(terminal, "STDOUT", Console(file=page, width=width))
    rows = [[f"method {i}, beta = 4", *(f"0.{i}{j}5 +- 0.1{j}3 (0.50)" for j in range(5))] for i in range(2)]
    terminal.print_table(["method", *"abcde"], rows, "scores", numbers=True)
    text = page.getvalue()
    assert all(len(line) <= width for line in text.splitlines()) and "scores" in text and "method 1" in text
    for row in rows:
        for cell in row[1:]:
            assert all(word in text for word in cell.split())
    assert ("┃" in text) == (width > 50) and ("b: 0.015" in text) == (width == 50)


def test_a_run_s_own_file_is_drawn_as_it_was_read(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    table = pd.DataFrame({"m": x[:, 0], "n": x[:, 1], "sex": ["f", "m"] * 20})
    table.to_csv(tmp_path / "mine.csv", index=False)
    small = BetaVAE(latent_dim=2, steps=2, layers=(4,))
    run = Run(OwnData(path=tmp_path / "mine.csv", factors=("sex",)), small)
    execute([run], tmp_path / "runs", metrics=[])
    read = read_as_trained(unweave.catalog.dataset(tmp_path / "mine.csv"), tmp_path / "runs" / run.key)
    assert read.factors == ("sex",) and read.load().shape == (2,)
    table.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)  # other rows, of which no one knows the factor
    with pytest.raises(SystemExit) as stopped:
        cli.main(
            ["draw", str(tmp_path / "runs" / run.key), str(tmp_path / "new.csv"), "--out", str(tmp_path / "drawn")]
        )
    assert not stopped.value.code


def test_a_run_of_one_s_own_class_is_drawn_where_that_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from unweave.methods import BetaVAE\n\n\nclass Mine(BetaVAE):\n    'Mine.'\n"
    (tmp_path / "own_class.py").write_text(code)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(20, 1, 8, 8)))
    fit = ["fit", "own_class.py:Mine", "x.npy", "--steps", "2", "--widths", "4", "--hidden", "8", "--out", "run"]
    draw = ["draw", "run", "x.npy"]
    for args, expected in ((fit, 0), (draw, 2), ([*draw, "--method", "own_class.py:Mine"], 0)):
        with pytest.raises(SystemExit) as stopped:
            cli.main(args)
        assert stopped.value.code == expected
    assert (tmp_path / "figures" / "traversals.png").is_file()


def test_a_study_whose_runs_fail_exits_with_three(tmp_path, monkeypatch, capsys):
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


@pytest.mark.parametrize(("command", "told"), [("fit", True), ("score", False)])
def test_who_stops_a_command_is_told_what_is_true_of_it(command, told, monkeypatch, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, command, interrupted)
    with pytest.raises(SystemExit):
        cli.main([command])
    assert ("checkpoint" in capsys.readouterr().err) == told


def test_a_column_of_real_numbers_among_labels_is_named():
    y = pd.DataFrame({"kind": ["a", "b"], "age": [0.5, 1.25]})
    with pytest.raises(InputError, match="column 'age' is real-valued"):
        as_classes(y)


def test_a_perfect_score_is_one_and_not_more():
    c = np.random.default_rng(5).normal(size=(101, 7))
    assert mcc(c, c) == 1.0


def test_the_data_of_the_documentation_are_taken_apart(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "my_data.py"
    run = sweep(f"{path}:TwoPeaks", "hessian-ica", latent_dim=2)[0]
    assert execute([run], tmp_path, metrics=["mcc"])["mcc"].item() > 0.99
