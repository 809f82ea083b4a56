"""The papers' tables and figures by name: none is forgotten, each says what became of it, and each can be run."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from unweave import InputError
from unweave.cli_paper import paper
from unweave.findings import Claim, Findings, Number, together
from unweave.papers import find, findings, items, module, options, page, stored, studies

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
    wanted = [f"{name}/table-{k + 1}" for name, (tables, _) in COUNTS.items() for k in range(tables)]
    wanted += [f"{name}/figure-{k + 1}" for name, (_, figures) in COUNTS.items() for k in range(figures)]
    assert sorted(ITEMS) == sorted(wanted)


def test_every_study_of_a_paper_belongs_to_one():
    files = {path.stem for path in studies().glob("*.py")} - {"__init__", "vae_learning"}
    assert files == {item.study for item in ITEMS.values() if item.study}


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_study_takes_its_options_and_tells_what_it_found(name, tmp_path):
    item = ITEMS[name]
    small, full = options(item, "small", tmp_path), options(item, "full", tmp_path)
    assert len(small) == len(full) == len(item.runs)
    assert small != full
    assert all(each.out.is_relative_to(tmp_path) for each in small + full)
    assert findings(item, tmp_path).verdict() == "not run"
    for field in dataclasses.fields(module(item).Options):
        assert field.name.isidentifier() and hasattr(full[0], field.name)


def test_verdicts_are_by_claims():
    yes, no = Claim("a", True), Claim("b", False)
    assert Findings(claims=(yes, yes)).verdict() == "reproduced"
    assert Findings(claims=(yes, no)).verdict() == "partly: 1 of 2 claims"
    assert Findings(claims=(no,), figures=(Path("a.png"),)).verdict() == "not reproduced"
    assert Findings(figures=(Path("a.png"),)).verdict() == "drawn"
    assert Findings().verdict() == "not run"
    assert together([Findings(claims=(yes,)), Findings(claims=(no,))]).claims == (yes, no)


def test_how_far_numbers_are():
    near, below, many = Number("a", [0.5, 0.6], 0.56), Number("b", [0.2], 0.7), Number("c", [15], 22)
    assert near.off == pytest.approx(-0.01) and below.off == pytest.approx(-0.5)
    assert many.off == pytest.approx(-7 / 22), "a count is taken as a share"
    assert Findings((near, below, many)).distance().startswith("1 of 3 numbers within 0.05; half of ours are -0.32")
    assert Findings().distance() == ""


def test_the_page_is_what_the_results_say():
    written = studies().parent / "docs" / "papers.md"
    assert written.read_text() == page(stored()), "write it again with: unweave paper docs"


def test_stored_tables_hold_the_papers_numbers_beside_ours():
    found = findings(find("intervention/table-1"), stored())
    number = next(n for n in found.numbers if n.name == "intervention, correlated, DCI")
    assert number.paper == 0.74
    assert np.mean(number.ours) == pytest.approx(0.559, abs=0.001)


def test_names_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"did you mean 'hlle-ica/figure-6'\?"):
        paper(["run", "hlle-ica/fig-6"])
    with pytest.raises(InputError, match="has nothing to run: a drawing"):
        paper(["run", "gin/figure-1"])
    with pytest.raises(InputError, match="no paper named 'hle-ica'; did you mean 'hlle-ica'"):
        paper(["list", "hle-ica"])
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
    paper(["list", "gin", "--out", str(tmp_path), "--json"])
    states = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states["gin/figure-7"] == "not reproduced" and states["gin/figure-2"] == "not run"
    assert states["gin/table-1"] == "nothing to run"


def test_flags_that_a_study_does_not_have_are_refused(tmp_path):
    with pytest.raises(InputError, match="sedes"):
        paper(["run", "gin/figure-7", "--scale", "small", "--sedes", "1", "--out", str(tmp_path)])
