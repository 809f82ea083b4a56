"""The papers' tables and figures by name: all are listed, each has a status, and each can be run."""

import dataclasses
import inspect
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.cli.main import main as command
from unweave.cli.paper import paper
from unweave.papers.intervention import claims as intervention_claims
from unweave.papers.readme import describe_item
from unweave.papers.registry import find, items
from unweave.papers.scripts import (
    describe_status,
    load_script,
    make_options,
    read_findings,
    read_tables,
    stored_results,
    validate_options,
)

ITEMS = items()
RUNNABLE = [name for name, item in ITEMS.items() if item.script]
# How many tables and figures each paper has, appendix included.
COUNTS = {
    "gin": (3, 15),
    "self-supervised-gin": (1, 10),
    "hlle-ica": (0, 8),
    "intervention": (9, 6),
    "swap-contrast": (5, 8),
}


def test_every_table_and_figure_has_its_name():
    expected = [f"{name}/table-{k + 1}" for name, (tables, _) in COUNTS.items() for k in range(tables)]
    expected += [f"{name}/figure-{k + 1}" for name, (_, figures) in COUNTS.items() for k in range(figures)]
    assert sorted(name for name, item in ITEMS.items() if not item.own) == sorted(expected)


def test_every_script_belongs_to_a_table_or_figure():
    scripts = [path for path in stored_results().glob("*/*.py") if "def main(" in path.read_text(encoding="utf-8")]
    assert {f"{path.parent.name}.{path.stem}" for path in scripts} == {ITEMS[name].script for name in RUNNABLE}


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_script_takes_its_options_and_has_a_status(name, tmp_path):
    item = ITEMS[name]
    small, full = make_options(item, "small", tmp_path), make_options(item, "full", tmp_path)
    assert 1 <= len(small) <= len(full) == len(item.runs)
    assert small != full
    assert all(each.out.is_relative_to(tmp_path) for each in small + full)
    assert read_findings(item, tmp_path).verdict() == "not run"
    assert describe_status(item, tmp_path) == "not run"
    for field in dataclasses.fields(load_script(item).Options):
        assert field.name.isidentifier() and hasattr(full[0], field.name)


@pytest.mark.parametrize("name", [name for name in RUNNABLE if name.startswith(("intervention", "swap-contrast"))])
def test_other_steps_have_a_folder_of_their_own(name, tmp_path):
    script = load_script(ITEMS[name])
    for scale in ("full", "small"):
        options = dataclasses.replace(make_options(ITEMS[name], scale, tmp_path)[0], steps=0)
        usual = script.usual_steps(options) if hasattr(script, "usual_steps") else script.STEPS[options.scale]
        assert script.folders(dataclasses.replace(options, steps=usual)) == script.folders(options)
        assert "7-steps" in script.folders(dataclasses.replace(options, steps=7)).name


def test_of_three_seeds_the_one_that_translates_best_is_selected():
    hard = {"a": [0.3, 0.1, 0.2, 0.6, 0.5, 0.4, 0.0], "b": [0.1, 0.2, 0.3]}
    rows = pd.DataFrame([("correlated", name, k, v) for name, several in hard.items() for k, v in enumerate(several)])
    found = intervention_claims.add_selected(rows.set_axis(["part", "method", "seed", "translation"], axis=1))
    added = found[len(rows) :]  # the seventh seed of a makes no triple, and one triple of b shows nothing
    assert added["seed"].tolist() == [1, 5] and added["translation"].tolist() == [0.1, 0.4]
    assert set(added["method"]) == {"a, best of 3 by translation"}
    dead = rows.set_axis(["part", "method", "seed", "translation"], axis=1).replace(0.1, np.nan)
    assert intervention_claims.add_selected(dead)[len(rows) :]["seed"].tolist() == [2, 5]


def test_a_method_with_a_low_score_has_nothing_to_lose():
    compare, ours = intervention_claims.compare_losses, intervention_claims.OURS
    scores = {"intervention": (0.01, 0.01), "x": (0.6, 0.4), "y": (0.5, 0.45)}
    parts = ("independent", "correlated")
    rows = pd.DataFrame([(m, parts[i], v) for m, both in scores.items() for i, v in enumerate(both)])
    rows = rows.set_axis(["method", "part", "sap"], axis=1).assign(seed=0)
    found = compare(rows, "sap", ours, ["x", "y"], "cheap")
    assert found.claims[0].holds is False and "nothing to lose" in found.notes[0]
    found = compare(rows.replace(0.01, 0.55), "sap", ours, ["x", "y"], "cheap")
    assert found.claims[0].holds is None and not found.notes
    several = pd.concat(
        [
            rows.replace(0.01, 0.55).assign(
                seed=k, sap=lambda r, k=k: r["sap"] - 0.01 * k * (r["part"] == "correlated")
            )
            for k in range(5)
        ]
    )
    (claim,) = compare(several, "sap", ours, ["x"], "cheap").claims
    assert claim.holds and claim.p < 0.001, "losses of 0.00 to 0.04, and of 0.20 to 0.24"


@pytest.mark.parametrize("name", ["intervention/table-1", "swap-contrast/table-1", "swap-contrast/table-3"])
def test_a_table_of_some_methods_claims_nothing_of_others(name, tmp_path):
    item = ITEMS[name]
    for options in make_options(item, "full", tmp_path):
        folders = load_script(item).folders(options)
        path = stored_results() / folders.scores.relative_to(tmp_path)
        if path.is_file():
            rows = pd.read_csv(path)
            folders.create()
            rows[rows.iloc[:, 0] == rows.iloc[0, 0]].to_csv(folders.scores, index=False)  # one method only
    found = read_findings(item, tmp_path)
    assert not found.claims and found.missing


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("scale", ["small", "full"])
def test_methods_of_every_script_accept_their_settings(name, scale, tmp_path):
    script = load_script(ITEMS[name])
    for options in make_options(ITEMS[name], scale, tmp_path):
        if hasattr(script, "methods"):
            arguments = (options, 0)[: len(inspect.signature(script.methods).parameters)]
            assert script.methods(*arguments)
        if hasattr(script, "make_method"):
            assert script.make_method(options, 1_000)
        if hasattr(script, "list_runs"):
            assert script.list_runs(options)


def test_a_wheel_without_figures_has_the_same_status(tmp_path):
    results = tmp_path / "papers"
    shutil.copytree(stored_results(), results, ignore=shutil.ignore_patterns("*.png", "*.py", "__pycache__", "runs"))
    assert not list(results.rglob("*.png"))
    for item in ITEMS.values():
        assert describe_status(item, results) == describe_status(item, stored_results())


def test_results_of_converged_runs_take_the_place_of_the_others(tmp_path):
    item = ITEMS["intervention/table-1"]
    rows = {
        "part": "correlated",
        "seed": [0, 1],
        "dci": 0.5,
        "sap": 0.1,
        "sap[mixed]": 0.4,
        "irs": 0.6,
        "translation": 0.1,
    }
    usual, *_ = make_options(item, "full", tmp_path)
    for options, method in (
        (usual, "intervention"),
        (dataclasses.replace(usual, converged=True), "FactorVAE, gamma = 10"),
    ):
        folders = load_script(item).folders(options)
        folders.create()
        pd.DataFrame({"method": method} | rows).to_csv(folders.scores, index=False)
        assert [table.rows[0][0] for table in read_tables(item, tmp_path)] == [method]
    assert "100,000 steps" in read_findings(item, tmp_path).effort
    assert "`unweave paper run intervention/table-1 --converged`" in describe_item("intervention/table-1", tmp_path)
    assert "run intervention/table-1`" in describe_item("intervention/table-1", stored_results())


def test_every_recorded_figure_is_stored():
    records = list(stored_results().rglob("figures.json"))
    assert records
    for record in records:
        parts = list(record.parent.relative_to(stored_results()).parts)
        parts[1] = "figures"
        figures = stored_results().joinpath(*parts)
        assert json.loads(record.read_text())["figures"] == sorted(path.name for path in figures.glob("*.png"))


def test_numbers_of_options_are_checked():
    options = load_script(ITEMS["gin/figure-7"]).Options
    with pytest.raises(InputError, match="--seeds 0: expected at least 1"):
        validate_options(options(seeds=0))
    with pytest.raises(InputError, match="--steps -4: expected at least 0"):
        validate_options(options(steps=-4))


@pytest.mark.parametrize(
    ("flags", "text"),
    [("--seeds 0", "--seeds 0: expected at least 1"), ("--steps -4", "--steps -4: expected at least 0"),
     ("--sedes 1", "Perhaps you meant")],
)  # fmt: skip
def test_the_command_reports_a_wrong_flag_in_one_line(flags, text, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(["paper", "run", "gin/figure-7", "--scale", "small", "--out", str(tmp_path), *flags.split()])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and text in error and "Traceback" not in error


def test_scripts_are_silent_without_an_output(tmp_path, capsys):
    item = ITEMS["gin/figure-7"]
    for options in make_options(item, "small", tmp_path):
        load_script(item).main(dataclasses.replace(options, datasets=1, seeds=1, steps=2, only=options.only[:1]))
    captured = capsys.readouterr()
    assert not captured.out and not captured.err
    assert (tmp_path / "gin" / "figures" / "artificial").is_dir()


def test_stored_tables_hold_the_papers_numbers_beside_ours():
    found = read_findings(find("intervention/table-1"), stored_results())
    number = next(n for n in found.numbers if n.name == "intervention, lambda_adv 30, correlated, DCI")
    assert number.paper == 0.74
    assert np.mean(number.ours) == pytest.approx(0.559, abs=0.001)


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"did you mean 'hlle-ica/figure-6'\?"):
        paper(["run", "hlle-ica/fig-6"])
    with pytest.raises(InputError, match="has nothing to run: drawing"):
        paper(["run", "gin/figure-1"])
    with pytest.raises(InputError, match="no paper named 'hle-ica'; did you mean 'hlle-ica'"):
        paper(["list", "hle-ica"])
    with pytest.raises(InputError, match="name"):
        paper(["run", "--seeds", "5"])
    with pytest.raises(InputError, match="no action"):
        paper(["runs"])
    with pytest.raises(InputError, match=r"\.md"):
        paper(["docs", "papers.html"])


def test_a_figure_is_run_by_its_name(tmp_path, capsys):
    flags = ["--datasets", "1", "--seeds", "1", "--steps", "3", "--out", str(tmp_path)]
    paper(["run", "gin/figure-7", "--scale", "small", "--only", "5 clusters, 10,000 points", *flags])
    text = capsys.readouterr().out
    assert "does not hold: 5 clusters, 10,000 points are too few" in text, "soft mixing leaves little to recover"
    assert "gin/figure-7, small scale: not reproduced" in text and "no evidence about the paper" in text
    paper(["run", *flags, "gin/figure-6", "--scale", "small", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["claims"][0]["claim"].startswith("5 clusters, 100,000 points, soft mixing: GIN recovers both")
    assert found["claims"][2]["claim"].startswith("5 clusters, steep mixing: GIN recovers both sources")
    paper(["list", "gin", "--out", str(tmp_path), "--json"])
    states = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states["gin/figure-7"] == "not reproduced (1 run)", "another item leaves it"
    assert states["gin/figure-6"] != "not run" and states["gin/figure-8"] == "not run"
    assert states["gin/table-1"] == "nothing to run"


def test_flags_that_a_script_does_not_have_are_refused(tmp_path):
    with pytest.raises(InputError, match="sedes"):
        paper(["run", "gin/figure-7", "--scale", "small", "--sedes", "1", "--out", str(tmp_path)])
