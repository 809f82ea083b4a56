"""The commands `unweave encode` and `unweave predict`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave.experiments.run import read_run


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) * [1, 2, 3]
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(kind=np.where(x[:, 0] > 0, "u", "v"), lab=["A", "B"] * 30)
    frame.insert(0, "sample", [f"S{i:02}" for i in range(60)])
    frame.to_csv("train.csv", index=False)
    return frame


def test_new_rows_are_encoded_with_their_identifiers_and_without_labels(run, table):
    assert run("fit", "pca", "train.csv", "--data.factors", "kind", "lab", "--out", "r", "--codes", "z.csv")[0] == 0
    new = table[["c", "sample", "b", "a"]].iloc[5:25]
    new.assign(other=1.0).to_csv("new.csv", index=False)
    code, out, err = run("encode", "r", "new.csv", "--codes", "new_z.csv")
    assert code == 0, err
    assert "20 rows of 2 codes are in new_z.csv" in out
    before, after = pd.read_csv("z.csv"), pd.read_csv("new_z.csv")
    assert after["sample"].tolist() == before["sample"].tolist()[5:25]
    np.testing.assert_allclose(after[["code1", "code2"]], before[["code1", "code2"]].iloc[5:25], atol=1e-6)
    constant = table[["sample", "a", "b", "c"]].head(4).assign(b=1.0)
    constant.to_csv("constant.csv", index=False)
    assert run("encode", "r", "constant.csv")[0] == 0, "a column that is constant in new rows was learned from"
    code, _, err = run("encode", "r", "nowhere.csv")
    assert code == 2 and "nowhere.csv" in err
    table.drop(columns="b").to_csv("short.csv", index=False)
    code, _, err = run("encode", "r", "short.csv")
    assert code == 2 and "no column of short.csv named 'b'" in err


def test_classes_of_new_rows_are_predicted(run, table):
    options = (
        "--data.factors",
        "kind",
        "lab",
        "--label",
        "kind",
        "--steps",
        "150",
        "--device",
        "cpu",
        "--layers",
        "16",
    )
    code, _, err = run("fit", "vae-classifier", "train.csv", *options, "--out", "r")
    assert code == 0, err
    code, out, err = run("predict", "r", "train.csv", "--out", "p.csv")
    assert code == 0, err
    assert "compared with the column 'kind'" in out
    predictions = pd.read_csv("p.csv")
    assert list(predictions.columns) == ["sample", "prediction", "p(u)", "p(v)"]
    np.testing.assert_allclose(predictions[["p(u)", "p(v)"]].sum(1), 1, atol=1e-6)
    assert (predictions["prediction"] == table["kind"]).mean() > 0.8
    table[["sample", "a", "b", "c"]].to_csv("new.csv", index=False)
    _, out, _ = run("predict", "r", "new.csv", "--out", "q.csv")
    assert "accuracy" not in out
    assert pd.read_csv("q.csv").equals(predictions)
    run("fit", "pca", "new.csv", "--out", "pca")
    code, _, err = run("predict", "pca", "new.csv")
    assert code == 2 and "pca is no classifier" in err


def test_held_out_rows_are_scored(run, table):
    code, out, err = run(
        "fit", "pca", "train.csv", "--data.factors", "kind", "lab", "--test-where", "lab == B", "--out", "r"
    )
    assert code == 0, err
    assert "scores are of 30 held-out rows; 30 rows were learned from" in out
    finished = read_run(Path("r"))
    assert finished.row_names == tuple(table["sample"][table["lab"] == "B"])
    code, _, err = run("fit", "pca", "squares-xy", "--test", "0.2")
    assert code == 2 and "split your own data" in err


def test_names_of_rows_and_classes_are_no_formulas_in_written_tables(run, table):
    names = [f"=HYPERLINK({i})" if i % 2 else f"-{i}+x" for i in range(60)]
    table.assign(sample=names, kind=np.where(table["a"] > 0, "@u", "+v")).to_csv("named.csv", index=False)
    options = ("--data.factors", "kind", "lab", "--out")
    assert run("fit", "pca", "named.csv", *options, "r", "--codes", "z.csv")[0] == 0
    assert pd.read_csv("z.csv")["sample"].tolist() == [f"'{name}" for name in names]
    table[["a"]].assign(sample=names).to_csv("known.csv", index=False)
    code, out, err = run("score", "z.csv", "--factors", "known.csv", "--metrics", "mcc")
    assert code == 0, err
    assert "60 rows matched by `sample`" in out, "the names are restored when the file is read"
    training = ("--label", "kind", "--steps", "5", "--device", "cpu", "--layers", "4")
    assert run("fit", "vae-classifier", "named.csv", *options, "c", *training)[0] == 0
    code, _, err = run("predict", "c", "named.csv", "--out", "p.csv")
    assert code == 0, err
    predictions = pd.read_csv("p.csv")
    assert set(predictions["prediction"]) <= {"'@u", "'+v"}
    assert predictions["sample"].tolist() == [f"'{name}" for name in names]
