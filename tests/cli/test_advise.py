"""The command `unweave advise`, and the warning of `unweave fit` before a long run."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from unweave.cli import fit as fit_module


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 3)) @ rng.normal(size=(3, 6)) * 10.0 ** np.arange(6)
    frame = pd.DataFrame(x, columns=list("abcdef")).assign(kind=list("uvwxy") * 60, lab=["A"] * 150 + ["B"] * 150)
    frame.to_csv("my table.csv", index=False)
    return frame


def parse_fit(run, monkeypatch, command):
    """Return the options of a printed `unweave fit`, which is not executed."""
    parsed = []
    monkeypatch.setattr(fit_module, "_fit", parsed.append)
    program, *words = shlex.split(command)
    assert program == "unweave"
    code, _, err = run(*words)
    assert code == 0, err
    return parsed[0]


def test_recommended_commands_can_be_copied(run, table, monkeypatch):
    known = "--labels", "kind", "--nuisances", "lab", "--data.columns", "a", "b", "c", "--no-timed"
    code, out, err = run("advise", "my table.csv", *known)
    assert code == 0, err
    commands = [line.strip() for line in out.splitlines() if line.strip().startswith("unweave fit")]
    assert [command.split()[2] for command in commands] == ["swap-contrast", "vae-classifier", "gin"]
    options = parse_fit(run, monkeypatch, commands[0])
    assert (options.method.label, options.method.nuisances) == ("kind", ("lab",))
    assert str(options.data.path) == "my table.csv"
    assert options.data.factors == ("kind", "lab") and options.data.columns == ("a", "b", "c")
    assert parse_fit(run, monkeypatch, commands[2]).method.standardize


def test_json_and_datasets_of_the_catalog(run, monkeypatch):
    code, out, _ = run("advise", "swiss-roll", "--data.points", "500", "--json", "--no-timed")
    assert code == 0
    advice = json.loads(out)
    assert advice["facts"]["rows"] == 500 and advice["facts"]["shape"] == [3]
    best = advice["recommendations"][0]
    assert best["method"] == "hessian-ica" and best["seconds"] is None
    assert parse_fit(run, monkeypatch, best["command"]).data.points == 500


def test_times_are_printed(run, table):
    table[list("abcdef")].to_csv("plain.csv", index=False)
    code, out, err = run("advise", "plain.csv")
    assert code == 0, err
    assert "1. linear-ica: 3 of 3 components are not Gaussian (less than 5 s)" in out


def test_mistakes_are_named(run, table):
    assert "usage: unweave advise DATA" in run("advise")[1]
    code, _, err = run("advise", "--json", "my table.csv")
    assert code == 2 and "name the data first" in err
    code, _, err = run("advise", "my table.csv", "--labels", "species")
    assert code == 2 and "species" in err
    code, _, err = run("advise", "nowhere.csv")
    assert code == 2 and "nowhere.csv" in err


FIT = ("fit", "beta-vae", "squares-xy", "--data.points", "50", "--data.size", "16", "--data.side", "4")


def test_fit_warns_before_a_long_run_and_does_not_time_a_short_one(run, monkeypatch):
    asked = []

    def describe(method, data, dataset):
        asked.append((method.steps, data.shape, dataset.__name__))
        return "about 4 h on this CPU"

    monkeypatch.setattr("unweave.experiments.timing.describe_long_run", describe)
    small = "--steps", "2", "--batch-size", "8", "--device", "cpu"
    code, _, err = run(*FIT, *small, "--out", "short")
    assert code == 0 and not asked and "on this CPU" not in err
    monkeypatch.setattr(fit_module, "MIN_TIMED_ELEMENTS", 100)
    code, _, err = run(*FIT, *small, "--seed", "1", "--out", "long")
    assert code == 0 and "warning: about 4 h on this CPU" in err
    assert asked == [(2, (1, 16, 16), "SquaresXY")]
    assert run(*FIT, *small, "--seed", "1", "--out", "long")[0] == 0
    assert len(asked) == 1, "a finished run is not timed"
