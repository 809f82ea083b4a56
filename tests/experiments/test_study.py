"""Runs: addresses, folders that appear whole, and what survives."""

import re
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from unweave import InputError, Method, Run, execute, load, sweep
from unweave.data.downloads import MissingData
from unweave.datasets import MNIST, SquaresXY
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import read_run
from unweave.methods import PCA, HessianICA

DATA = SquaresXY(points=60, size=12, side=4)


def test_data_that_are_not_here_are_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(MNIST, "load", missing := Mock(side_effect=MissingData("digits are not here")))
    digits, bad = Run(MNIST(), PCA()), Run(DATA, PCA(latent_dim=10**6))
    for calls in (1, 2):
        with pytest.warns(RuntimeWarning, match="digits are not here"):
            assert execute([digits], tmp_path, metrics=[]).empty
        assert missing.call_count == calls
    assert str(no_finished_runs(tmp_path, [digits])) == "no run is done: pca on mnist: digits are not here"
    with pytest.warns(RuntimeWarning):
        execute([bad], tmp_path, metrics=[])
    execute([bad], tmp_path, metrics=[])  # not again
    assert re.search(
        r"done: pca on squares-xy .*: .*10{6}.*\. To try again, remove", str(no_finished_runs(tmp_path, [bad]))
    )


def test_a_sweep_is_the_product_of_its_axes():
    runs = sweep(DATA, PCA(), latent_dim=[1, 2], seed=range(3))
    assert sorted((r.method.latent_dim, r.method.seed) for r in runs) == [(d, s) for d in (1, 2) for s in range(3)]
    with pytest.raises(InputError, match="beta"):
        sweep(DATA, PCA(), beta=[1])


def test_a_study_gives_a_row_per_run_and_a_folder_per_key(tmp_path):
    runs = [*sweep(DATA, PCA(), latent_dim=[1, 2]), Run(DATA, HessianICA(latent_dim=2))]
    table = execute(runs, tmp_path)
    assert list(table["method"]) == ["pca", "pca", "hessian-ica"]
    assert list(table["latent_dim"]) == [1, 2, 2]
    assert table["n_neighbors"].isna().tolist() == [True, True, False]
    assert table["mcc"].between(0, 1).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(r.key for r in runs)
    for run in runs:
        files = {p.name for p in (tmp_path / run.key).iterdir()}
        assert files == {
            "config.json",
            "model.safetensors",
            "run.json",
            "scores.json",
            "env.json",
            "codes.parquet",
            "pairs.parquet",
            "ordered.npz",
            "manifest.json",
        }
        codes = load(tmp_path / run.key).transform(DATA.load().render(DATA.load().sources))
        assert np.array_equal(codes, read_run(tmp_path / run.key).codes.astype(codes.dtype))


def test_a_finished_run_is_not_repeated_and_its_row_stays_the_same(tmp_path):
    first = execute([Run(DATA, PCA())], tmp_path)
    stamp = (tmp_path / Run(DATA, PCA()).key / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []
    second = execute([Run(DATA, PCA())], tmp_path, notify=said.append)
    pd.testing.assert_frame_equal(first, second)
    assert (tmp_path / Run(DATA, PCA()).key / "model.safetensors").stat().st_mtime_ns == stamp
    assert any("already finished" in text for text in said)


def test_a_score_asked_for_later_is_added(tmp_path):
    execute([Run(DATA, PCA())], tmp_path, metrics=["mcc"])
    table = execute([Run(DATA, PCA())], tmp_path, metrics=["local-isometry"])
    assert {"mcc", "local-isometry"} <= set(table.columns)
    direct = execute([Run(DATA, PCA())], tmp_path / "b", metrics=["local-isometry"])
    assert table["local-isometry"][0] == direct["local-isometry"][0]


def test_numpy_numbers_and_names_of_data_are_welcome_in_a_sweep(tmp_path):
    runs = sweep("squares-xy", PCA(), seed=np.arange(2), latent_dim=np.array([1, 2]))
    assert [type(r.method.seed) for r in runs] == [int] * 4
    assert runs[0].key == sweep(SquaresXY(), PCA(), seed=[0], latent_dim=[1])[0].key
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(9, 3)))
    assert sweep(tmp_path / "x.npy", PCA(), seed=[0])[0].data.title() == "x.npy"


def test_an_axis_of_tuples_keeps_its_tuples():
    class Tupled(Method):
        """Has a setting that is a tuple."""

        parts: tuple[int, ...] = (1,)

        def learn(self, data):
            self.done_ = 1

        def encode(self, x):
            return x

    assert [r.method.parts for r in sweep(DATA, Tupled(), parts=[(1, 2), (3, 4)])] == [(1, 2), (3, 4)]
