"""Tables of all metrics."""

import numpy as np
import pandas as pd
import pytest
import torch

from unweave import InputError, catalog
from unweave.metrics import (
    mig,
    modularity,
    prepared,
    score_all,
    score_many,
    score_tables,
)


def test_all_scores_at_once_with_chance_and_interval(grid):
    z = grid[::4] + 0.3 * np.random.default_rng(0).normal(size=grid[::4].shape)
    table = score_all(grid[::4], z, chance=True, bootstrap=2)
    assert {"mcc", "mig", "dci[trees].disentanglement", "factor-vae-score.accuracy", "irs[q100]", "sap[r2]"} <= set(
        table.index
    )
    assert table.loc["mig", "value"] == mig(grid[::4], z)
    assert table.loc["mcc", "chance"] < 0.1 < table.loc["irs[q99]", "chance"], "noise does not score zero everywhere"
    assert (table["low"] <= table["high"]).all()
    assert table.loc["mcc", "low"] - 0.02 < table.loc["mcc", "value"] < table.loc["mcc", "high"] + 0.02
    assert score_all(grid[::40], z[::10]).columns.tolist() == ["value", "best"]


RNG = np.random.default_rng(0)


GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)


CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def test_many_codes_score_as_each_alone():
    codes = {str(s): GRID[::4] + s * RNG.normal(size=GRID[::4].shape) for s in (0.05, 0.5)}
    few = catalog.find_metrics(["mig", "sap", "irs", "mcc"])
    table = score_many(GRID[::4], codes, metrics=few, n_jobs=2)
    assert table.columns.tolist() == ["mig", "sap[svm]", "sap[r2]", "irs[q99]", "irs[q100]", "mcc"]
    for name, z in codes.items():
        assert table.loc[name, "mig"] == mig(GRID[::4], z)
    truth = prepared(GRID[::4])
    assert prepared(truth) is truth
    assert mig(truth, codes["0.5"]) == mig(GRID[::4], codes["0.5"])
    with pytest.raises(InputError, match="480 rows of factors and 479 rows of codes"):
        mig(truth, codes["0.5"][1:])


@pytest.mark.parametrize(("n_jobs", "tasks"), [(None, 1), (1, 1), (2, 2), (4, 3), (-1, 3), (-3, 2), (-4, 1)])
@pytest.mark.filterwarnings("ignore:.*delayed")
def test_every_process_gets_one_task(n_jobs, tasks, monkeypatch):
    """Each computes only once what depends only on the factors. Five codes, four cores."""
    seen = []
    monkeypatch.setattr(score_tables.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(score_tables, "Parallel", lambda n_jobs: lambda jobs: [f(*args) for f, args, _ in jobs])
    rows = score_tables._rows
    monkeypatch.setattr(score_tables, "_rows", lambda *args: seen.append(len(args[2])) or rows(*args))
    table = score_many(GRID[::96], dict.fromkeys("abcde", CODES[::96]), metrics={"mig": mig}, n_jobs=n_jobs)
    assert sum(seen) == 5 and len(seen) == tasks and table["mig"].nunique() == 1


def test_a_metric_that_data_do_not_allow_is_left_out_with_a_reason():
    with pytest.warns(UserWarning, match=r"modularity was not computed: .*there is only one"):
        table = score_many(GRID[::48, :1], {"a": CODES[::48]}, metrics={"mig": mig, "modularity": modularity})
    assert table.columns.tolist() == ["mig"]
    c, z = GRID[::48], CODES[::48][1:]
    for score in (lambda: score_many(c, {"a": z}), lambda: score_all(c, z)):
        with pytest.raises(InputError, match=r"^40 rows of factors and 39 rows of codes: expected the same"):
            score()


def test_a_users_metric_works_in_other_processes(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import unweave\n\n@unweave.metric(paper='mine')\ndef my_score(factors, codes):\n"
        '    """Mine."""\n    return float(len(codes))\n'
    )
    own = catalog.find_metrics([f"{tmp_path}/mine.py:my_score"])
    assert list(own) == ["my-score"]
    table = score_many(GRID[::96], {"a": CODES[::96], "b": CODES[::96]}, metrics=own, n_jobs=2)
    assert table["my-score"].tolist() == [20, 20]
    half = torch.from_numpy(CODES).bfloat16()
    assert mig(GRID, half) == mig(GRID, half.float())


def test_columns_of_scores_have_a_best_value_and_counts_have_none():
    def named(truth, codes):
        return 0.5

    named.facts = mig.facts._replace(best=0.0)
    metrics = {**catalog.find_metrics(["factor-vae-score"]), "my.error": named, "plain": lambda truth, codes: 0.5}
    table = score_many(GRID[::4], {"a": GRID[::4]}, metrics=metrics)
    assert set(table.columns) == {"factor-vae-score.accuracy", "factor-vae-score.active", "my.error", "plain"}
    assert table.best_scores == {"factor-vae-score.accuracy": 1.0, "my.error": 0.0}


def test_tables_of_scores_are_data_frames():
    table = score_all(GRID[::40], CODES[::40])
    assert isinstance(table, pd.DataFrame)
    pd.testing.assert_frame_equal(table, pd.DataFrame(table.to_dict()))
    assert "<td>mcc</td>" in table._repr_html_()
