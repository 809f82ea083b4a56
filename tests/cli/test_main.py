"""The command, as a newcomer would use and misuse it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from unweave.cli.main import main

MINE = str(Path(__file__).parents[2] / "examples" / "my_method.py")
SMALL = ["--data.points", "60", "--data.size", "12", "--data.side", "4"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Run a command in this process; give back its exit code, stdout and stderr."""

    def call(*args):
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in args])
        out = capsys.readouterr()
        return stopped.value.code or 0, out.out, out.err

    return call


def factors(n=80):
    return np.random.default_rng(0).uniform(-1, 1, (n, 2))


def table(path="my.csv", n=80):
    z = factors(n)
    x = z @ np.array([[1.0, 2, 0.5], [0.3, -1, 2]])
    frame = pd.DataFrame(x, columns=["weight", "height", "age"]).assign(left=z[:, 0], right=z[:, 1])
    frame.to_csv(path, index=False)
    return path


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


def test_fit_help_names_what_there_is_and_then_its_options(run):
    assert "hessian-ica" in run("fit", "--help")[1]
    assert "squares-xc" in run("fit")[1]
    assert "--n-neighbors" in run("fit", "hessian-ica", "--help")[1]
    _, out, _ = run("fit", "hessian-ica", "squares-xy", "--help")
    assert "--latent-dim" in out
    assert "--data.points" in out
    assert "Size of a neighborhood" in out


def test_fit_score_and_report_follow_each_other(run, tmp_path):
    code, out, err = run("fit", "linear-ica", "squares-xy", *SMALL, "--latent-dim", 2, "--out", "r")
    assert code == 0
    assert "linear-ica" in out
    assert "training; evaluated on 60 observations of shape 1 x 12 x 12" in err
    code, out, _ = run("score", "r", "--json")
    assert set(json.loads(out)) == {"mcc", "local-isometry"}
    code, out, _ = run("report", "r", "--out", "page.html")
    assert (code, out) == (0, "Open page.html in a browser.\n")
    assert "linear-ica" in (tmp_path / "page.html").read_text()


def test_a_finished_run_is_kept(run):
    run("fit", "pca", "squares-xy", *SMALL, "--out", "r")
    assert "finished before" in run("fit", "pca", "squares-xy", *SMALL, "--out", "r")[2]
    code, _, err = run("fit", "pca", "squares-xy", *SMALL, "--seed", 1, "--out", "r")
    assert code == 2
    assert "holds another run" in err


def test_json_is_json_and_nothing_else(run):
    code, out, err = run("fit", "pca", "squares-xy", *SMALL, "--json")
    assert (code, err) == (0, "")
    (record,) = json.loads(out)
    assert Path(record["run"]).is_dir()
    assert record["method"] == "pca"
    assert 0 < record["mcc"] < 1
    assert set(json.loads(run("list", "--json")[1])) == {"methods", "datasets", "metrics"}
    assert {"local-isometry", "mcc"} <= {m["name"] for m in json.loads(run("list", "metrics", "--json")[1])["metrics"]}
    assert json.loads(run("report", record["run"], "--json")[1])[0]["mcc"] == record["mcc"]


def test_a_table_of_ones_own_with_known_factors(run):
    table()
    code, out, _ = run(
        "fit", "linear-ica", "my.csv", "--data.factors", "left", "right", "--codes", "codes.csv", "--json"
    )
    assert code == 0
    assert json.loads(out)[0]["mcc"] > 0.98
    assert list(pd.read_csv("codes.csv").columns) == ["code1", "code2"]
    code, out, _ = run("score", "codes.csv", "--factors", table("again.csv"), "--metrics", "mcc", "--json")
    assert code == 0
    assert json.loads(out)["mcc"] < 0.98, "five factors and two codes"


def test_a_column_that_counts_the_rows_is_pointed_out(run):
    pd.read_csv(table()).assign(id=range(80)).to_csv("my.csv", index=False)
    code, _, err = run("fit", "pca", "my.csv")
    assert code == 0
    assert "unweave: warning: column 'id' of my.csv only counts the rows" in err


def test_a_table_without_factors_says_so(run):
    table()
    code, out, _ = run("fit", "pca", "my.csv", "--data.columns", "weight", "height", "--data.factors")
    assert code == 0
    assert "have no known factors" in out


def test_a_folder_of_images_of_ones_own(run, tmp_path):
    for i in range(30):
        pixels = np.zeros((8, 8), dtype=np.uint8)
        pixels[i % 5 : i % 5 + 3, i // 6 : i // 6 + 3] = 255
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    assert run("fit", "pca", "photos", "--codes", "z.csv", "--out", "named")[0] == 0
    assert pd.read_csv("z.csv")["file"].tolist()[:3] == ["0.png", "1.png", "2.png"]
    code, out, _ = run("fit", "pca", "photos", "--codes", "z.npy", "--json")
    assert code == 0
    assert json.loads(out)[0]["data"] == "photos"
    assert np.load("z.npy", allow_pickle=False).shape == (30, 2)


def test_a_method_of_ones_own_works_wherever_a_name_does(run):
    code, out, _ = run("fit", f"{MINE}:Whitening", "squares-xy", *SMALL, "--samples", 50, "--out", "w", "--json")
    assert code == 0
    assert json.loads(out)[0]["method"] == "whitening"
    assert "--samples" in run("fit", f"{MINE}:Whitening", "squares-xy", "--help")[1]
    assert run("report", "w")[0] == 0


def test_data_and_metrics_of_ones_own(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch, unweave\n"
        "class Line(unweave.Dataset):\n    '''A line.'''\n    points: int = 40\n    '''how many'''\n"
        "    def load(self):\n"
        "        prior = lambda n, g: torch.rand(n, 1, generator=g)\n"
        "        factors = [unweave.Factor('t')]\n"
        "        return unweave.Mixing(factors, (3,), prior, lambda c: c * torch.arange(1.0, 4), points=self.points)\n"
        "@unweave.metric(paper='none')\ndef half(factors, codes):\n    '''Always a half.'''\n    return 0.5\n"
    )
    code, out, _ = run("fit", "pca", "mine.py:Line", "--latent-dim", 1, "--metrics", "mcc", "mine.py:half", "--json")
    assert code == 0
    assert json.loads(out)[0]["half"] == 0.5
    kept = json.loads(run("score", json.loads(out)[0]["run"], "--metrics", "mine.py:half", "--json")[1])
    assert kept == {"half": 0.5}
    assert json.loads(out)[0]["mcc"] > 0.999


def test_codes_from_another_tool_are_scored(run):
    z = factors()
    np.save("z.npy", z[:, ::-1])
    np.save("f.npy", z)
    np.save("x.npy", np.hstack([z, z**2]))
    code, out, _ = run("score", "z.npy", "--factors", "f.npy", "--inputs", "x.npy", "--json")
    assert code == 0
    assert json.loads(out)["mcc"] == pytest.approx(1)
    assert "meaning" in run("score", "z.npy", "--factors", "f.npy")[1]


def test_data_are_listed_found_checked_made_and_shown(run, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    state = {row["name"]: row["state"] for row in json.loads(run("data", "list", "--json")[1])}
    assert state["squares-xy"] == "made on the fly"
    assert state["dsprites"] == "re-made"
    assert state["mnist"] == "missing"
    where = json.loads(run("data", "where", "mnist", "--json")[1])
    assert where["folders"] == [str(tmp_path / "own"), str(tmp_path / "cache")]
    assert len(where["files"]) == 4
    code, _, err = run("data", "check", "mnist")
    assert code == 2
    assert "yann.lecun.com" in err
    code, _, err = run("data", "make", "mnist")
    assert code == 2
    assert "unweave data make mnist --download" in err
    assert run("data", "check", "squares-xy")[0] == 0
    assert "is ready" in run("data", "make", "squares-xy")[1]
    assert run("data", "show", "squares-xc", "--out", "sheet.png")[0] == 0
    with Image.open("sheet.png") as sheet:
        assert sheet.width > 500
    (tmp_path / "own" / "mnist").mkdir(parents=True)
    (tmp_path / "own" / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"not it")
    code, _, err = run("fit", "pca", "mnist")
    assert code == 2
    assert "its md5 is" in err


BAD = {
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
    "big square": (["fit", "pca", "squares-xy", "--data.side", "99"], "side must be smaller"),
    "no factors sought": (["fit", "pca", "squares-xy", *SMALL, "--latent-dim", "0"], "at least one factor"),
    "too many factors": (["fit", "pca", "squares-xy", *SMALL, "--latent-dim", "60"], "more than the data allow"),
    "few neighbors": (["fit", "hessian-ica", "squares-xy", *SMALL, "--n-neighbors", "3"], "needs at least 10"),
    "many neighbors": (
        ["fit", "hessian-ica", "squares-xy", *SMALL, "--n-neighbors", "60"],
        "n_samples=60 is too few",
    ),
    "own file missing": (["fit", "mine.py:X", "squares-xy"], "no Python file 'mine.py'"),
    "own name missing": (["fit", f"{MINE}:Whitning", "squares-xy"], "did you mean 'Whitening'"),
    "score nothing": (["score", "nothing.npy", "--factors", "f.npy"], "nothing.npy does not exist"),
    "score alone": (["score", "z.npy"], "nothing to compare"),
    "score lengths": (["score", "z.npy", "--factors", "f.npy"], "3 rows of factors and 4 rows of codes"),
    "score swapped": (["score", "z.npy", "--factors", "wide.npy"], "axes swapped"),
    "score needs": (["score", "z.npy", "--factors", "z.npy", "--metrics", "local-isometry"], "needs --inputs"),
    "score folder": (["score", "."], "is not a run folder"),
    "report nothing": (["report"], "name run folders"),
    "report missing": (["report", "nowhere"], "nowhere does not exist"),
    "report empty": (["report", "."], "holds no runs"),
    "unknown list": (["list", "metods"], "metods"),
    "demo points": (["demo", "--points", "-5"], "at least one point"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_gets_one_clear_message_and_exit_code_2(case, run):
    np.save("z.npy", np.arange(8.0).reshape(4, 2))
    np.save("f.npy", np.arange(6.0).reshape(3, 2))
    np.save("wide.npy", np.arange(8.0).reshape(2, 4))
    args, expected = BAD[case]
    code, _, err = run(*args)
    assert code == 2, err
    assert expected in err
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if line.startswith("unweave: ")] == err.splitlines()[-1:]


def test_broken_code_of_ones_own_is_named_with_its_line(run, tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\ndef f(:\n")
    assert "line 2: SyntaxError" in run("fit", "mine.py:X", "squares-xy")[2]
    (tmp_path / "other.py").write_text("import nothing_of_that_name\n")
    assert "ModuleNotFoundError" in run("fit", "other.py:X", "squares-xy")[2]
    (tmp_path / "third.py").write_text("import unweave\nclass M(unweave.Method):\n    '''Half.'''\ny = 3\n")
    assert "is not finished: write encode, learn" in run("fit", "third.py:M", "squares-xy")[2]
    assert "is not a method" in run("fit", "third.py:y", "squares-xy")[2]


def test_a_fault_in_a_method_is_ours_to_explain_and_debug_shows_it(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import unweave\nclass M(unweave.Method):\n    '''Bad.'''\n"
        "    def learn(self, data): {}['key']\n    def encode(self, x): return x\n"
    )
    code, _, err = run("fit", "mine.py:M", "squares-xy", *SMALL)
    assert code == 1
    assert "KeyError: 'key'. Internal error. Please report it with the traceback (`--debug`)" in err
    code, _, err = run("fit", "mine.py:M", "squares-xy", *SMALL, "--debug")
    assert code == 1 and "Traceback" in err and "def learn(self, data): {}['key']" in err


def test_python_m_unweave_is_the_same_and_pipes_may_close():
    command = (
        f"{sys.executable} -m unweave fit --help | head -1; {sys.executable} -m unweave fit pca mnist --help | head -1"
    )
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.startswith("usage: unweave fit METHOD DATA")
    assert out.stderr == ""


def test_the_demo_recovers_position_and_writes_its_page(run, tmp_path):
    code, out, _ = run("demo", "--points", 1000, "--json")
    assert code == 0
    found = {record["method"]: record["mcc"] for record in json.loads(out)}
    assert found["hessian-ica"] > 0.99 > found["linear-ica"] > found["pca"]
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_all_scores_with_chance_and_interval(run):
    z = np.random.default_rng(0).integers(0, 4, (300, 2)).astype(float)
    np.save("f.npy", z)
    np.save("z.npy", z + 0.1 * np.random.default_rng(1).normal(size=z.shape))
    code, out, err = run("score", "z.npy", "--factors", "f.npy", "--all", "--chance", "--bootstrap", 3, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {"mcc", "mig", "dci[trees].completeness", "sap[r2]", "irs[q100]"} <= set(found)
    assert found["mcc"]["chance"] < 0.2 < found["mcc"]["low"] <= found["mcc"]["high"]
    text = run("score", "z.npy", "--factors", "f.npy", "--metrics", "mcc", "mig", "--chance")[1]
    assert "chance" in text
    assert "dci" not in text


def test_a_run_scores_itself_with_what_it_knows(run):
    run("fit", "pca", "squares-xy", "--data.points", 300, "--out", "r")
    kept = json.loads(run("score", "r", "--json")[1])
    assert set(kept) == {"mcc", "local-isometry"}
    code, out, err = run("score", "r", "--all", "--json")
    assert code == 0, err
    assert {"mcc", "local-isometry", "mig", "sap[r2]", "dci[trees].disentanglement"} <= set(json.loads(out))
    found = json.loads(run("score", "r", "--metrics", "mcc", "--chance", "--json")[1])
    assert found["mcc"]["chance"] < 0.3 < found["mcc"]["value"]
    assert json.loads(run("score", "r", "--metrics", "dci[lasso]", "--json")[1])["dci[lasso].informativeness"] > 0
    np.save("z.npy", np.random.default_rng(0).normal(size=(50, 2)))
    assert "unsupervised.total_correlation" in run("score", "z.npy", "--metrics", "unsupervised")[1]
    np.savez("two.npz", a=np.zeros((50, 2)), b=np.zeros((50, 2)))
    assert "one array named 'factors'" in run("score", "z.npy", "--factors", "two.npz")[2]
    code, _, err = run("score", "z.npy", "--metrics", "udr", "--factors", "z.npy")
    assert code == 2
    assert "unweave select RUNS" in err
    code, _, err = run("score", "z.npy", "--factors", "z.npy", "--bootstrap", -3)
    assert code == 2
    assert "--bootstrap -3" in err


def test_a_network_is_trained_and_drawn_from_the_command_line(run, tmp_path):
    options = ["--steps", "20", "--widths", "4", "--hidden", "8", "--latent-dim", "2", "--data.points", "80"]
    code, _, err = run("fit", "beta-vae", "squares-xy", *options, "--out", "vae")
    assert code == 0, err
    assert Path("vae/history.parquet").is_file()
    code, out, err = run("draw", "vae", "squares-xy", "--out", "figures")
    assert code == 0, err
    names = {f"{n}.png" for n in ("curves", "kl", "traversals", "reconstructions", "interpolation")} | {
        "traversals.gif"
    }
    assert {path.name for path in Path("figures").iterdir()} == names
    assert len(out.splitlines()) == len(names)
    code, _, err = run("draw", "vae", "swiss-roll")
    assert code == 2
    assert "trained on shape (1, 64, 64)" in err
    code, _, err = run("fit", "beta-vae", "swiss-roll", "--steps", "50", "--lr", "1e30", "--out", "x")
    assert code == 2
    assert "beta-vae is not finite from step" in err
    assert not Path("x").exists()


def test_a_network_of_ones_own_is_trained_from_its_file(run):
    mine = str(Path(MINE).with_name("my_network.py")) + ":SparseAutoencoder"
    code, out, err = run("fit", mine, "swiss-roll", "--steps", "30", "--sparsity", "0.2", "--out", "r")
    assert code == 0, err
    assert "sparse-autoencoder" in out
