"""Verdicts by claims, leads by Welch's test, and tables that several processes write."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import ttest_ind

from unweave import InputError
from unweave.papers.verdicts import (
    Claim,
    Findings,
    Number,
    compare_means,
    join_claims,
    merge_findings,
    merge_rows,
    select_methods,
)


def test_verdicts_are_by_claims():
    yes, no, half, own = Claim("a", True), Claim("b", False), Claim("c", None), Claim("d", False, own=True)
    assert Findings(claims=(yes, yes, own)).verdict() == "reproduced"
    assert Findings(claims=(yes, half)).verdict() == "partly reproduced: 1 of 2 claims, 1 mean only"
    assert Findings(claims=(yes, no)).verdict() == "partly reproduced: 1 of 2 claims"
    assert Findings(claims=(half, half)).verdict() == "mean only: 2 of 2 claims"
    assert Findings(claims=(half, no)).verdict() == "mean only: 1 of 2 claims"
    assert Findings(claims=(no,), figures=(Path("a.png"),)).verdict() == "not reproduced"
    assert Findings(claims=(yes,), missing=("b", "c")).verdict() == "reproduced; 2 parts not run"
    assert Findings(figures=(Path("a.png"),)).verdict() == "drawn"
    assert Findings(missing=("b",)).verdict() == "not run"
    assert Findings(effort="3 seeds").verdict() == "run"
    assert Findings(claims=(no,), effort="3 seeds, 10 steps").status() == "not reproduced (3 seeds, 10 steps)"
    assert merge_findings([Findings(claims=(yes,)), Findings(claims=(no,))]).claims == (yes, no)


def test_a_table_retains_rows_of_other_calls(tmp_path):
    path = tmp_path / "scores.csv"
    merge_rows(
        pd.DataFrame({"method": ["a", "a", "b"], "seed": [0, 1, 0], "score": [0.1, 0.2, 0.3]}), path, ["method", "seed"]
    )
    new = pd.DataFrame({"method": ["c", "a"], "seed": [0, 1], "score": [0.4, 0.5]})
    rows = merge_rows(new, path, ["method", "seed"])
    assert rows.to_dict("list") == {"method": ["a", "b", "c", "a"], "seed": [0, 0, 0, 1], "score": [0.1, 0.3, 0.4, 0.5]}
    pd.testing.assert_frame_equal(pd.read_csv(path), rows)


def test_scripts_that_end_at_the_same_moment_lose_no_row(tmp_path):
    path, seeds = tmp_path / "scores.csv", range(16)
    with ThreadPoolExecutor(8) as several:
        list(
            several.map(
                lambda s: merge_rows(pd.DataFrame({"method": ["m"], "seed": [s]}), path, ["method", "seed"]), seeds
            )
        )
    assert sorted(pd.read_csv(path)["seed"]) == [*seeds]
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_a_lead_counts_where_runs_agree():
    scores = {"ours": [0.9, 0.91, 0.92], "near": [0.7, 0.95, 0.9], "far": [0.1, 0.12, 0.11], "above": [1.0, 1.0, 1.0]}
    held = {name: compare_means("", scores, "ours", [name])[0].holds for name in ("near", "far", "above")}
    assert held == {"near": None, "far": True, "above": False}
    assert compare_means("", scores, "ours", ["far", "above"])[0].holds is False
    close = {"ours": [0.9, 0.91, 0.92], "theirs": [0.85, 0.88, 0.89]}  # p is 0.04
    assert [compare_means("", close, "ours", ["theirs"], candidates=n)[0].holds for n in (1, 4)] == [True, None]
    assert (
        compare_means("", scores, "ours", [])
        == compare_means("", scores, "ours", ["not run"])
        == compare_means("", scores, "us", ["far"])
        == ()
    )
    assert compare_means("", {"a": [0.5], "b": [0.4]}, "a", ["b"])[0] == Claim("", None), "one run is no proof"


def test_leads_have_their_p_value():
    scores = {"ours": [0.9, 0.91, 0.92], "near": [0.7, 0.95, 0.9], "far": [0.1, 0.12, 0.11]}
    one, four = (compare_means("ours leads", scores, "ours", ["near"], candidates=n)[0] for n in (1, 4))
    theirs = ttest_ind(scores["ours"], scores["near"], equal_var=False, alternative="greater").pvalue
    assert one.p == pytest.approx(theirs) and four.p == pytest.approx(min(1, 4 * theirs))
    assert one.describe() == f"holds in the mean only: ours leads (p = {theirs:.2f})"
    claims = [
        compare_means(f"ours is ahead of {name}", scores, "ours", [name])[0]._replace(subject=name, holds=True)
        for name in ("near", "far")
    ]
    assert [claim.describe() for claim in join_claims(claims)] == [
        f"holds: ours is ahead of near (p = {theirs:.2f}), far (p < 0.001)"
    ]
    assert Claim("a", True, p=0.0321).describe() == "holds: a (p = 0.032)"


def test_differences_from_the_paper_s_numbers():
    near, below, many = Number("a", [0.5, 0.6], 0.56), Number("b", [0.2], 0.7), Number("c", [15], 22)
    assert near.difference == pytest.approx(-0.01) and below.difference == pytest.approx(-0.5)
    assert many.difference == pytest.approx(-7 / 22), "a count is compared relatively"
    assert Findings((near, below, many)).distance() == "1 of 3 numbers within 0.05; median difference 0.32"
    assert Findings().distance() == ""


def test_methods_are_selected_by_name_or_part_of_a_name():
    found = {"ours": 1, "ours, joint": 2, "CNN": 3}
    assert select_methods(found, ()) == found
    assert select_methods(found, ("ours",)) == {"ours": 1}
    assert select_methods(found, ("our", "CNN")) == found
    with pytest.raises(InputError, match=r"no method has this name \(there are: ours, ours, joint, CNN"):
        select_methods(found, ("VFAE",))
