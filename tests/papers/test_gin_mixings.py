"""GIN on artificial data: claims about mixings and numbers of points, and runs that are selected under steep mixing."""

import numpy as np
import pandas as pd
import pytest

from unweave.papers.gin import artificial, steep
from unweave.papers.registry import find


def artificial_findings(folder, part, recovery):
    """Return which claims of a figure hold where runs of each setting have one MCC, and the verdict."""
    options = artificial.Options(out=folder, **find(f"gin/{part}").runs[0])
    artificial.folders(options).create()
    rows = [{"setting": name, "mcc": value, "informative": 2, "observed": 0.5} for name, value in recovery.items()]
    pd.DataFrame(rows).to_csv(artificial.folders(options).scores, index=False)
    found = artificial.findings(options, part)
    return {claim.text: claim.holds for claim in found.claims}, found.verdict()


def test_figure_7_holds_where_few_points_fail_and_many_recover(tmp_path):
    separated = f"{artificial.SEPARATED}, "
    recovery = {f"{separated}10,000 points": 0.7, f"{separated}100,000 points": 0.99, artificial.SMALL_SAMPLE: 0.99}
    claims, _ = artificial_findings(tmp_path, "figure-7", recovery | {artificial.STEEP: 0.1})
    assert claims == {
        "separated clusters, 10,000 points are too few: most runs do not recover the sources": True,
        "separated clusters, 100,000 points are enough: most runs recover the sources": True,
        "5 clusters, 10,000 points are too few: most runs do not recover the sources": False,
    }


def test_figure_7_is_not_reproduced_where_few_points_are_enough(tmp_path):
    separated = f"{artificial.SEPARATED}, "
    recovery = {f"{separated}10,000 points": 0.99, f"{separated}100,000 points": 0.99}
    assert artificial_findings(tmp_path, "figure-7", recovery)[1].startswith("not reproduced")


def test_claims_name_the_mixing_that_they_hold_for(tmp_path):
    recovery = {artificial.THREE_CLUSTERS: 0.99, artificial.THREE_STEEP: 0.4}
    claims, _ = artificial_findings(tmp_path, "figure-8", recovery)
    recovered = {text.partition(": GIN recovers")[0]: holds for text, holds in claims.items() if "recovers" in text}
    assert recovered == {"3 clusters, 100,000 points, soft mixing": True, "3 clusters, steep mixing": False}


# Selection under steep mixing -------------------------------------------------------------------------------------


def test_the_agreement_is_that_of_the_most_different_runs():
    z = np.random.default_rng(0).standard_normal((4_000, 5))
    codes = [z[:, :2], -2 * z[:, [1, 0]], z[:, [0, 3]]]
    assert steep.agreement(codes) == pytest.approx(0.5, abs=0.03)
    assert steep.agreement(codes[:2]) == pytest.approx(1) and steep.agreement(codes[:1]) == 0


def test_runs_near_the_smallest_cross_entropy_are_averaged():
    assert steep.choose_members([0.502, 0.5, 0.504, 0.5025]) == [1, 0, 3]


def test_averaged_codes_have_the_order_and_signs_of_the_first_run_and_less_noise():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4_000, 2))
    noisy = [z + 0.5 * rng.standard_normal(z.shape) for _ in range(4)]
    codes = [noisy[0], -3 * noisy[1][:, ::-1] + 7, noisy[2] * [1, -1], noisy[3]]
    average = steep.average_codes(codes)
    expected = 1 / np.sqrt(1 + 0.25 / 4)  # correlation with the noise of four runs
    for j in range(2):
        assert np.corrcoef(average[:, j], z[:, j])[0, 1] == pytest.approx(expected, abs=0.01)


def test_each_rule_has_a_row_and_claims_are_about_averages(tmp_path):
    options = steep.Options(out=tmp_path)
    steep.folders(options).create()
    columns = ["dataset", "seed", "mcc", "nats", "cross_entropy"]
    runs = [[0, 0, 0.99, 1.0, 0.5], [0, 1, 0.6, 2.0, 0.6], [1, 0, 0.6, 2.0, 0.4], [1, 1, 0.5, 1.0, 0.5]]
    pd.DataFrame(runs, columns=columns).to_csv(steep.folders(options).scores)
    assert steep.tables(options) == [] and not steep.findings(options, "steep").claims
    averages = pd.DataFrame([[0, 0.97, 2, 0.96], [1, 0.6, 1, 0.0]], columns=["dataset", "mcc", "members", "agreement"])
    averages.to_csv(steep.folders(options).results / steep.AVERAGES)
    by_rule, by_score, by_dataset = steep.tables(options)
    assert [row[:3] for row in by_rule.rows] == [
        ["every run", "4", "1 of 4"], ["highest likelihood of each dataset", "2", "0 of 2"],
        ["smallest cross-entropy of each dataset", "2", "1 of 2"], ["average of runs within 0.003 nats", "2", "1 of 2"],
        ["these averages, where runs agree", "1", "1 of 1"], ["runs within 0.003 nats", "2", "1 of 2"],
        ["other runs", "2", "0 of 2"],
    ]  # fmt: skip
    assert by_score.rows == [["likelihood", "0.00"], ["cross-entropy", "1.00"]]
    assert by_dataset.rows == [["10", "2", "0.960", "0.970"], ["11", "1", "0.000", "0.600"]]
    found = steep.findings(options, "steep")
    assert [claim.holds for claim in found.claims] == [False, False] and found.effort == "2 datasets, 2 seeds"


def test_the_rule_holds_if_near_runs_are_good_and_others_are_not(tmp_path):
    options = steep.Options(out=tmp_path)
    steep.folders(options).create()
    columns = ["dataset", "seed", "mcc", "nats", "cross_entropy"]
    runs = [[0, 0, 0.99, 1.0, 0.5], [0, 1, 0.98, 1.0, 0.502], [0, 2, 0.6, 2.0, 0.6], [1, 0, 0.96, 2.0, 0.9]]
    averages = pd.DataFrame([[0, 0.97, 2, 0.96], [1, 0.96, 1, 0]], columns=["dataset", "mcc", "members", "agreement"])
    averages.to_csv(steep.folders(options).results / steep.AVERAGES)
    for last, holds in ((0.6, True), (0.97, False)):
        table = pd.DataFrame([*runs, [1, 1, last, 1.0, 0.95], [1, 2, last, 1.0, 0.96]], columns=columns)
        table.to_csv(steep.folders(options).scores)
        assert [claim.holds for claim in steep.findings(options, "steep").claims] == [True, holds]


def test_runs_under_steep_mixing_are_trained_scored_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(steep, "make_data", lambda d: steep.GaussianMixture(seed=d, points=2_000, mixing="steep"))
    options = steep.Options(out=tmp_path, datasets=2, seeds=2, steps=2)
    assert steep.tables(options) == [] and not steep.findings(options, "steep").claims
    steep.main(options)
    rows, averages = steep.stored_rows(options)
    assert rows[["dataset", "seed"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert rows["mcc"].between(0, 1).all() and (rows["cross_entropy"] > 0).all()
    assert averages["dataset"].tolist() == [0, 1] and averages["members"].between(1, 2).all()
    assert [path.is_file() for path in steep.findings(options, "steep").figures] == [True]
