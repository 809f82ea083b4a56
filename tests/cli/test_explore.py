"""The command `unweave explore`."""

from pathlib import Path

import numpy as np

SMALL = ("--data.points", "120", "--data.size", "16", "--data.side", "6")


def test_a_run_is_explored_with_the_data_that_it_knows(run):
    assert run("fit", "pca", "squares-xy", *SMALL, "--latent-dim", "2", "--out", "run")[0] == 0
    code, out, err = run("explore", "run", "-o", "page.html")
    assert code == 0, err
    assert "Open page.html in a browser" in out
    text = Path("page.html").read_text()
    assert "<h1>pca on squares-xy</h1>" in text and "120 observations, 2 codes, decoded in this page" in text
    assert '"path":"run"' in text


def test_folders_that_are_no_runs_are_named(run):
    Path("runs").mkdir()
    code, _, err = run("explore", "nope")
    assert code == 2 and "nope does not exist" in err
    code, _, err = run("explore", "runs")
    assert code == 2 and "runs holds no trained method: name the folder of one run" in err


def test_two_runs_are_compared(run):
    for seed in ("1", "2"):
        command = ("fit", "pca", "squares-xy", *SMALL, "--latent-dim", "2", "--seed", seed, "--out", f"run-{seed}")
        assert run(*command)[0] == 0
    code, _, err = run("explore", "run-1", "--compare", "run-2")
    assert code == 0, err
    text = Path("explore.html").read_text()
    assert '"name":"pca, seed 2"' in text and '"matches":[{"code":0,"correlation":1.0,"sign":1}' in text


def test_data_of_files_are_named(run):
    np.save("x.npy", np.random.default_rng(0).uniform(size=(50, 3)))
    assert run("fit", "hessian-ica", "x.npy", "--latent-dim", "2", "--out", "run")[0] == 0
    code, _, err = run("explore", "run")
    assert code == 2 and "unweave explore run DATA" in err
    code, _, err = run("explore", "run", "x.npy")
    assert code == 0, err
    assert "shown by the nearest observations (the method has no decoder)" in Path("explore.html").read_text()
