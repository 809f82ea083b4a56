"""The papers' READMEs: generated parts are up to date, and figures exist."""

import re
from pathlib import Path

import pytest

from unweave import InputError
from unweave.cli.paper import paper as paper_command
from unweave.papers.output import TextTable
from unweave.papers.readme import LINE_LENGTH, format_table, make_index, update_readme, update_summary
from unweave.papers.registry import PAPERS
from unweave.papers.scripts import stored_results
from unweave.papers.verdicts import Claim, join_claims

ROOT = Path(__file__).parents[2]
README = {name: stored_results() / name.replace("-", "_") / "README.md" for name in PAPERS}


@pytest.mark.parametrize("name", PAPERS)
def test_generated_parts_are_up_to_date(name):
    text = README[name].read_text(encoding="utf-8")
    assert text == update_readme(name, text, stored_results()), "write it again with: unweave paper docs"
    assert "<!-- generated: " in text and "## Limitations" in text


def test_the_index_is_up_to_date():
    text = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    assert text == make_index(stored_results()), "write it again with: unweave paper docs"


def test_the_table_of_the_front_page_is_up_to_date():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- generated: papers -->" in text
    assert text == update_summary(text, stored_results()), "write it again with: unweave paper docs"


@pytest.mark.parametrize("name", PAPERS)
def test_figures_of_a_readme_exist(name):
    text = README[name].read_text(encoding="utf-8")
    paths = re.findall(r"figures/[\w./-]+\.png", text)
    assert paths
    for path in paths:
        assert (README[name].parent / path).is_file(), path


def test_wide_tables_are_split_and_repeat_their_key_column():
    table = TextTable("wide", ["method", *(f"column {k}" for k in range(20))], [["ours", *"abcdefghijklmnopqrst"]])
    lines = format_table(table).splitlines()
    assert max(map(len, lines)) <= LINE_LENGTH
    assert (
        sum(line.startswith("| method |") for line in lines) == sum(line.startswith("| ours |") for line in lines) > 1
    )
    assert "column 19" in format_table(table)


def test_claims_that_differ_in_their_subject_are_joined():
    claims = [
        Claim(f"ours is ahead of {name} in MIG", holds, subject=name) for name, holds in (("a", True), ("b", True))
    ]
    claims.append(Claim("ours is ahead of c in MIG", False, subject="c"))
    assert [claim.describe() for claim in join_claims(claims)] == [
        "holds: ours is ahead of a, b in MIG",
        "does not hold: ours is ahead of c in MIG",
    ]


def test_an_unknown_generated_block_is_refused():
    text = "<!-- generated: table-99 -->\n<!-- end -->\n"
    with pytest.raises(InputError, match="gin/table-99"):
        update_readme("gin", text, stored_results())


def test_pages_are_written_in_a_checkout_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="checkout"):
        paper_command(["docs"])
    assert not list(tmp_path.iterdir())
