"""Names of the variables of trained models, as the pages about digits show them."""

import numpy as np
import pytest
import torch

from unweave.data.containers import Table
from unweave.data.core import Factor
from unweave.datasets import SquaresXY
from unweave.methods import PCA, HessianICA, SelfSupervisedGIN
from unweave.papers import flow_digits, variables
from unweave.papers.flow_digits import DigitData
from unweave.papers.gin import digits as gin
from unweave.papers.readme import format_table
from unweave.papers.self_supervised_gin import digits as self_supervised

TINY = {"steps": 2, "batch_size": 8, "conv_blocks": 1, "conv_widths": (4,), "width": 4, "blocks": 1}


@pytest.fixture
def digits():
    """Random images with three labels."""
    x = torch.rand(90, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(90) % 3
    data = Table(x, labels[:, None].float(), (Factor("label", 3, "nominal"),))
    return DigitData(data, data, x.numpy(), labels.numpy())


def test_variables_of_the_first_seed_are_matched_with_those_of_the_second(tmp_path):
    data = SquaresXY(points=200, size=16, side=6).load()
    for seed, method in ((2, HessianICA(latent_dim=2)), (10, PCA(latent_dim=1))):
        method.fit(data).save(tmp_path / f"seed-{seed}" / flow_digits.MODEL)
    variables.write_variables(tmp_path, data)
    (table,) = variables.read_variables(tmp_path, "Squares")
    by_name = {row[1]: row for row in table.rows}
    assert sorted(by_name) == ["horizontal position", "vertical position"]
    assert by_name["vertical position"][2] == "|r| = 1.00"
    matches = sorted(row[-1] for row in table.rows)
    assert matches[0] == "no match" and matches[1].startswith("variable 1 (0.")
    assert "\\|r\\| = 1.00" in format_table(table)


def test_without_models_there_is_no_table(tmp_path):
    variables.write_variables(tmp_path, SquaresXY(points=20).load())
    assert variables.read_variables(tmp_path, "Squares") == []


def test_a_single_seed_is_not_compared(tmp_path):
    data = SquaresXY(points=100, size=16, side=6).load()
    PCA(latent_dim=1).fit(data).save(tmp_path / "seed-0" / flow_digits.MODEL)
    variables.write_variables(tmp_path, data)
    assert variables.read_variables(tmp_path, "")[0].rows[0][-1] == "not compared"


def test_gin_names_its_variables_when_the_digits_are_trained(tmp_path, digits, monkeypatch):
    monkeypatch.setattr(gin, "load_digits", lambda name: digits)
    monkeypatch.setattr(gin, "draw", lambda *args: None)
    monkeypatch.setattr(gin, "make_method", lambda options, seed: gin.GIN(seed=seed, latent_dim=3, **TINY))
    options = gin.Options(out=tmp_path, seeds=2, steps=2)
    gin.main(options)
    numbers, seeds, names = gin.tables(options)
    assert seeds.rows[-1][0] == "all pairs"
    assert len(numbers.rows) == 2 and [row[0] for row in names.rows] == ["1", "2", "3"]
    assert {row[4].partition(" ")[0] for row in names.rows} <= {"global", "local"}
    assert all(len(line) <= 100 for line in format_table(names).splitlines())


def test_self_supervised_gin_names_those_of_its_best_rate(tmp_path, digits, monkeypatch):
    def make(options, seed, rate=3e-4):
        return SelfSupervisedGIN(copies=4, seed=seed, lr=rate, latent_dim=2, **TINY)

    monkeypatch.setattr(self_supervised, "load_digits", lambda name: digits)
    monkeypatch.setattr(self_supervised, "draw", lambda *args: None)
    monkeypatch.setattr(self_supervised, "make_method", make)
    monkeypatch.setattr(self_supervised, "N_SETS", 2)
    options = self_supervised.Options(out=tmp_path, seeds=1, steps=2, rates=(1e-3, 2e-3))
    self_supervised.main(options)
    _, names = self_supervised.tables(options)
    rate = self_supervised.best_rate(options)
    assert names.title == f"Variables at the learning rate {rate:g}, first seed"
    assert [(row[0], row[-1]) for row in names.rows] == [("1", "not compared"), ("2", "not compared")]
    assert np.isin([row[4].partition(" ")[0] for row in names.rows], ["global", "local"]).all()
