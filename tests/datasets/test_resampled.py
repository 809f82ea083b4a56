"""Data with correlated factors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unweave import InputError
from unweave.data.downloads import MissingData
from unweave.datasets import Resampled
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import PCA


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_factors_are_correlated_in_training_and_not_in_the_test_set():
    small = Resampled(points=4_000, held_out=3_000)
    tied = small.load()
    free, test = replace(small, part="independent").load(), small.evaluation_data(tied)

    def correlation(data):
        c = data.collect(4_000, rng()).c
        return float(torch.corrcoef(torch.stack([c[:, data.column("x")], c[:, data.column("scale")]]))[0, 1])

    assert correlation(tied) > 0.6
    assert abs(correlation(free)) < 0.06 and abs(correlation(test)) < 0.06
    assert len(tied) == len(free) == 4_000 and len(test) == 3_000
    held = {tuple(p) for p in test.points.tolist()}
    assert not held & {tuple(p) for p in tied.points.tolist() + free.points.tolist()}
    assert small.title() == "dsprites (re-rendered), correlated" or small.title() == "dsprites, correlated"
    with pytest.raises(InputError, match="points=0"):
        Resampled(points=0).load()


def test_colored_digits_are_correlated_by_their_own_rule():
    data = Resampled(of="colored-mnist", strength=0.1)
    try:
        tied = data.load()
    except MissingData as error:
        pytest.skip(str(error))
    c = tied.collect(2_000, rng()).c
    assert float(torch.corrcoef(c.T)[0, 1]) > 0.7
    assert abs(float(torch.corrcoef(data.evaluation_data(tied).collect(2_000, rng()).c.T)[0, 1])) < 0.08


def test_a_run_is_scored_on_the_test_set_of_its_data(tmp_path):
    data = Resampled(points=300, held_out=200)
    run = Run(data, PCA(latent_dim=2))
    execute([run], tmp_path, metrics=["mcc"])
    done = read_run(tmp_path / run.key)
    truth = data.evaluation_data(data.load()).collect(10_000, rng(1_000_003)).c
    assert np.array_equal(done.truth, truth.numpy())
    assert [f.name for f in done.factors] == ["shape", "scale", "orientation", "x", "y"]
