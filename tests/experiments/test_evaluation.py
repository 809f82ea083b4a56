"""Scoring of packs, in one process and in several."""

import time

import pandas as pd
import pytest
import torch

from unweave import Factor, InputError, catalog, execute, sweep
from unweave.datasets import SquaresXY
from unweave.experiments import evaluation, runner
from unweave.experiments.run import find_runs
from unweave.methods import BetaVAE

DATA = SquaresXY(points=60, size=12, side=4)


def test_runs_scored_in_parallel_score_as_they_would_alone(tmp_path, monkeypatch):
    model = BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3)
    runs = sweep(DATA, model, seed=range(3))
    asked = ["mcc", "local-isometry", "translation-difficulty"]
    alone = execute(runs, tmp_path / "alone", metrics=asked)
    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    said: list[str] = []
    together = execute(runs, tmp_path / "together", metrics=asked, notify=said.append)
    assert any("scoring 3 more, several at once" in line for line in said)
    names = [column for column in alone if column != "seconds"]
    pd.testing.assert_frame_equal(alone[names], together[names], check_exact=True)


def test_a_run_that_cannot_be_scored_costs_no_other(tmp_path, monkeypatch):
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    plain = BetaVAE.transform

    def transform(self, X):
        if self.seed == 1:
            raise InputError("no codes today")
        return plain(self, X)

    monkeypatch.setattr(BetaVAE, "transform", transform)
    with pytest.warns(RuntimeWarning, match="no codes today"):
        found = execute(runs, tmp_path, metrics=["mcc"])
    assert found["seed"].tolist() == [0, 2]


def test_a_metric_that_cannot_be_sent_to_another_process_is_computed_here(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no processes today")

    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    monkeypatch.setattr(evaluation, "Parallel", broken)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    with pytest.warns(RuntimeWarning, match="one does it"):
        found = execute(runs, tmp_path, metrics=["mcc"])
    assert found["mcc"].notna().sum() == 3


def test_a_single_processor_scores_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "PARALLEL_AFTER", 0.0)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=3), seed=range(3))
    how = runner.RunSettings(catalog.find_metrics(["mcc"]), jobs=1)
    assert not runner.execute_pack(runs, {run.key: tmp_path / run.key for run in runs}, how).errors
    time.sleep(1.5)  # who watches over helpers would have ended this process by now
    assert len(find_runs([tmp_path])) == 3


def test_factors_that_a_metric_leaves_out_are_named():
    factors = [Factor("x"), Factor("color", 3, "nominal"), Factor("sex", 2, "nominal"), Factor("dust", noise=True)]
    inputs = evaluation.MetricInputs(None, torch.zeros(0, 4), factors)
    metrics = catalog.find_metrics(["mcc", "mig", "unsupervised"])
    left_out = {name: inputs.left_out(metric) for name, metric in metrics.items()}
    assert left_out == {"mcc": ("color", "sex", "dust"), "mig": ("dust",), "unsupervised": ()}
    assert evaluation.describe_left_out(factors, metrics) == [
        "mcc, mig leave out dust: marked as noise.",
        "mcc leaves out color, sex: classes without an order.",
    ]
    assert evaluation.describe_left_out(factors[:1], metrics) == []
