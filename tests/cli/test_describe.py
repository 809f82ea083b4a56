"""The command `unweave describe`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave.methods import PCA, HessianICA
from unweave.utils.manifest import write_manifest

SMALL = ("--data.points", "150", "--data.size", "16", "--data.side", "6")


def test_a_run_is_described_with_the_data_that_it_knows(run):
    assert run("fit", "hessian-ica", "squares-xy", *SMALL, "--latent-dim", "2", "--out", "run")[0] == 0
    code, out, err = run("describe", "run")
    assert code == 0, err
    assert "horizontal position (|r| = 1.00)" in out and "vertical position (|r| = 1.00)" in out
    assert out.startswith("code 1: ") and "measuring attributes" in err


def test_two_runs_are_compared_and_tables_are_written(run):
    for seed in ("1", "2"):
        command = ("fit", "pca", "squares-xy", *SMALL, "--latent-dim", "3", "--seed", seed, "--out", f"run-{seed}")
        assert run(*command)[0] == 0
    code, out, err = run("describe", "run-1", "squares-xy", "--compare", "run-2", "--out", "tables/codes.csv")
    assert code == 2 and "trained on shape" in err, "the default size of the data is another one"
    code, out, err = run("describe", "run-1", "--compare", "run-2", "--out", "tables/codes.csv")
    assert code == 0, err
    assert "code 1 of the other method (|r| = 1.00)" in out and "The table is in tables/codes.csv." in out
    assert run("describe", "run-1", "--compare", "run-2", "-o", "codes.json")[0] == 0
    table, rows = pd.read_csv("tables/codes.csv"), json.loads(Path("codes.json").read_text())
    assert table["code"].unique().tolist() == [1, 2, 3] and len(rows) == len(table)
    assert rows[0]["counterpart"] == 1 and rows[0]["match"] == pytest.approx(1)
    assert rows[0]["words"] == table["words"][0] and rows[0]["strength"] <= 1


def test_a_saved_method_is_described_with_a_file(run):
    rng = np.random.default_rng(0)
    age, income = rng.normal(40, 9, 100), rng.exponential(900, 100)
    frame = pd.DataFrame({"age": age, "income": income, "rent": income + rng.normal(0, 90, 100)})
    frame.to_csv("people.csv", index=False)
    PCA(latent_dim=2).fit(frame).save("model")
    code, out, err = run("describe", "model", "people.csv")
    assert code == 0, err
    assert "code 1: " in out and ("income" in out or "rent" in out) and "code 2: age" in out
    code, _, err = run("describe", "model")
    assert code == 2 and "unweave describe model DATA" in err


def test_names_of_columns_are_no_formulas_in_the_table(run):
    x = np.random.default_rng(0).normal(size=(60, 2)) * [1, 5]
    pd.DataFrame(x, columns=["=1+1", "@b"]).to_csv("t.csv", index=False)
    assert run("fit", "pca", "t.csv", "--latent-dim", "1", "--out", "run")[0] == 0
    assert run("describe", "run", "t.csv", "--out", "codes.csv")[0] == 0
    cells = pd.read_csv("codes.csv", dtype=str).fillna("").to_numpy().ravel().tolist()
    assert any("=1+1" in cell or "@b" in cell for cell in cells)
    assert not any(cell.startswith(("=", "@")) for cell in cells)


@pytest.mark.parametrize("value", [None, [], "swiss-roll", {}, {"name": 3}])
def test_a_recipe_that_was_altered_is_no_internal_error(run, value):
    assert run("fit", "pca", "swiss-roll", "--data.points", "60", "--latent-dim", "1", "--out", "run")[0] == 0
    recipe = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps(recipe | {"data": value}))
    write_manifest(Path("run"))
    assert run("describe", "run")[0] == 2
    pd.DataFrame(np.eye(5, 3), columns=list("abc")).to_csv("t.csv", index=False)
    code, _, err = run("encode", "run", "t.csv")
    assert code == (0 if isinstance(value, dict) else 2), err


def test_what_cannot_be_described_is_named(run):
    code, out, _ = run("describe", "--help")
    assert code == 0 and "what each code of a run changes" in out and "--compare" in out
    code, _, err = run("describe", "nope")
    assert code == 2 and "nope does not exist" in err
    code, _, err = run("describe", "nope", "--out", "table.txt")
    assert code == 2 and "table.txt: the table is written as .csv or .json" in err
    Path("folder.csv").mkdir()
    code, _, err = run("describe", "nope", "--out", "folder.csv")
    assert code == 2 and "cannot write folder.csv" in err
    np.save("x.npy", np.random.default_rng(0).uniform(size=(50, 3)))
    HessianICA(latent_dim=2).fit(np.load("x.npy")).save("model")
    np.save("wide.npy", np.eye(4))
    code, _, err = run("describe", "model", "wide.npy")
    assert code == 2 and "trained on shape (3,)" in err
