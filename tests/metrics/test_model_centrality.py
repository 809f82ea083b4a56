"""Model centrality."""

import sys

import numpy as np
import pytest

from unweave.metrics import factor_vae_score, model_centrality, udr
from unweave.metrics.factors import PreparedFactors
from unweave.metrics.mcc import correlations
from unweave.metrics.udr import one_to_one_score

module = sys.modules["unweave.metrics.model_centrality"]  # the function has its name


def test_centrality_is_a_mean_over_both_directions():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 2))
    poor = c[:, :1]  # knows one factor: as truth it is easily told, as code it cannot tell two
    whole, part = model_centrality([c, poor])
    assert whole == part, "with two runs, each is compared with the other only"
    one = factor_vae_score(c, poor).accuracy
    other = factor_vae_score(poor, c).accuracy
    assert whole == pytest.approx((one + other) / 2, abs=0.03)
    assert one < other - 0.2


def test_comparisons_of_all_runs_at_once_equal_those_of_pairs():
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (400, 3))
    mixed = [np.linalg.qr(np.eye(3) + i * rng.normal(size=(3, 3)))[0] for i in (0, 0.1, 1)]
    runs = [c, *(c @ q for q in mixed), np.hstack([c[:, :2], 1e-3 * c[:, 2:]]), np.round(c[:, :1]), np.ones((400, 2))]
    votes = np.zeros((len(runs), len(runs)))
    ranks = np.zeros((len(runs), len(runs)))
    for i, a in enumerate(runs):
        for j, b in enumerate(runs):
            if i != j and a.std() > 0 and b.std() > 0:
                votes[i, j] = factor_vae_score(PreparedFactors(a), b, votes=60).accuracy
                ranks[i, j] = one_to_one_score(np.abs(correlations(a, b, "spearman")))
    np.testing.assert_array_equal(model_centrality(runs, votes=60), (votes + votes.T).sum(1) / (2 * len(runs) - 2))
    np.fill_diagonal(ranks, np.nan)
    np.testing.assert_allclose(udr(runs), np.nanmedian(ranks, 1), atol=1e-12)


def test_many_runs_share_their_votes(monkeypatch):
    """Each pair of 300 runs needs fewer votes, since a run is scored by the mean over all others."""
    drawn = []
    draw = module.draw_votes
    monkeypatch.setattr(module, "draw_votes", lambda c, votes, *rest: drawn.append(votes) or draw(c, votes, *rest))
    rng = np.random.default_rng(0)
    for count in (2, 40, 200):
        model_centrality([rng.normal(size=(170, 1)) for _ in range(count)])
        assert len(drawn) == count and set(drawn) == {{2: 1_000, 40: 750, 200: 150}[count]}
        drawn.clear()


def test_runs_without_codes_that_vary_score_zero():
    assert model_centrality([np.ones((50, 2)), np.zeros((50, 1))]).tolist() == [0, 0]
    assert udr([np.ones((50, 2)), np.zeros((50, 1))]).tolist() == [0, 0]
