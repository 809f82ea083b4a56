"""Runs that share a signature are trained in packs; failures and crashes cost little."""

import pytest

from tests.helpers import StopTraining, stop_at
from unweave.datasets import SwissRoll
from unweave.experiments import runner
from unweave.experiments.run import Run
from unweave.experiments.study import execute, packs, sweep
from unweave.methods import GIN, BetaTCVAE, BetaVAE


def test_runs_of_one_signature_are_trained_together_and_fail_alone(tmp_path):
    small = BetaVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16)
    runs = sweep(SwissRoll(points=100), small, beta=[1.0, 4.0], seed=[0, 1])
    runs += [Run(SwissRoll(points=100), BetaTCVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16))]
    runs += sweep(SwissRoll(points=100), small, lr=[1e30])
    assert sorted(map(len, packs(runs))) == [1, 5]
    assert sorted(map(len, packs(runs, workers=2))) == [1, 2, 3]  # six runs: no pack of more than three
    assert sorted(map(len, packs(runs, workers=50))) == [1] * 6
    again = sweep(SwissRoll(points=100), GIN(steps=40, restarts=5), seed=range(60))
    assert list(map(len, packs(again))) == [25, 25, 10]  # 125 models at most
    with pytest.warns(RuntimeWarning, match=r"beta-vae is not finite from step \d.*lr=1e\+30"):
        table = execute(runs, tmp_path, metrics=["mcc"])
    assert len(table) == 5
    alone = execute(runs[1:2], tmp_path / "alone", metrics=["mcc"])
    assert float(alone["mcc"].iloc[0]) == pytest.approx(float(table["mcc"].iloc[1]), abs=1e-5)
    assert not list(tmp_path.glob(".*.checkpoint"))


def test_a_crash_while_scoring_costs_no_training(tmp_path, monkeypatch):
    small = BetaVAE(steps=40, latent_dim=2, layers=(8,), batch_size=16)
    runs = sweep(SwissRoll(points=100), small, seed=range(3))
    real, calls = runner.write_run, []

    def crashing(run, *rest):
        calls.append(run)
        if len(calls) == 2:
            raise RuntimeError("a fault")
        return real(run, *rest)

    monkeypatch.setattr(runner, "write_run", crashing)
    with pytest.warns(RuntimeWarning, match="failed: RuntimeError: a fault"):
        assert len(execute(runs, tmp_path, metrics=["mcc"])) == 2  # the others go on
    monkeypatch.setattr(runner, "write_run", real)
    seen = []
    settings = {"metrics": ["mcc"], "callback": seen.append}
    assert len(execute(runs, tmp_path, **settings)) == 2  # what failed is tried again when you say so
    assert len(execute(runs, tmp_path, **settings, retry=True)) == 3
    assert seen == []  # not one step more


def test_a_failure_of_a_single_run_is_named(tmp_path):
    run = Run(SwissRoll(points=100), BetaVAE(steps=40, lr=1e30, latent_dim=2, layers=(8,)))
    with pytest.warns(RuntimeWarning, match="beta-vae is not finite"):
        assert len(execute([run], tmp_path, metrics=["mcc"])) == 0


@pytest.mark.parametrize("finished", [0, 1])
def test_a_larger_sweep_resumes_its_stopped_runs(tmp_path, finished):
    """One seed finished or not, two more stopped half-way, a fourth added: nothing is trained twice."""

    small = BetaVAE(steps=1_200, latent_dim=2, layers=(8,), batch_size=8)
    seeds = sweep(SwissRoll(points=100), small, seed=range(4))
    execute(seeds[:finished], tmp_path, metrics=["mcc"])
    with pytest.raises(StopTraining):
        execute(seeds[:3], tmp_path, metrics=["mcc"], callback=stop_at(800))
    seen = []
    assert len(execute(seeds, tmp_path, metrics=["mcc"], callback=seen.append)) == 4
    assert sum(p.step == 100 for p in seen) == 1  # the fourth alone began at the beginning
    assert not list(tmp_path.glob(".*.checkpoint"))
