"""Explanations of low scores."""

import json

import numpy as np
import pandas as pd
import pytest

import unweave
from unweave import InputError
from unweave.metrics.explain import (
    _describe_agreement,
    _describe_duplicates,
    _duplicate_groups,
    _is_shared,
    _missing_or_split_factors,
    _mixed_codes,
    _unused_codes,
)
from unweave.metrics.factors import PreparedFactors, histogram, mutual_information

RNG = np.random.default_rng(0)


GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)


CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def turned(z, degrees=45.0):
    a = np.deg2rad(degrees)
    return z[:, :2] @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def findings(codes, names=("a", "b", "c")):
    return " ".join(unweave.explain(GRID, codes, names=names).findings)


def test_an_explanation_names_what_is_wrong():
    assert findings(CODES).startswith(
        "Every factor has a code of its own, and every code one factor (MIG 1.00, DCI 1.00"
    )


def test_praise_needs_all_three_scores():
    """A code that folds its factor has all of its information, and hardly any correlation with it."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 5, (2000, 2))
    folded = np.stack([np.array([2, 0, 4, 1, 3])[c[:, 0]], c[:, 1]], 1)
    (text,) = unweave.explain(c, folded).findings
    assert "MCC is low (MIG 1.00, DCI 1.00, MCC 0." in text
    nominal = PreparedFactors(c.astype(float), nominal=[True, False])
    assert unweave.explain(nominal, folded).findings[0].startswith("Every factor has a code of its own"), (
        "classes have no order"
    )
    noise = RNG.normal(size=(len(GRID), 1))
    assert "Code 4 never changes: dead." in findings(np.hstack([CODES, 0 * noise]))
    assert "Code 4 varies but is informative about no factor." in findings(np.hstack([CODES, noise]))
    assert "Codes 2 and 4 are duplicates, both of b (rank correlation above 0.95)." in findings(
        np.hstack([CODES, -CODES[:, 1:2]])
    )
    assert "No code is informative about c" in findings(CODES[:, :2])
    mixed = findings(np.hstack([turned(CODES), CODES[:, 2:]]))
    assert "a is split: code" in mixed
    assert "Code 1 is mixed: it contains information about" in mixed
    assert "c is split" not in mixed


def test_an_explanation_holds_both_matrices():
    found = unweave.explain(GRID, CODES)
    assert found.names == ["factor 1", "factor 2", "factor 3"]
    np.testing.assert_allclose(found.information, np.eye(3), atol=0.02)
    np.testing.assert_allclose(found.importance, np.eye(3), atol=0.02)
    with pytest.raises(InputError, match="2 names for 3 factors"):
        unweave.explain(GRID, CODES, names=["a", "b"])


def test_explain_on_the_command_line(tmp_path, monkeypatch, capsys):
    from unweave.cli.main import main

    monkeypatch.chdir(tmp_path)
    np.save("z.npy", np.hstack([CODES, 0 * CODES[:, :1]]))
    pd.DataFrame(GRID.astype(int), columns=["size", "hue", "angle"]).to_csv("f.csv", index=False)
    with pytest.raises(SystemExit) as done:
        main(["explain", "z.npy", "--factors", "f.csv", "--out", "why.png", "--json"])
    assert done.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == ["Code 4 never changes: dead."]
    assert np.array(found["information"]).shape == (3, 4)
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    for args, expected in (
        (["explain", "z.npy"], "give --factors FILE"),
        (["explain", "z.npy", "--factors", "f.csv", "--out", "x.txt"], "written as .svg, .png or .pdf"),
        (["select"], "name run folders"),
    ):
        with pytest.raises(SystemExit) as done:
            main(args)
        assert done.value.code == 2
        assert expected in capsys.readouterr().err


def test_thresholds_of_findings():
    """Matrices of information, (factors, codes): from which share a code is informative, and a factor split."""
    assert not any(_is_shared(np.array(v)) for v in ([], [0.5], [0.4, 0.2])) and _is_shared(np.array([0.4, 0.21, 0.1]))
    split = np.array([[0.3, 0.4], [0.05, 0.0], [0.049, 0.02]])
    assert _missing_or_split_factors([0, 1], split, ["a", "b", "c"]) == [
        "a is split: code 2 (40%) and code 1 (30%) each contain part of it.",
        "No code is informative about c (at most 5% of it, by code 1): it is not in the codes, or not in a form that "
        "one code has.",
    ]
    assert _missing_or_split_factors([], split[:1], ["a"])[0].startswith("No code is informative about a: it is not in")
    assert _mixed_codes([0, 1], np.array([[0.3, 0.6], [0.4, 0.3], [0.05, 0.04]]), ["a", "b", "c"]) == [
        "Code 1 is mixed: it contains information about b (40%), a (30%) and c (5%)."
    ]
    active = np.array([True, True, True, False, False])
    assert _unused_codes(active, np.array([[0.05, 0.04, 0.01, 0, 0]])) == [
        "Codes 4 and 5 never change: dead.", "Codes 2 and 3 vary but are informative about no factor.",
    ]  # fmt: skip
    assert _unused_codes(np.array([True, False]), np.array([[0.0, 0]])) == [
        "Code 2 never changes: dead.", "Code 1 varies but is informative about no factor.",
    ]  # fmt: skip
    assert _unused_codes(np.array([True]), np.array([[0.5]])) == []


def test_duplicates_are_grouped_and_named_with_their_factor():
    z = np.random.default_rng(0).normal(size=(400, 2))
    codes = np.column_stack([z[:, 0], z[:, 1], np.exp(z[:, 0]), -z[:, 0], z[:, 1] + 0.5 * z[:, 0], np.zeros(400)])
    assert _duplicate_groups(codes, np.array([True] * 5 + [False])) == [[0, 2, 3]]
    assert _duplicate_groups(codes, np.array([False] + [True] * 4 + [False])) == [[2, 3]]
    end = "(rank correlation above 0.95)."
    information = np.array([[0.2, 0.05, 0.04], [0.3, 0.01, 0.0]])
    assert (
        _describe_duplicates([0, 1, 2], information, ["a", "b"]) == f"Codes 1, 2 and 3 are duplicates, all of b {end}"
    )
    assert _describe_duplicates([1, 2], information, ["a", "b"]) == f"Codes 2 and 3 are duplicates, both of a {end}"
    assert _describe_duplicates([2, 1], information, ["a", "b"]) == f"Codes 3 and 2 are duplicates {end}"


def test_scores_that_are_low_are_named():
    c = PreparedFactors(GRID)
    eye, even = np.eye(3), np.full((3, 3), 0.3)
    assert _describe_agreement(c, CODES, eye, eye).endswith("every code one factor (MIG 1.00, DCI 1.00, MCC 1.00).")
    assert "but MIG and DCI are low (MIG 0.00, DCI 0.00, MCC 1.00)" in _describe_agreement(c, CODES, even, even)
    assert "but MIG is low (MIG 0.49" in _describe_agreement(c, CODES, 0.49 * eye, eye)
    assert "Every factor has" in _describe_agreement(c, CODES, 0.5 * eye, eye)
    assert "MIG 0.70" in _describe_agreement(
        PreparedFactors(GRID[:, :1]), CODES[:, :1], np.array([[0.7]]), np.ones((1, 1))
    )
    nominal = PreparedFactors(GRID, nominal=[True] * 3)
    assert _describe_agreement(nominal, CODES, eye, eye).endswith("one factor (MIG 1.00, DCI 1.00).")


def test_information_is_that_above_shuffled_codes():
    rng = np.random.default_rng(4)
    c, z = rng.integers(0, 3, (90, 2)).astype(float), rng.normal(size=(90, 2))
    shuffled = z[np.random.default_rng(7).permutation(90)]
    shares = [
        [[mutual_information(classes, histogram(code, 20)) for code in codes.T] for classes in c.T.astype(int)]
        for codes in (z, shuffled)
    ]
    entropies = np.array([-(p * np.log(p)).sum() for p in (np.bincount(f) / 90 for f in c.T.astype(int))])
    expected = np.maximum((np.array(shares[0]) - shares[1]) / entropies[:, None], 0)
    np.testing.assert_allclose(unweave.explain(c, z, seed=7).information, expected)


def test_a_notebook_shows_findings_and_matrices():
    codes = np.concatenate([CODES[:, :1], CODES[:, 1:2] + CODES[:, 2:], np.zeros((len(CODES), 30))], 1)
    explanation = unweave.explain(GRID, codes, names=["a", "<script>", "c"])
    page = explanation._repr_html_()
    assert "3 factors, 32 codes" in page
    assert all(f"<li>{finding.replace('<script>', '&lt;script&gt;')}</li>" in page for finding in explanation.findings)
    assert "<script" not in page
    assert f'rgba(47, 129, 247, 0.50)">{explanation.information[0, 0]:.0%}</td>' in page, "the strongest tint"
    assert "code 12</th>" in page
    assert "code 13</th>" not in page
    assert "Not shown: 20 less informative codes" in page


def test_a_notebook_shows_the_most_informative_codes():
    codes = np.concatenate([np.zeros((len(CODES), 30)), CODES], 1)
    page = unweave.explain(GRID, codes)._repr_html_()
    assert all(f"code {i}</th>" in page for i in (31, 32, 33))
    assert "Not shown" not in unweave.explain(GRID, CODES)._repr_html_()
