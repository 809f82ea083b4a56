"""The command `unweave score`."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers import random_factors


def test_codes_from_another_tool_are_scored(run):
    z = random_factors()
    np.save("z.npy", z[:, ::-1])
    np.save("f.npy", z)
    np.save("x.npy", np.hstack([z, z**2]))
    code, out, _ = run("score", "z.npy", "--factors", "f.npy", "--inputs", "x.npy", "--json")
    assert code == 0
    assert json.loads(out)["mcc"] == pytest.approx(1)
    assert "meaning" in run("score", "z.npy", "--factors", "f.npy")[1]


def test_all_metrics_with_chance_levels_and_intervals(run):
    z = np.random.default_rng(0).integers(0, 4, (300, 2)).astype(float)
    np.save("f.npy", z)
    np.save("z.npy", z + 0.1 * np.random.default_rng(1).normal(size=z.shape))
    code, out, err = run("score", "z.npy", "--factors", "f.npy", "--all", "--chance", "--bootstrap", 3, "--json")
    assert (code, err) == (0, "")
    scores = json.loads(out)
    assert {"mcc", "mig", "dci[trees].completeness", "sap[r2]", "irs[q100]"} <= set(scores)
    assert scores["mcc"]["chance"] < 0.2 < scores["mcc"]["low"] <= scores["mcc"]["high"]
    text = run("score", "z.npy", "--factors", "f.npy", "--metrics", "mcc", "mig", "--chance")[1]
    assert "chance" in text
    assert "dci" not in text


def test_a_run_is_scored_with_its_own_factors(run):
    run("fit", "pca", "squares-xy", "--data.points", 300, "--out", "r")
    kept = json.loads(run("score", "r", "--json")[1])
    assert set(kept) == {"mcc", "local-isometry"}
    code, out, err = run("score", "r", "--all", "--json")
    assert code == 0, err
    assert {"mcc", "local-isometry", "mig", "sap[r2]", "dci[trees].disentanglement"} <= set(json.loads(out))
    scores = json.loads(run("score", "r", "--metrics", "mcc", "--chance", "--json")[1])
    assert scores["mcc"]["chance"] < 0.3 < scores["mcc"]["value"]
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


def write_photo_tables(n=40):
    """Codes and factors of the same photographs, in another order, with columns that are no factors."""
    rng = np.random.default_rng(0)
    c, order = rng.uniform(size=(n, 2)), rng.permutation(n)
    names = [f"p{i}.png" for i in range(n)]
    pd.DataFrame({"file": names, "code1": c[:, 1], "code2": -c[:, 0]}).to_csv("z.csv", index=False)
    factors = pd.DataFrame({"file": names, "light": c[:, 0], "pose": c[:, 1], "day": "2026-01-01"})
    factors["notes"] = [f"taken by hand at noon, {name}" for name in names]
    factors.iloc[order].to_csv("f.csv", index=False)
    return names


def test_rows_are_matched_by_their_key_and_the_output_says_so(run):
    write_photo_tables()
    code, out, err = run("score", "z.csv", "--factors", "f.csv", "--metrics", "mcc")
    assert (code, "warning" in err) == (0, False)
    assert "rows: 40 rows matched by `file`" in out
    assert "factors: light (continuous), pose (continuous)" in out
    assert "file is an identifier" in out and "day is constant" in out
    assert json.loads(run("score", "z.csv", "--factors", "f.csv", "--metrics", "mcc", "--json")[1])["mcc"] > 0.999
    pd.read_csv("z.csv").drop(columns="file").to_csv("unnamed.csv", index=False)
    code, _, err = run("score", "unnamed.csv", "--factors", "f.csv", "--metrics", "mcc", "--json")
    assert "matched by position, since only f.csv names its rows" in err
    pd.read_csv("z.csv").head(30).to_csv("part.csv", index=False)
    _, out, err = run("score", "part.csv", "--factors", "f.csv", "--metrics", "mcc")
    assert "10 rows of f.csv without a partner left out" in out and "warning" not in err
    pd.read_csv("f.csv").head(30).to_csv("g.csv", index=False)
    assert "10 rows of z.csv without a partner left out" in run("score", "z.csv", "--factors", "g.csv")[2]
    pd.read_csv("f.csv").assign(file="x").to_csv("g.csv", index=False)
    code, _, err = run("score", "z.csv", "--factors", "g.csv")
    assert code == 2 and "more than once" in err


def test_kinds_are_printed_and_stated_ones_are_used(run):
    rng = np.random.default_rng(0)
    angle, light = 5 * np.arange(72), rng.uniform(size=72)
    pd.DataFrame({"azimuth": angle, "light": light, "lab": ["A", "B"] * 36}).to_csv("f.csv", index=False)
    pd.DataFrame({"azimuth": angle + 0.001, "light": light, "lab": ["A", "B"] * 36}).to_csv("g.csv", index=False)
    turn = np.deg2rad(angle + 130.0) % (2 * np.pi)
    np.save("z.npy", np.column_stack([turn, light]))
    scores = [json.loads(run("score", "z.npy", "--factors", name, "--json")[1]) for name in ("f.csv", "g.csv")]
    assert scores[0] == pytest.approx(scores[1])
    _, out, _ = run("score", "z.npy", "--factors", "f.csv")
    assert "azimuth (continuous)" in out and "lab (nominal: A, B)" in out
    assert "--circular azimuth=360" in out
    assert "out lab: classes without an order." in out
    circular = ("--circular", "azimuth=360", "--circular-codes", "1=6.283185307", "--all", "--json")
    scores = json.loads(run("score", "z.npy", "--factors", "f.csv", *circular)[1])
    assert scores["mcc"] > 0.999 and scores["mcc[circular]"] > 0.999 and scores["angle-error"] < 0.01
    code, _, err = run("score", "z.npy", "--factors", "f.csv", "--circular", "azimut")
    assert code == 2 and "did you mean 'azimuth'" in err


def test_a_metric_that_fails_is_reported_once_and_the_others_are_printed(run):
    write_photo_tables()
    code, out, err = run("score", "z.csv", "--factors", "f.csv")
    assert code == 0
    assert "mcc" in out and "dci[trees]" in out
    assert err.count("sap[svm] was not computed") == 1


def test_the_codes_of_a_run_are_matched_by_the_names_of_its_rows(run):
    names = write_photo_tables()
    pd.read_csv("f.csv").sort_values("file")[["file", "light", "pose"]].to_csv("m.csv", index=False)
    assert run("fit", "pca", "m.csv", "--out", "r")[0] == 0
    pd.DataFrame({"file": names[::-1], "size": np.arange(40.0)}).to_csv("more.csv", index=False)
    _, out, _ = run("score", "r", "--factors", "more.csv", "--metrics", "mcc")
    assert "40 rows matched by `file`" in out
