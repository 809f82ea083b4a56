"""The command `unweave report`."""

from pathlib import Path

from tests.helpers import SMALL_SQUARES


def test_folders_of_runs_and_study_files_are_accepted(run):
    run("fit", "pca", "squares-xy", *SMALL_SQUARES, "--out", "runs/mine/a")
    for place in ("runs", "mine.py"):  # a study file stands for runs/NAME
        assert run("report", place, "--out", "page.html")[0] == 0
        assert "Factors recovered from squares-xy" in Path("page.html").read_text()
