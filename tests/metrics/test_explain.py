"""Explanations of low scores."""

import json

import numpy as np
import pandas as pd
import pytest

import unweave
from unweave import InputError
from unweave.metrics.factors import PreparedFactors

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
