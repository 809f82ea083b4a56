"""Unsupervised disentanglement ranking."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from unweave import InputError
from unweave.metrics import (
    model_centrality,
    udr,
)
from unweave.metrics.udr import _similarities, one_to_one_score

RNG = np.random.default_rng(0)


def turned(z, degrees=45.0):
    a = np.deg2rad(degrees)
    return z[:, :2] @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def test_the_one_to_one_score_equals_a_computation_by_hand():
    assert one_to_one_score(np.eye(3)) == 1
    assert one_to_one_score(np.ones((3, 3))) == pytest.approx(1 / 3)
    assert one_to_one_score(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])) == pytest.approx(2 / 3)
    assert one_to_one_score(np.zeros((2, 2))) == 0


def test_a_run_scores_its_median_over_the_others():
    """Two runs that agree and three of noise: the median over four others is one of noise, the mean would not be."""
    rng = np.random.default_rng(0)
    c = rng.normal(size=(2000, 2))
    found = udr([c, c, *(rng.normal(size=(2000, 2)) for _ in range(3))])
    assert found[:2].max() < 0.1
    most = udr([c, c, c, rng.normal(size=(2000, 2))])
    assert most[:3].min() > 0.97


@pytest.mark.parametrize("score", [udr, lambda z: udr(z, similarity="lasso"), model_centrality])
def test_runs_that_agree_score_higher_than_runs_that_mix_differently(score):
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 4))
    good = [c[:, ::sign] * [s, 1, 1, 2] + 0.02 * rng.normal(size=c.shape) for sign in (1, -1) for s in (-3, 1)]
    mixed = [np.hstack([turned(c[:, order[:2]]), turned(c[:, order[2:]])]) for order in ([0, 1, 2, 3], [0, 2, 1, 3])]
    found = score([*good, *mixed])
    assert found.shape == (6,)
    assert found[:4].min() > found[4:].max() + 0.05


@pytest.mark.parametrize("similarity", ["spearman", "lasso"])
def test_a_run_without_codes_that_vary_agrees_with_none(similarity):
    c = np.random.default_rng(0).normal(size=(300, 2))
    idle = np.ones((300, 1))
    np.testing.assert_allclose(udr([c, np.ones((300, 2))], similarity=similarity), 0)
    np.testing.assert_allclose(udr([c, -c[:, ::-1], idle], similarity=similarity), [0.5, 0.5, 0], atol=0.06)
    np.testing.assert_allclose(udr([np.ones((300, 1)), np.zeros((300, 1))], similarity=similarity), 0)


def test_similarities_by_regression_are_lasso_weights_of_standardized_codes():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    b[:, 0] += 2 * a[:, 1]
    r = _similarities(5 * a + 1, 3 * b - 2, "lasso")
    za, zb = ((v - v.mean(0)) / v.std(0) for v in (a, b))
    np.testing.assert_allclose(r, np.abs([Lasso(alpha=0.1).fit(za, column).coef_ for column in zb.T]).T, atol=1e-9)
    found = udr([a, b], similarity="lasso")
    both = (one_to_one_score(r) + one_to_one_score(_similarities(b, a, "lasso"))) / 2
    np.testing.assert_allclose(found, [both, both])


def test_only_informative_codes_are_compared():
    c = np.random.default_rng(0).normal(size=(800, 1))
    runs = [np.hstack([c, RNG.normal(size=(800, 4))]) for _ in range(3)]
    mask = [True, False, False, False, False]
    assert udr(runs).max() < 0.4
    assert udr(runs, informative=3 * [mask]).min() > 0.99
    with pytest.raises(InputError, match="two at least"):
        udr([c])
    with pytest.raises(InputError, match="same observations"):
        model_centrality([c, c[1:]])
    with pytest.raises(InputError, match="one mask per run"):
        udr(runs, informative=[mask])
