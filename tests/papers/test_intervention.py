"""Tables of the intervention paper: the converged protocol, learning curves, and what SAP of colored digits hides."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from unweave import InputError
from unweave.metrics import dci, sap
from unweave.papers.curves import POINTS, save_curves, thin_history
from unweave.papers.folders import Folders
from unweave.papers.intervention import settings, tables

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
