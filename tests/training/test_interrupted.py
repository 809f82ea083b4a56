"""Trainings that are killed again and again, in the middle of a chunk of steps: each process adds to the work."""

import os
import subprocess
import sys
import time

import pytest
import torch

from tests.helpers import DATA, StopTraining, flat_weights, small_method, stop_at, train_all, validate
from unweave.methods import FactorVAE
from unweave.training.checkpoint import read_step
from unweave.training.loop import train

# The steps of this training take a moment each, so a chunk of 100 lasts longer than a process may live.
SLOW_TRAINING = """
import sys, time
from pathlib import Path
import torch
from tests.helpers import DATA, flat_weights, small_method, validate
from unweave.training import checkpoint, loop
from unweave.training.pack import StepRunner

run, checkpoint.MAX_SECONDS_BETWEEN_SAVES = StepRunner.run, 0.2

def slow_run(runner, *args):
    step = runner.step
    def slow_step(state, batch):
        time.sleep(0.02)
        step(state, batch)
    runner.step = slow_step
    print("training", flush=True)
    run(runner, *args)
    runner.step = step

StepRunner.run = slow_run
(method,) = pack = validate([small_method("beta-vae", steps=110)])
loop.train(pack, DATA, checkpoint=Path(sys.argv[1]), compiling="never")
torch.save(flat_weights(method), sys.argv[2] + ".new")
Path(sys.argv[2] + ".new").rename(sys.argv[2])
"""


def test_a_training_that_is_killed_before_its_first_chunk_is_over_advances_and_ends_the_same(tmp_path):
    file, result, steps = tmp_path / "slow.checkpoint", tmp_path / "weights.pt", [0]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    for _ in range(30):
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW_TRAINING, file, result], env=env, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "training\n"
        time.sleep(1.0)
        process.kill()
        process.communicate()
        if result.is_file():
            break
        steps.append(read_step(file))
        assert steps[-1] > steps[-2], "work that a kill cost is done again by the next process, but not all of it"
    assert len(steps) > 2 and 0 < steps[1] < 100, "killed in the first chunk"
    (whole,) = train_all([small_method("beta-vae", steps=110)], compiling="never")
    assert torch.equal(torch.load(result), flat_weights(whole))


@pytest.mark.parametrize("strategy", ["loop", "stack"])
@pytest.mark.parametrize("stop", [1, 57, 99, 130, 149])
def test_a_training_resumes_bitwise_in_the_middle_of_a_chunk(tmp_path, monkeypatch, strategy, stop):
    def pack():
        return validate([FactorVAE(steps=150, latent_dim=2, layers=(8,), critic=(8,), seed=i) for i in range(2)])

    whole = train_all(pack(), strategy=strategy, compiling="never")
    monkeypatch.setattr("unweave.training.checkpoint.MAX_SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr("unweave.training.checkpoint.TRAINING_PER_SAVING", 0.0)
    monkeypatch.setattr("unweave.training.loop.SECONDS_BETWEEN_REPORTS", -1.0)  # after every step, before it is saved
    file = tmp_path / "pack.checkpoint"
    parts = pack()
    for step in (stop, stop + 1):
        with pytest.raises(StopTraining):
            train(parts, DATA, checkpoint=file, callback=stop_at(step), strategy=strategy, compiling="never")
        assert read_step(file) == step - 1
    train(parts, DATA, checkpoint=file, strategy=strategy, compiling="never")
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(flat_weights(a), flat_weights(b))
        assert torch.equal(a.history_, b.history_)
