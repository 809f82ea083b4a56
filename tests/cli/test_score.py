"""The command `unweave score`."""

import json

import numpy as np
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
