"""Selection of runs without labels."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import unweave
from unweave import InputError
from unweave.datasets import GaussianMixture, SquaresXY
from unweave.experiments.run import Run, read_run
from unweave.experiments.selection import agreement, trust_scores
from unweave.methods import GIN, IVAE, PCA, BetaVAE, LinearICA
from unweave.metrics import (
    translation_difficulty,
)


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """Two linear runs, and two networks, one of which is held back by its strength."""
    folder = tmp_path_factory.mktemp("spread")
    data = SquaresXY(points=300)
    every = [*unweave.sweep(data, LinearICA(), seed=[0]), *unweave.sweep(data, PCA(), seed=[0])]
    every += unweave.sweep(data, BetaVAE(steps=60, widths=(4, 4), hidden=(16,), latent_dim=2), beta=[1.0, 200.0])
    unweave.execute(every, folder, metrics=["mcc"])
    return [read_run(folder / run.key) for run in every]


def test_select_ranks_runs_by_agreement(tmp_path, capsys):
    from unweave.cli.main import main

    runs = unweave.sweep(SquaresXY(points=400), LinearICA(), seed=range(2))
    unweave.execute(runs, tmp_path / "runs", metrics=())
    with pytest.raises(SystemExit) as done:
        main(["select", str(tmp_path / "runs"), "--json"])
    assert done.value.code == 0
    table = json.loads(capsys.readouterr().out)["runs"]
    assert [row["method"] for row in table] == ["linear-ica", "linear-ica"]
    assert sorted(row["label"] for row in table) == ["linear-ica (seed=0)", "linear-ica (seed=1)"]
    assert table[0]["udr"] >= table[1]["udr"] > 0.8
    with pytest.raises(SystemExit):
        main(["select", str(tmp_path / "runs")])
    rows = [line for line in capsys.readouterr().out.splitlines() if "linear-ica" in line]
    assert [row.split("│")[1].strip() for row in rows] == [row["label"] for row in table]
    unweave.execute(unweave.sweep(SquaresXY(points=300), LinearICA()), tmp_path / "runs", metrics=())
    with pytest.raises(SystemExit):
        main(["select", str(tmp_path / "runs")])
    assert "different observations" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["udr", "model-centrality", "translation-difficulty", "isometry", "likelihood"])
def test_every_criterion_scores_every_run(spread, by):
    trust = trust_scores(spread, by)
    known = np.isfinite(trust)
    assert trust.shape == (4,) and known.tolist() == ([False, False, True, True] if by == "likelihood" else [True] * 4)
    if by == "likelihood":
        for run, value in zip(spread[2:], trust[2:], strict=True):
            end = pd.read_parquet(run.folder / "history.parquet").tail(6).mean()
            assert value == pytest.approx(-(end["rec"] + end["kl"]))
    if by == "isometry":
        assert trust[0] == pytest.approx(np.corrcoef(spread[0].pairs.T)[0, 1])
    if by == "translation-difficulty":
        assert trust[0] == -translation_difficulty(unweave.load(spread[0].folder), spread[0].codes).relative


def test_likelihoods_are_in_nats_per_observation(tmp_path):
    data, small = GaussianMixture(points=400), {"steps": 60, "batch_size": 100}
    flows = [GIN(**small, lr=1e-4, standardize=own) for own in (False, True)]
    vaes = [IVAE(**small, noise_variance=s, layers=(8,), latent_dim=2) for s in (0.1, 10.0)]
    runs = [Run(data, method) for method in (*flows, *vaes)]
    unweave.execute(runs, tmp_path, metrics=[])
    found = [read_run(tmp_path / run.key) for run in runs]
    trust = trust_scores(found, "likelihood")
    ends = [pd.read_parquet(run.folder / "history.parquet").tail(6).mean() for run in found]
    x = data.load().collect(400, torch.Generator()).x
    scale = float(x.double().std(0).log().sum())  # what standardizing does to a density
    assert abs(scale) > 2
    assert trust[:2] == pytest.approx([-ends[0]["nats"], -ends[1]["nats"] - scale], abs=0.02)
    # Batches are judged by statistics of their own, which flatters them by less than a missing scale would.
    assert trust[:2] == pytest.approx([unweave.load(run.folder).log_likelihood_ for run in found[:2]], abs=1.0)
    for end, value, s in zip(ends[2:], trust[2:], (0.1, 10.0), strict=True):
        assert value == pytest.approx(-(end["rec"] + end["kl"] + 5 * np.log(2 * np.pi * s)))


def test_collapsed_codes_are_not_compared():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(500, 2))
    env = {"data": {"sha256": "", "title": ""}}
    runs = [SimpleNamespace(env=env, codes=np.c_[z, 0.01 * generator.normal(size=(500, 8))]) for _ in range(3)]
    assert trust_scores(runs, "udr").min() > 0.85 and trust_scores(runs, "model-centrality").min() > 0.95


def test_agreement_with_labels_is_spearmans(spread):
    mcc = np.array([run.scores["mcc"] for run in spread])
    assert agreement(spread, mcc)["mcc"] == pytest.approx(1) and agreement(spread, -mcc)["mcc"] == pytest.approx(-1)
    assert agreement(spread[:2], mcc[:2]) == {}  # of two nothing can be said
    assert agreement(spread, np.array([np.nan, *mcc[1:]]))["mcc"] == pytest.approx(1)


def test_a_criterion_that_no_run_has_is_named(spread):
    with pytest.raises(InputError, match="no run here has a likelihood: it needs a flow"):
        trust_scores(spread[:2], "likelihood")


def test_select_by_says_how_well_it_agrees(spread, capsys):
    from unweave.cli.main import main

    with pytest.raises(SystemExit) as done:
        main(["select", str(spread[0].folder.parent), "--by", "isometry", "likelihood", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and list(found["agreement"]) == ["isometry", "likelihood"]
    assert set(found["agreement"]["isometry"]) == {"mcc"} and len(found["runs"]) == 4
    order = [row["isometry"] for row in found["runs"]]
    assert order == sorted(order, reverse=True)
