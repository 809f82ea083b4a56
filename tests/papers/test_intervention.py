"""Tables of the intervention paper: the converged protocol, learning curves, and what SAP of colored digits hides."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import spearmanr

from unweave import InputError
from unweave.datasets import SquaresXY
from unweave.methods import InterventionAutoencoder
from unweave.metrics import dci, sap
from unweave.papers.curves import POINTS, save_curves, thin_history
from unweave.papers.folders import Folders
from unweave.papers.intervention import metric, settings, tables, translators

FEATURES = [list(range(20)), list(range(20, 40))]  # two features of twenty codes


def test_grouped_sap_cannot_tell_collapse_from_success_and_grouped_dci_can():
    rng = np.random.default_rng(0)
    c = rng.integers(10, size=(2_000, 2))  # digit and color
    digit, color, empty = np.eye(10)[c[:, 0]], np.eye(10)[c[:, 1]], np.zeros((2_000, 10))
    blocks = {"success": (digit, empty, color, empty), "collapse": (digit, color, empty, empty)}
    codes = {name: np.concatenate(own, 1) + 0.1 * rng.normal(size=(2_000, 40)) for name, own in blocks.items()}
    separated = {name: sap(c, z, predictor="logistic", features=FEATURES) for name, z in codes.items()}
    disentangled = {name: dci(c, z, features=FEATURES).disentanglement for name, z in codes.items()}
    assert min(separated.values()) > 0.85
    assert separated["success"] == pytest.approx(separated["collapse"], abs=0.02)
    assert disentangled["success"] > 0.95 and disentangled["collapse"] < 0.1


def test_converged_tables_have_the_rates_and_steps_of_the_paper():
    options = settings.Options(table="dsprites", converged=True)
    every = settings.methods(options, 0)
    ours, factor_vae = every["intervention"], every["FactorVAE, gamma = 40"]
    assert (ours.lr, ours.weight_lr, ours.steps) == (1e-4, 1e-5, 100_000)
    assert (factor_vae.lr, factor_vae.critic_lr, factor_vae.steps) == (1e-4, 1e-4, 100_000)
    assert (every["beta-TCVAE"].batch_size, every["beta-TCVAE"].steps) == (2_048, 20_000)
    assert settings.methods(replace(options, table="cmnist"), 0)["intervention"].steps == 25_000
    assert settings.folders(options).name == "dsprites-converged"
    before = settings.methods(settings.Options(), 0)
    assert {(m.lr, m.steps) for n, m in before.items() if "TC" not in n and "GAN" not in n} == {(5e-4, 11_000)}
    assert settings.folders(settings.Options()).name == "dsprites"


def test_other_strengths_are_for_correlated_factors():
    options = settings.Options(table="cmnist", converged=True, strength=0.4, seeds=2, first_seed=3)
    assert settings.folders(options).name == "cmnist-converged-strength-0.4"
    runs = tables.list_runs(replace(options, only=("FactorVAE, gamma = 10",)))
    assert list(runs) == [("FactorVAE, gamma = 10", "correlated", seed) for seed in (3, 4)]
    assert {run.data.strength for run in runs.values()} == {0.4}
    with pytest.raises(InputError, match="--part independent"):
        settings.training_sets(replace(options, part="independent"))
    assert settings.training_sets(settings.Options(part="independent")) == ["independent"]


def test_the_headline_of_converged_tables_is_sap_of_the_work_that_the_paper_follows(tmp_path):
    options = settings.Options(converged=True, out=tmp_path)
    place = settings.folders(options)
    place.create()
    row = {"method": "intervention", "part": "correlated", "seed": 0, "sap": 0.05, "dci": 0.5, "irs": 0.6}
    pd.DataFrame([row | {"sap[mixed]": 0.4, "sap[r2]": 0.3, "translation": 0.1}]).to_csv(place.scores, index=False)
    (number,) = [n for n in tables.findings(options, "table-1").numbers if n.name.endswith("SAP")]
    assert list(number.ours) == [0.4] and number.paper == 0.51
    (table,) = tables.tables(options)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["sap[logistic]"] == "0.050" and cells["SAP (paper)"].startswith("0.400")


def test_learning_curves_are_thinned_and_merged(tmp_path):
    history = pd.DataFrame({"step": np.arange(1, 1_001), "loss": np.linspace(1, 0, 1_000)})
    thinned = thin_history(history)
    assert len(thinned) == POINTS and thinned["step"].iloc[-1] == 1_000
    assert thinned["loss"].iloc[0] == pytest.approx(history["loss"][:40].mean(), rel=1e-4)
    assert thin_history(history[:3])["loss"].tolist() == pytest.approx(history["loss"][:3].tolist(), rel=1e-4)
    place, run = Folders(tmp_path / "paper", "table"), tmp_path / "run"
    run.mkdir()
    history.to_parquet(run / "history.parquet")
    for seed in (0, 1, 1):
        save_curves({("ours", seed): run}, ["method", "seed"], place)
    table = pd.read_csv(place.results / "curves.csv")
    assert table.groupby("seed").size().to_dict() == {0: POINTS, 1: POINTS}
    assert list(table)[:2] == ["method", "seed"]


# Figure 3 -------------------------------------------------------------------------------------------------------------


def test_rank_correlations_and_intervals_are_those_of_scipy_and_of_resampling():
    rng = np.random.default_rng(0)
    a = rng.normal(size=40).round(1)  # with ties
    b = a + rng.normal(size=40)
    value, low, high = metric.correlate_pair(a, b)
    assert value == pytest.approx(spearmanr(a, b).statistic)
    samples = np.random.default_rng(0).integers(40, size=(1_000, 40))
    resampled = [spearmanr(a[i], b[i]).statistic for i in samples[:50]]
    assert metric._rank_correlations(a[samples[:50]], b[samples[:50]]) == pytest.approx(resampled)
    assert low < value < high and 0.3 < high - low < 0.7
    with_gap = metric.correlate_pair(np.append(a, np.nan), np.append(b, 3.0))
    assert with_gap == (value, low, high), "a run without a score is left out"
    for same in (np.ones(40), np.full(40, np.nan)):
        assert np.isnan(metric.correlate_pair(a, same)).all()


def test_agreement_has_an_interval_for_every_score_of_the_paper(tmp_path):
    options = metric.Options(out=tmp_path)
    place = metric.folders(options)
    place.create()
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 4)), columns=["translation", "dci[rf]", "sap", "irs"])
    rows.assign(part="correlated", gamma=1.0, seed=range(12)).to_csv(place.scores, index=False)
    table = metric.tables(options)[1]
    assert list(table.columns)[1:] == ["DCI", "SAP", "IRS"]
    assert all(" to " in cell for cell in table.rows[0][1:])


# Translators ----------------------------------------------------------------------------------------------------------


def test_translators_are_compared_at_equal_compute():
    options = translators.Options(data="cmnist")
    every = translators.methods(options, 0)
    compared = {name: every[name] for name in ("ridge", "no L_diff", "persistent")}
    costs = {name: translators.count_operations(m, (3, 28, 28)) * m.steps for name, m in compared.items()}
    assert every["ridge"].steps == 25_000
    assert all(cost == pytest.approx(costs["ridge"], rel=0.01) for cost in costs.values())
    assert {m.lr for m in every.values()} == {1e-4} and every["20 inner steps"].inner_steps == 20
    steadied = translators.methods(translators.Options(data="cmnist", stability=True), 0)
    assert {m.steps for m in steadied.values()} == {25_000} and {m.diff_mode for m in steadied.values()} == {"ridge"}
    assert steadied["ridge, averaged weights"].weight_average == 0.999


def test_operations_of_a_step_are_those_of_forward_and_backward_passes():
    method = InterventionAutoencoder(features=2, network="mlp", layers=(), discriminator_hidden=(), batch_size=8)
    method.set_params(diff_mode="off", reweight=False)
    one = translators.count_operations(method, (1, 4, 4))
    assert translators.count_operations(method.set_params(batch_size=16), (1, 4, 4)) == pytest.approx(2 * one)


def test_the_choice_is_without_labels_and_the_judgment_by_other_seeds(tmp_path):
    options = translators.Options(seeds=4, out=tmp_path)
    place = translators.folders(options)
    place.create()
    rows = [
        {"method": name, "part": "correlated", "seed": seed, "steps": 10, "sap": 0.1} | scores[seed >= 2]
        for name, scores in {
            translators.WITHOUT: [{"translation": 0.1, "dci": 0.9}, {"translation": 0.5, "dci": 0.2}],
            "3 inner steps": [{"translation": 0.4, "dci": 0.8}, {"translation": 0.1, "dci": 0.1}],
            "ridge": [{"translation": 0.3, "dci": 0.1}, {"translation": 0.2, "dci": 0.7}],
            "persistent": [{"translation": 0.05, "dci": 0.9}, {"translation": 0.1, "dci": 0.9}],
        }.items()
        for seed in range(4)
    ]
    collapsed = next(row for row in rows if row["method"] == "persistent")
    collapsed["translation"] = np.nan  # counts as the worst score, not as none
    pd.DataFrame(rows).to_csv(place.scores, index=False)
    (table,) = translators.tables(options)
    assert [row[0] for row in table.rows if "chosen" in row[0]] == ["ridge (chosen)"]
    first, second = translators.findings(options, "ablation-diff").claims
    assert first.text.startswith("ridge makes translation easier") and first.holds and second.holds and second.own


@pytest.mark.parametrize("stability", [False, True])
def test_a_small_comparison_runs_and_keeps_what_each_pack_scored(tmp_path, monkeypatch, stability):
    monkeypatch.setattr(translators, "score_run", lambda folder, options: {"translation": 0.1, "dci": 0.5, "sap": 0.3})
    monkeypatch.setattr(translators, "relative_cost", lambda name, data, scale: 1.0)
    monkeypatch.setattr(translators, "make_data", lambda options: SquaresXY(points=60, size=16, side=6))
    options = translators.Options(data="dsprites", scale="small", seeds=2, steps=2, out=tmp_path, stability=stability)
    options = replace(options, only=("ridge, R1 = 1", "ridge, falling") if stability else ("ridge", "no L_diff"))
    with parallel_config(n_jobs=1):
        translators.main(options)
    stored = pd.read_csv(translators.folders(options).scores)
    assert (
        stored.groupby("method").size().min() == 2 and len(stored) in (4, 6) and set(stored["part"]) == {"correlated"}
    )
