"""The nuisance probe against known answers."""

import importlib

import numpy as np
import pytest

from unweave import InputError
from unweave.metrics import nuisance_probe


def test_the_probe_finds_nuisances_and_only_those():
    generator = np.random.default_rng(0)
    s = (generator.random(2000) < 0.7).astype(int)
    noise = generator.normal(size=(2000, 3))
    found = nuisance_probe(s, noise)
    assert found.chance == pytest.approx(0.7, abs=0.03) and found.accuracy < found.chance + 0.03
    hidden = np.c_[noise[:, :2], noise[:, 2] * (1 + 9 * s)]  # in the spread alone, where no linear probe sees it
    assert nuisance_probe(s, hidden).accuracy > found.chance + 0.1


def test_the_probe_finds_a_nuisance_that_needs_three_codes():
    z = np.random.default_rng(0).normal(size=(2_000, 8))
    s = (z[:, :3] > 0).sum(1) % 2  # no one or two codes tell anything of it
    assert nuisance_probe(s, z).accuracy > 0.8
    few = nuisance_probe(np.r_[np.zeros(11, int), 1, 1], z[:13], train=0.8)  # too few to set some aside
    assert 0 <= few.accuracy <= 1


def test_the_probe_does_not_overfit():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(5_000, 16))
    s = np.digitize(z[:, 0] + generator.normal(size=5_000), [-1, 0, 1])
    assert nuisance_probe(s, z).accuracy > 0.43  # more rounds without looking have 0.38; chance 0.26


@pytest.mark.parametrize(("n", "values", "holds_out"), [(40, 2, True), (38, 2, False), (60, 3, True), (58, 3, False)])
def test_training_stops_by_rows_that_are_held_out_where_there_are_enough(n, values, holds_out, monkeypatch):
    """A tenth of the training rows must have one of each value; fewer rows are trained on for a while."""
    seen = []
    module = importlib.import_module("unweave.metrics.nuisance_probe")
    real = module.MLPClassifier

    def network(layers, **settings):
        seen.append((layers, settings))
        return real(layers, **settings)

    monkeypatch.setattr(module, "MLPClassifier", network)
    y = np.arange(n) % values
    nuisance_probe(y, y + 0.1 * np.random.default_rng(0).normal(size=n), seed=None)
    stopping = {"learning_rate_init": 5e-3, "max_iter": 300, "n_iter_no_change": 20, "early_stopping": True,
                "validation_fraction": 0.1}  # fmt: skip
    short = {"max_iter": 60, "n_iter_no_change": 5}
    assert seen == [((128,), (stopping if holds_out else short) | {"random_state": None})]


def test_a_nuisance_needs_two_values_among_the_training_rows():
    with pytest.raises(InputError, match="factor 0 has one class only among the training rows"):
        nuisance_probe(np.repeat([0, 1], 20), np.arange(40.0), seed=None)
    rare = np.r_[np.zeros(49, int), 1, np.tile([0, 1], 25)]  # a value with one training row cannot be held out
    assert nuisance_probe(rare, np.arange(100.0), seed=None).chance == 0.5


def test_the_scale_of_codes_does_not_matter():
    rng = np.random.default_rng(0)
    nuisance = rng.integers(0, 2, 300)
    codes = np.column_stack([nuisance + 0.1 * rng.normal(size=300), rng.normal(size=300)])
    assert nuisance_probe(nuisance, 1e-4 * codes + [10, 0]).accuracy > 0.95
