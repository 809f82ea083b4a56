"""Disentanglement, completeness, informativeness."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from unweave import InputError
from unweave.metrics import dci, prepared
from unweave.metrics.dci import code_importances, mean_purity


def test_rotation_lowers_both_scores_and_duplication_one(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    a = np.pi / 4
    perfect, turned = dci(grid, z), dci(grid, z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]))
    assert min(perfect) > 0.99
    assert turned.disentanglement < 0.5
    assert turned.completeness < 0.5
    doubled = dci(grid, np.column_stack([z, z + 1e-6 * rng.normal(size=z.shape)]))
    assert doubled.disentanglement > 0.99
    assert doubled.completeness < 0.8
    with pytest.raises(InputError, match="'trees', 'rf', 'lasso', 'gbt'"):
        dci(grid, z, estimator="lightgbm")


def test_codes_are_weighted_by_their_importance():
    """Importances [[1, 0], [1/2, 1/2]]: purities 1 and 0, weights 1/2 and 1/2."""
    from unweave.metrics.dci import mean_purity

    assert mean_purity(np.array([[1.0, 0.0], [0.5, 0.5]])) == pytest.approx(0.5, abs=1e-6)
    assert mean_purity(np.array([[1.0, 0.0], [0.0, 0.0]])) == pytest.approx(1, abs=1e-6), "a dead code has no weight"
    assert mean_purity(np.zeros((2, 2))) == 0


def test_estimators_agree_on_the_best_codes_and_not_on_numbers(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.3 * rng.normal(size=grid.shape)
    noise = rng.normal(size=grid.shape)
    for estimator in ("trees", "rf", "lasso"):
        good, bad = (dci(grid[::4], codes[::4], estimator=estimator) for codes in (z, noise))
        # Lasso may pick any single code for a factor that none predicts, which then looks disentangled: look at I.
        assert good.informativeness > bad.informativeness + 0.5
        assert estimator == "lasso" or good.disentanglement > bad.disentanglement + 0.5


@pytest.mark.parametrize("estimator", ["rf", "gbt"])
def test_the_slow_estimators_keep_the_contract_too(estimator, grid):
    rng = np.random.default_rng(0)
    c, z = grid[::8], grid[::8] + 0.05 * rng.normal(size=grid[::8].shape)
    perfect = dci(c, z, estimator=estimator)
    assert min(perfect) > 0.95
    other = dci(c, z[:, ::-1] * [-3, 0.1] + [0, 7], estimator=estimator)
    assert other == pytest.approx(perfect, abs=0.02)
    dead = dci(c, np.column_stack([z, np.full(len(z), 3.0)]), estimator=estimator)
    assert dead == pytest.approx(perfect, abs=1e-6)
    nothing = dci(c, np.ones_like(z), estimator=estimator)
    assert nothing.disentanglement == 0
    noise = dci(c, rng.normal(size=z.shape), estimator=estimator)
    assert noise.disentanglement < perfect.disentanglement - 0.3


RNG = np.random.default_rng(0)


GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), -1).reshape(-1, 3).repeat(30, 0)  # (1920, 3)


CODES = GRID + 0.05 * RNG.normal(size=GRID.shape)


def test_estimators_give_one_code_different_numbers():
    """An axis-aligned code with noise: L1-penalized regression sees one code per factor, forests spread importance."""
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, (1500, 3))
    z = np.column_stack([c + 0.3 * rng.normal(size=c.shape), rng.normal(size=(1500, 3))])
    lasso, forest, trees = (dci(c, z, estimator=e) for e in ("lasso", "rf", "trees"))
    assert lasso.disentanglement > 0.9
    assert forest.disentanglement < lasso.disentanglement - 0.1
    assert abs(trees.disentanglement - forest.disentanglement) > 0.05
    assert lasso.informativeness == pytest.approx(1 / (1 + 0.09 * 3), abs=0.04), "R^2 of the best linear prediction"


def test_depths_are_one_for_all_one_per_factor_or_cross_validated():
    shallow = dci(GRID[::4], CODES[::4], estimator="rf", depth=1)
    assert dci(GRID[::4], CODES[::4], estimator="rf", depth=(1, 1, 1)) == shallow
    chosen = dci(GRID[::4], CODES[::4], estimator="rf", depth="cv")
    assert chosen.informativeness > 0.99 > 0.9 > shallow.informativeness
    with pytest.raises(InputError, match=r"names 2 depths for 3 factors"):
        dci(GRID, CODES, estimator="rf", depth=(1, 1))
    with pytest.raises(InputError, match="is for estimator='rf'"):
        dci(GRID, CODES, depth=3)


def test_the_lasso_is_that_of_standardized_codes_and_factors():
    """Weights and R^2 by hand; a constant code has none, and an angle has those of its cosine and sine."""
    rng = np.random.default_rng(0)
    angle, size = rng.uniform(0, 360, 300), rng.normal(size=300)
    cosine, noise = np.cos(np.deg2rad(angle)), rng.normal(size=(2, 300))
    z = np.column_stack([cosine, 5 * size + noise[0], np.ones(300), noise[1]])
    truth = prepared(np.column_stack([angle, size]), kinds=[("circular", 360), "continuous"])
    importance, accuracy = code_importances(truth, z, estimator="lasso", depth=None, train=0.5, seed=None)
    targets = [np.column_stack([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))]), size[:, None]]
    active = z[:, [0, 1, 3]]
    x = (active - active[:150].mean(0)) / active[:150].std(0)
    for j, target in enumerate(targets):
        y = (target - target[:150].mean(0)) / target[:150].std(0)
        model = Lasso(alpha=0.02).fit(x[:150], y[:150])
        np.testing.assert_allclose(importance[[0, 1, 3], j], np.abs(np.atleast_2d(model.coef_)).sum(0))
        assert importance[2, j] == 0 and accuracy[j] == pytest.approx(max(model.score(x[150:], y[150:]), 0))


def test_purity_is_one_minus_the_entropy_weighted_by_importance():
    importance = np.array([[3.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    mixed = 1 + (0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert mean_purity(importance) == pytest.approx((4 * mixed + 2 * 1) / 6, abs=1e-6)
    assert mean_purity(np.zeros((2, 3))) == 0 and mean_purity(np.array([[0.2], [0.1]])) == 1


def test_codes_that_do_not_vary_guess_the_most_frequent_class():
    c = np.array([0, 0, 0, 1] * 30 + [1, 1, 1, 0] * 15)[:, None]
    found = dci(c, np.ones((180, 2)), seed=None)
    assert found == (0.0, 0.0, pytest.approx(0.25))
    assert dci(np.hstack([c, c]), np.ones((180, 2)), seed=None, train=0.5).disentanglement == 0
