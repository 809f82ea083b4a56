"""The command `unweave fit`."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave
from tests.helpers import MY_METHOD, SMALL_SQUARES, write_table
from unweave import InputError
from unweave.cli.fit import write_codes
from unweave.data.readers.codes import read_codes
from unweave.experiments import runner


def test_help_lists_methods_and_datasets_and_then_their_options(run):
    assert "hessian-ica" in run("fit", "--help")[1]
    assert "squares-xc" in run("fit")[1]
    assert "--n-neighbors" in run("fit", "hessian-ica", "--help")[1]
    _, out, _ = run("fit", "hessian-ica", "squares-xy", "--help")
    assert "--latent-dim" in out
    assert "--data.points" in out
    assert "Size of a neighborhood" in out


def test_a_run_can_be_scored_and_reported(run, tmp_path):
    code, out, err = run("fit", "linear-ica", "squares-xy", *SMALL_SQUARES, "--latent-dim", 2, "--out", "r")
    assert code == 0
    assert "linear-ica" in out
    assert "training; evaluated on 60 observations of shape 1 x 12 x 12" in err
    code, out, _ = run("score", "r", "--json")
    assert set(json.loads(out)) == {"mcc", "local-isometry"}
    code, out, _ = run("report", "r", "--out", "page.html")
    assert (code, out) == (0, "Open page.html in a browser.\n")
    assert "linear-ica" in (tmp_path / "page.html").read_text()


def test_a_finished_run_is_not_repeated(run):
    run("fit", "pca", "squares-xy", *SMALL_SQUARES, "--out", "r")
    assert "already finished" in run("fit", "pca", "squares-xy", *SMALL_SQUARES, "--out", "r")[2]
    code, _, err = run("fit", "pca", "squares-xy", *SMALL_SQUARES, "--seed", 1, "--out", "r")
    assert code == 2
    assert "holds another run" in err


@pytest.mark.parametrize(
    ("method", "flags", "text"),
    [
        ("intervention-autoencoder", ["--through", "ridge"], "--through is now called --diff-mode"),
        ("swap-contrast", ["--known", "color"], "--known is now called --nuisances"),
        ("swap-contrast", ["--no-settle"], "--settle is now called --refit-classifier"),
        ("gin", ["--standardise=True"], "--standardise is now called --standardize"),
    ],
)
def test_a_flag_under_its_former_name_is_refused_with_the_current_one(run, method, flags, text):
    code, _, err = run("fit", method, "squares-xy", *SMALL_SQUARES, *flags)
    assert (code, err) == (2, f"unweave: {text}\n")


def test_own_table_with_known_factors(run):
    write_table()
    code, out, _ = run(
        "fit", "linear-ica", "my.csv", "--data.factors", "left", "right", "--codes", "codes.csv", "--json"
    )
    assert code == 0
    assert json.loads(out)[0]["mcc"] > 0.98
    assert list(pd.read_csv("codes.csv").columns) == ["code1", "code2"]
    code, out, _ = run("score", "codes.csv", "--factors", write_table("again.csv"), "--metrics", "mcc", "--json")
    assert code == 0
    assert json.loads(out)["mcc"] < 0.98, "five factors and two codes"


def test_a_column_that_counts_the_rows_gets_a_warning(run):
    pd.read_csv(write_table()).assign(id=range(80), step=range(80)).to_csv("my.csv", index=False)
    code, out, err = run("fit", "pca", "my.csv", "--codes", "z.csv")
    assert code == 0
    assert "unweave: warning: column 'step' of my.csv only counts the rows" in err
    assert "id is an identifier" in out
    assert pd.read_csv("z.csv")["id"].tolist() == list(range(80)), "the codes name their rows"


def test_own_table_without_factors(run):
    write_table()
    code, out, _ = run("fit", "pca", "my.csv", "--data.columns", "weight", "height", "--data.factors")
    assert code == 0
    assert "have no known factors" in out


def test_own_folder_of_images(run, tmp_path):
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


def test_own_method(run):
    code, out, _ = run(
        "fit", f"{MY_METHOD}:Whitening", "squares-xy", *SMALL_SQUARES, "--samples", 50, "--out", "w", "--json"
    )
    assert code == 0
    assert json.loads(out)[0]["method"] == "whitening"
    assert "--samples" in run("fit", f"{MY_METHOD}:Whitening", "squares-xy", "--help")[1]
    assert run("report", "w")[0] == 0


def test_own_dataset_and_metric(run, tmp_path):
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


def test_own_loss(run):
    mine = str(Path(MY_METHOD).with_name("my_loss.py")) + ":SparseAutoencoder"
    code, out, err = run("fit", mine, "swiss-roll", "--steps", "30", "--sparsity", "0.2", "--out", "r")
    assert code == 0, err
    assert "sparse-autoencoder" in out


def test_own_network(run):
    mine = str(Path(MY_METHOD).with_name("my_network.py")) + ":build"
    command = ["fit", "beta-vae", "squares-xy", *SMALL_SQUARES, "--latent-dim", 3, "--steps", 5, "--network", mine]
    code, out, err = run(*command, "--out", "r", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["network"].startswith("my_network.py:build (sha256 ")
    assert run(*command, "--out", "r", "--json")[1] == out  # it is not trained again
    code, _, err = run("draw", "r", "squares-xy", "--out", "f")
    assert code == 2 and "`unweave draw` has --network" in err
    code, out, err = run("draw", "r", "squares-xy", "--network", mine, "--out", "f")
    assert code == 2 and "shape (1, 12, 12)" in err  # the default images are larger
    code, _, err = run(*command[:-1], "mine.py:build", "--out", "s")
    assert code == 2 and "no Python file 'mine.py'" in err
    help_text = run("fit", "beta-vae", "squares-xy", "--help")[1]
    assert "--network" in help_text and "encoder:" not in help_text  # modules are for Python


def test_written_codes_can_be_read_again(tmp_path):
    path = tmp_path / "codes.csv"
    codes = np.random.default_rng(0).normal(size=(5, 2))
    write_codes(path, codes, [f"{i}.png" for i in range(5)])
    np.testing.assert_allclose(read_codes(path).values, codes)
    assert read_codes(path).keys["file"].tolist() == [f"{i}.png" for i in range(5)]
    pd.DataFrame({"file": [1.0, 2.0], "b": [3.0, 5.0]}).to_csv(path, index=False)
    assert read_codes(path).values.shape == (2, 2)  # a number is a code, whatever it is called
    pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "lab": ["x", "y"] * 2}).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"'lab'.* holds text, not numbers"):
        read_codes(path)


def test_a_table_is_standardized_and_the_output_says_so(run, tmp_path):
    pd.read_csv(write_table()).eval("weight = 1000 * weight + 5").to_csv("my.csv", index=False)
    flags = ["my.csv", "--data.factors", "left", "right", "--latent-dim", "auto"]
    code, out, err = run("fit", "linear-ica", *flags, "--out", "r")
    assert code == 0 and "warning" not in err
    assert "- Columns were standardized (mean 0, standard deviation 1); --data.scale none " in out
    assert "- 2 codes were chosen by cross-validation" in out
    assert "- Code 1: " in out and "weight (" in out
    assert any("standardized" in text for text in json.loads((tmp_path / "r" / "env.json").read_text())["diagnosis"])
    code, out, err = run("fit", "pca", *flags, "--data.scale", "none", "--out", "raw")
    assert code == 0 and "standardized" not in out
    assert err.count("warning: the columns are not scaled: 'weight' varies") == 1
    code, out, _ = run("draw", "r", "my.csv", "--out", "figures")
    assert (code, out.split()) == (0, [f"figures/{name}.png" for name in ("along-codes", "codes", "scree", "loadings")])
    run("report", "r", "raw", "--out", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("Scree plot") == page.count("Loadings: the correlation") == 4  # caption and alternative text
    assert page.count("columns standardized; known factors") == 1


def test_data_that_are_read_on_demand_are_scored_on_a_sample_and_encoded_completely(run, monkeypatch):
    x = np.random.default_rng(0).normal(size=(300, 3)) @ np.array([[1, 2, 0], [0, 1, 1], [1, 0, 0.1]])
    np.save("x.npy", x)
    monkeypatch.setattr("unweave.data.lazy.MAX_STORED_ELEMENTS", 800)
    monkeypatch.setattr(runner, "RunSettings", partial(runner.RunSettings, evaluation_size=50))
    fit = ["fit", "pca", "x.npy", "--samples", 100]
    code, _, err = run(*fit, "--data.memory", 0, "--out", "r", "--codes", "z.npy")
    assert code == 0 and "a random sample of 50 is used" in err and "evaluated on 50 observations" in err
    assert json.loads(Path("r/env.json").read_text())["data"]["rows"] == 300
    np.testing.assert_allclose(np.load("z.npy"), unweave.load("r").transform(x))
    assert len(pd.read_parquet("r/codes.parquet")) == 50
    code, _, err = run(*fit, "--out", "whole")
    assert code == 0 and "sample" not in err and len(pd.read_parquet("whole/codes.parquet")) == 300
