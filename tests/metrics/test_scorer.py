"""Scorers for scikit-learn, and exact scores."""

from typing import NamedTuple

import numpy as np
import pytest

import unweave
from unweave import InputError
from unweave.methods import PCA
from unweave.metrics import mcc
from unweave.metrics.contract import Scorer


class TwoScores(NamedTuple):
    """Two numbers."""

    first: float
    second: float


@pytest.mark.parametrize("name", ["dci[trees]", "dci[trees].foo", "mcc.foo"])
def test_unknown_parts_of_a_score_are_refused(name):
    with pytest.raises(InputError, match="no part of"):
        unweave.scorer(name)
    assert unweave.scorer("dci[trees].completeness").part == "completeness"


def test_a_scorer_of_an_own_metric_needs_no_annotations():
    def own_metric(factors, codes):
        return TwoScores(0.25, 0.5)

    own_metric.__annotations__ = {"return": "Unheard"}  # a name that cannot be looked up
    mine = unweave.metric(paper="none")(own_metric)
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert Scorer(mine, "second")(PCA(latent_dim=2).fit(x), x, x) == 0.5


def test_a_perfect_mcc_is_exactly_one():
    c = np.random.default_rng(5).normal(size=(101, 7))
    assert mcc(c, c) == 1.0
