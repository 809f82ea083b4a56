"""The nuisance probe against known answers."""

import numpy as np
import pytest

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
