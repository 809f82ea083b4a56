"""The papers' tables and figures by name: none is forgotten, each says what became of it, and each can be run."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.cli.paper import paper
from unweave.papers.registry import find, findings, items, module, options, page, stored
from unweave.papers.verdicts import Claim, Findings, Number, ahead, contestants, kept, together

ITEMS = items()
RUNNABLE = [name for name, item in ITEMS.items() if item.study]
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
    assert sorted(ITEMS) == sorted(expected)


def test_every_study_of_a_paper_belongs_to_one():
    paths = {path.relative_to(stored()).with_suffix("") for path in stored().glob("*/*.py") if path.stem != "__init__"}
    files = {".".join(path.parts) for path in paths} - {"baselines.vae_learning"}
    assert files == {item.study for item in ITEMS.values() if item.study}


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_study_takes_its_options_and_tells_what_it_found(name, tmp_path):
    item = ITEMS[name]
    small, full = options(item, "small", tmp_path), options(item, "full", tmp_path)
    assert 1 <= len(small) <= len(full) == len(item.runs)
    assert small != full
    assert all(each.out.is_relative_to(tmp_path) for each in small + full)
    assert findings(item, tmp_path).verdict() == "not run"
    for field in dataclasses.fields(module(item).Options):
        assert field.name.isidentifier() and hasattr(full[0], field.name)


def test_verdicts_are_by_claims():
    yes, no, half, own = Claim("a", True), Claim("b", False), Claim("c", None), Claim("d", False, own=True)
    assert Findings(claims=(yes, yes, own)).verdict() == "reproduced"
    assert Findings(claims=(yes, half)).verdict() == "partly: 1 of 2 claims, 1 in the means only"
    assert Findings(claims=(yes, no)).verdict() == "partly: 1 of 2 claims"
    assert Findings(claims=(half, half)).verdict() == "in the means only: 2 of 2 claims"
    assert Findings(claims=(half, no)).verdict() == "in the means only: 1 of 2 claims"
    assert Findings(claims=(no,), figures=(Path("a.png"),)).verdict() == "not reproduced"
    assert Findings(claims=(yes,), missing=("b", "c")).verdict() == "reproduced; 2 parts not run"
    assert Findings(figures=(Path("a.png"),)).verdict() == "drawn"
    assert Findings(missing=("b",)).verdict() == "not run"
    assert together([Findings(claims=(yes,)), Findings(claims=(no,))]).claims == (yes, no)


def test_a_table_keeps_what_other_calls_have_put_there(tmp_path):
    path = tmp_path / "scores.csv"
    kept(
        pd.DataFrame({"method": ["a", "a", "b"], "seed": [0, 1, 0], "score": [0.1, 0.2, 0.3]}), path, ["method", "seed"]
    )
    new = pd.DataFrame({"method": ["c", "a"], "seed": [0, 1], "score": [0.4, 0.5]})
    rows = kept(new, path, ["method", "seed"])
    assert rows.to_dict("list") == {"method": ["a", "b", "c", "a"], "seed": [0, 0, 0, 1], "score": [0.1, 0.3, 0.4, 0.5]}
    pd.testing.assert_frame_equal(pd.read_csv(path), rows)


@pytest.mark.parametrize("name", [name for name in RUNNABLE if name.startswith(("intervention", "swap-contrast"))])
def test_other_steps_go_to_other_places(name):
    study = module(ITEMS[name])
    where = getattr(study, "place", None) or study.suffix
    for scale in ("full", "small"):
        chosen = dataclasses.replace(options(ITEMS[name], scale)[0], steps=0)
        usual = study.usual_steps(chosen) if hasattr(study, "usual_steps") else study.STEPS[scale]
        assert where(dataclasses.replace(chosen, steps=usual)) == where(chosen)
        assert "7-steps" in str(where(dataclasses.replace(chosen, steps=7)))


def test_of_three_seeds_the_one_that_translates_best_is_taken():
    study = module(ITEMS["intervention/table-3"])
    hard = {"a": [0.3, 0.1, 0.2, 0.6, 0.5, 0.4, 0.0], "b": [0.1, 0.2, 0.3]}
    rows = pd.DataFrame([("correlated", name, k, v) for name, several in hard.items() for k, v in enumerate(several)])
    found = study.with_easiest(rows.set_axis(["part", "method", "seed", "translation"], axis=1))
    added = found[len(rows) :]  # the seventh seed of a is no three, and one three of b tells nothing
    assert added["seed"].tolist() == [1, 5] and added["translation"].tolist() == [0.1, 0.4]
    assert set(added["method"]) == {"a, best of 3 by translation"}
    dead = rows.set_axis(["part", "method", "seed", "translation"], axis=1).replace(0.1, np.nan)
    assert study.with_easiest(dead)[len(rows) :]["seed"].tolist() == [2, 5]


def test_two_studies_that_end_at_the_same_moment_lose_no_row(tmp_path):
    path, seeds = tmp_path / "scores.csv", range(16)
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda s: kept(pd.DataFrame({"method": ["m"], "seed": [s]}), path, ["method", "seed"]), seeds))
    assert sorted(pd.read_csv(path)["seed"]) == [*seeds]
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_losing_little_of_nothing_is_no_claim():
    study = module(ITEMS["intervention/table-3"])
    scores = {"intervention": (0.01, 0.01), "x": (0.6, 0.4), "y": (0.5, 0.45)}
    parts = ("independent", "correlated")
    rows = pd.DataFrame([(m, parts[i], v) for m, both in scores.items() for i, v in enumerate(both)])
    rows = rows.set_axis(["method", "part", "sap"], axis=1)
    found = study.loses_less(rows, "sap", study.OURS, ["x", "y"], "cheap")
    assert found.claims[0].holds is False and "nothing to lose" in found.notes[0]
    found = study.loses_less(rows.replace(0.01, 0.55), "sap", study.OURS, ["x", "y"], "cheap")
    assert found.claims[0].holds is None and not found.notes


def test_a_lead_is_one_where_runs_agree():
    scores = {"ours": [0.9, 0.91, 0.92], "near": [0.7, 0.95, 0.9], "far": [0.1, 0.12, 0.11], "above": [1.0, 1.0, 1.0]}
    held = {name: ahead("", scores, "ours", [name])[0].holds for name in ("near", "far", "above")}
    assert held == {"near": None, "far": True, "above": False}
    assert ahead("", scores, "ours", ["far", "above"])[0].holds is False
    close = {"ours": [0.9, 0.91, 0.92], "theirs": [0.85, 0.88, 0.89]}  # p is 0.04
    assert [ahead("", close, "ours", ["theirs"], tried=n)[0].holds for n in (1, 4)] == [True, None]
    assert (
        ahead("", scores, "ours", [])
        == ahead("", scores, "ours", ["not run"])
        == ahead("", scores, "us", ["far"])
        == ()
    )
    assert ahead("", {"a": [0.5], "b": [0.4]}, "a", ["b"])[0].holds is None, "one run is no proof"


def test_how_far_numbers_are():
    near, below, many = Number("a", [0.5, 0.6], 0.56), Number("b", [0.2], 0.7), Number("c", [15], 22)
    assert near.off == pytest.approx(-0.01) and below.off == pytest.approx(-0.5)
    assert many.off == pytest.approx(-7 / 22), "a count is taken as a share"
    assert Findings((near, below, many)).distance() == "1 of 3 numbers within 0.05; half of them are more than 0.32 off"
    assert Findings().distance() == ""


@pytest.mark.parametrize("name", ["intervention/table-1", "swap-contrast/table-1", "swap-contrast/table-3"])
def test_a_table_of_some_methods_claims_nothing_of_others(name, tmp_path):
    item = ITEMS[name]
    for each in options(item, "full", tmp_path):
        place = module(item).place(each)
        kept = stored() / place.relative_to(tmp_path) / "scores.csv"
        if kept.is_file():
            rows = pd.read_csv(kept)
            place.mkdir(parents=True)
            rows[rows.iloc[:, 0] == rows.iloc[0, 0]].to_csv(place / "scores.csv", index=False)  # one method alone
    found = findings(item, tmp_path)
    assert not found.claims and found.missing


def test_the_page_is_what_the_results_say():
    written = Path(__file__).parents[2] / "docs" / "papers.md"
    assert written.read_text() == page(stored()), "write it again with: unweave paper docs"


def test_stored_tables_hold_the_papers_numbers_beside_ours():
    found = findings(find("intervention/table-1"), stored())
    number = next(n for n in found.numbers if n.name == "intervention, lambda_adv 30, correlated, DCI")
    assert number.paper == 0.74
    assert np.mean(number.ours) == pytest.approx(0.559, abs=0.001)


def test_names_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"did you mean 'hlle-ica/figure-6'\?"):
        paper(["run", "hlle-ica/fig-6"])
    with pytest.raises(InputError, match="has nothing to run: a drawing"):
        paper(["run", "gin/figure-1"])
    with pytest.raises(InputError, match="no paper named 'hle-ica'; did you mean 'hlle-ica'"):
        paper(["list", "hle-ica"])
    with pytest.raises(InputError, match="name"):
        paper(["run", "--seeds", "5"])
    with pytest.raises(InputError, match="no action"):
        paper(["runs"])
    with pytest.raises(InputError, match=r"\.md"):
        paper(["docs", "papers.html"])


def test_one_is_run_by_its_name_and_judged(tmp_path, capsys):
    flags = ["--datasets", "1", "--seeds", "1", "--steps", "3", "--out", str(tmp_path)]
    paper(["run", "gin/figure-7", "--scale", "small", *flags])
    told = capsys.readouterr().out
    assert "does not hold: 10,000 points are too few" in told, "soft mixing leaves little to be found"
    assert "gin/figure-7, small scale: not reproduced" in told and "says little about the paper" in told
    paper(["run", *flags, "gin/figure-6", "--scale", "small", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["claims"][0]["claim"].startswith("GIN finds both sources")
    paper(["list", "gin", "--out", str(tmp_path), "--json"])
    states = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states["gin/figure-7"] == "not reproduced", "another item leaves it"
    assert states["gin/figure-6"] != "not run" and states["gin/figure-8"] == "not run"
    assert states["gin/table-1"] == "nothing to run"


def test_flags_that_a_study_does_not_have_are_refused(tmp_path):
    with pytest.raises(InputError, match="sedes"):
        paper(["run", "gin/figure-7", "--scale", "small", "--sedes", "1", "--out", str(tmp_path)])


def test_contestants_are_asked_for_by_their_names_or_parts_of_them():
    found = {"ours": 1, "ours, joint": 2, "CNN": 3}
    assert contestants(found, ()) == found
    assert contestants(found, ("ours",)) == {"ours": 1}
    assert contestants(found, ("our", "CNN")) == found
    with pytest.raises(InputError, match=r"no method is called so \(there are: ours, ours, joint, CNN"):
        contestants(found, ("VFAE",))
