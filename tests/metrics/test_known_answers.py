"""Known answers."""

import numpy as np
import pytest

from unweave import InputError, catalog
from unweave.methods.spectral.isometry import fit_rescaling
from unweave.metrics import (
    beta_vae_score,
    dci,
    explicitness,
    factor_vae_score,
    irs,
    local_isometry,
    mcc,
    mig,
    modularity,
    prepared,
    sap,
    score_all,
)
from unweave.metrics.contract import as_numbers
from unweave.metrics.local_isometry import near_pairs
from unweave.metrics.uncertainty import interval


@pytest.fixture(scope="module")
def z():
    return np.random.default_rng(0).uniform(-1, 1, (4000, 2))


@pytest.mark.parametrize("degrees", [0, 10, 30, 45])
def test_mcc_of_a_rotated_code_is_the_cosine(z, degrees):
    a = np.deg2rad(degrees)
    codes = z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert mcc(z, codes) == pytest.approx(np.cos(a), abs=0.02)


def test_spearman_sees_through_a_monotone_map_and_pearson_does_not(z):
    codes = np.exp(5 * z)
    assert mcc(z, codes, correlation="spearman") == pytest.approx(1)
    assert mcc(z, codes) < 0.9
    with pytest.raises(InputError, match="'pearson' or 'spearman'"):
        mcc(z, codes, correlation="kendall")


def test_spearman_ranks_are_ranks_and_not_an_argsort():
    """The argsort of (3, 1, 2) is (1, 2, 0); its ranks are (2, 0, 1)."""
    factor, code = np.array([3.0, 1, 2, 5, 4]), np.array([1.0, 2, 3, 4, 5])
    assert mcc(factor, code, correlation="spearman") == pytest.approx(0.6)
    assert mcc(factor, factor**3, correlation="spearman") == pytest.approx(1)


def test_mcc_matches_by_the_best_assignment_and_not_greedily():
    """|r| = [[.9, .8], [.85, 0]]: greedy takes .9 + 0, the best assignment .8 + .85."""
    rng = np.random.default_rng(0)
    a, b, noise = (rng.normal(size=(20_000, 1)) for _ in range(3))
    codes = np.hstack([0.9 * a + 0.436 * b, 0.8 * a + 0.6 * noise])
    factors = np.hstack([a, 0.85 * codes[:, :1] + 0.527 * rng.normal(size=(20_000, 1))])
    r = np.abs(np.corrcoef(factors.T, codes.T)[:2, 2:])
    assert r[0, 0] > r[1, 0] > r[0, 1] > r[1, 1]
    assert mcc(factors, codes) == pytest.approx((r[0, 1] + r[1, 0]) / 2)


def test_a_factor_without_a_code_counts_as_zero(z):
    assert mcc(z, z[:, :1]) == pytest.approx(0.5, abs=0.02)
    assert mcc(z[:, 0], z) == pytest.approx(1)


def test_a_constant_factor_is_refused(z):
    with pytest.raises(InputError, match="factor 1 is constant"):
        mcc(np.column_stack([z[:, 0], np.ones(4000)]), z)


def test_isometry_forgives_a_scale_per_axis_but_not_a_shear(z):
    assert local_isometry(z, z * [3, 0.01]) == pytest.approx(1, abs=1e-6)
    assert local_isometry(z, z @ np.array([[1, 0.9], [0.9, 1]])) < 0.75


def test_isometry_is_local():
    """Unrolled, a Swiss roll keeps its near distances and none of its far ones."""
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=2000)), 20 * rng.uniform(size=2000)
    roll = np.stack([t * np.cos(t), height, t * np.sin(t)], 1)
    length = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    flat = np.stack([length, height], 1)
    assert local_isometry(roll, flat, closest=0.01) > 0.99
    assert local_isometry(roll, flat, closest=1.0) < 0.7


def test_the_closest_pairs_are_the_closest(z):
    pairs = near_pairs(z[:200], z[:200], closest=0.05)
    every = np.sort(np.linalg.norm(z[:200, None] - z[None, :200], axis=2)[np.triu_indices(200, 1)])
    assert len(pairs.dx) == int(0.05 * 200 * 199 / 2)
    np.testing.assert_allclose(np.sort(pairs.dx), every[: len(pairs.dx)], atol=1e-7)
    with pytest.raises(InputError, match="between 0 and 1"):
        near_pairs(z, z, closest=0)


def test_the_rescaling_minimizes_the_mean_squared_difference_of_distances():
    """Against a search by brute force over both scales."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(150, 2))
    codes = np.column_stack([x[:, 0] + 0.2 * x[:, 1] ** 2, 3 * x[:, 1] + rng.normal(size=150)])
    i, j = np.triu_indices(150, 1)
    dx, gaps = np.linalg.norm(x[i] - x[j], axis=1), (codes[i] - codes[j]) ** 2

    def loss(w):
        return np.mean((np.sqrt(gaps @ w) - dx) ** 2)

    grid = np.linspace(0, 1.5, 151)
    best = min(loss(np.array([a, b])) for a in grid**2 for b in grid**2)
    assert loss(fit_rescaling(gaps, dx)) <= best + 1e-9


def test_columns_of_very_different_size_are_all_alive(z):
    assert mcc(z, z * [1e14, 1e-14]) == pytest.approx(1)
    assert mcc(z, z + np.array([1e6, 0])) == pytest.approx(1)


@pytest.fixture(scope="module")
def grid():
    """Two independent discrete factors of four values each, every combination 250 times."""
    return (
        np.stack(np.meshgrid(np.arange(4), np.arange(4), indexing="ij"), -1).reshape(-1, 2).repeat(250, 0).astype(float)
    )


def test_mig_of_a_perfect_a_doubled_and_a_mixed_code(grid):
    assert mig(grid, grid) == pytest.approx(1)
    assert mig(grid, np.column_stack([grid, grid])) == pytest.approx(0, abs=1e-9), "a second code knows as much"
    assert mig(grid, grid[:, [0]] * 4 + grid[:, [1]]) == pytest.approx(1), (
        "one code that knows everything: a known flaw"
    )


def test_mig_by_hand(grid):
    """The first code tells whether the factor is above 1: one bit of two; the second nothing."""
    codes = np.column_stack([grid[:, 0] > 1, grid[:, 1] > 1]).astype(float)
    assert mig(grid, codes) == pytest.approx(0.5)


def test_mig_bins_codes_and_not_factors():
    """Forty values, twenty bins: a code can tell log 20 of log 40; with the factor binned too it would tell all."""
    c = np.column_stack([np.arange(4000) % 40, np.arange(4000) // 40 % 10]).astype(float)
    assert mig(c, c) == pytest.approx((np.log(20) / np.log(40) + 1) / 2, abs=1e-3)


def test_latents_are_not_scrambled():
    """A reshape where a transpose was meant would mix codes and samples: each code must be matched with itself."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 4, (2000, 2)).astype(float)
    assert mig(c, np.column_stack([c[:, 0], rng.normal(size=2000), c[:, 1]])) > 0.95


def test_modularity_by_hand(grid):
    """One code knows both factors equally: the rest is as large as the best, so it scores zero."""
    assert modularity(grid, grid) == pytest.approx(1)
    assert modularity(grid, grid[:, [0]] * 4 + grid[:, [1]]) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="there is only one"):
        modularity(grid[:, 0], grid)


def test_irs_by_hand():
    """While the factor is held fixed, the code moves by 0.1 of at most 1.1: one minus 1/11."""
    factor = np.repeat([0.0, 1.0], 1000)
    code = 2 * factor - 1 + 0.1 * np.tile([-1, 1], 1000)
    assert irs(factor, code, quantile=1.0) == pytest.approx(1 - 0.1 / 1.1)
    with pytest.raises(InputError, match="quantile=0"):
        irs(factor, code, quantile=0)


def test_irs_of_noise_depends_on_the_quantile_and_is_far_from_zero():
    rng = np.random.default_rng(0)
    c, z = rng.integers(0, 5, (4000, 3)), rng.normal(size=(4000, 3))
    assert 0.1 < irs(c, z, quantile=1.0) < irs(c, z, quantile=0.99) < 0.5


def test_sap_variants_are_not_to_be_mixed():
    """The same code: nearly one by correlation, far less by the accuracy of a support vector machine."""
    c = np.random.default_rng(0).integers(0, 10, (3000, 2)).astype(float)
    z = c + 0.01 * np.random.default_rng(1).normal(size=c.shape)
    assert sap(c, z, predictor="r2") > 0.98
    assert sap(c, z, predictor="svm") < 0.4
    assert sap(c, z, predictor="logistic") > 0.5
    with pytest.raises(InputError, match="'svm', 'logistic' or 'r2'"):
        sap(c, z, predictor="tree")


def test_sap_of_classes_and_numbers_takes_accuracy_for_the_ones_and_correlation_for_the_others():
    rng = np.random.default_rng(0)
    c = np.column_stack([rng.integers(0, 3, 3000), rng.normal(size=3000), rng.integers(0, 5, 3000)])
    z = c @ rng.normal(size=(3, 3)) + rng.normal(size=c.shape)
    both = sap(c, z, predictor=("logistic", "r2", "logistic"))
    alone = [sap(c[:, [j]], z, predictor=how) for j, how in enumerate(("logistic", "r2", "logistic"))]
    assert both == pytest.approx(np.mean(alone))
    assert sap(c, z, predictor=["r2"] * 3) == sap(c, z, predictor="r2")
    with pytest.raises(InputError, match="2 predictors for 3 factors: expected one for all, or each"):
        sap(c, z, predictor=["r2", "svm"])
    with pytest.raises(InputError, match=r"factor 1 .* is continuous"):
        sap(c, z, predictor=["r2", "svm", "r2"])


def test_codes_that_are_the_factors_of_dsprites_have_a_sap_of_more_than_a_half():
    """By logistic regression, as the intervention paper has it, whose best is 0.58; shape has two thirds at most."""
    sizes = (3, 6, 40, 32, 32)
    rng = np.random.default_rng(0)
    c = rng.integers(0, sizes, (10_000, 5)).astype(float)
    z = (c - c.mean(0)) / c.std(0)
    assert 0.5 < sap(c, z + 0.02 * rng.normal(size=z.shape), predictor="logistic") < 0.7


def test_standardized_sap_does_not_depend_on_the_scale_of_codes():
    c = np.random.default_rng(0).integers(0, 6, (3000, 2)).astype(float)
    z = c + np.random.default_rng(1).normal(size=c.shape)
    scaled = [sap(c, s * z) for s in (0.1, 1, 10)]
    assert np.ptp(scaled) < 1e-6
    assert np.ptp([sap(c, s * z, standardize=False) for s in (0.1, 1, 10)]) > 0.02


def test_dci_punishes_rotation_in_both_ways_and_duplication_in_one(grid):
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


def test_dci_weighs_codes_by_their_importance():
    """Importances [[1, 0], [1/2, 1/2]]: purities 1 and 0, weights 1/2 and 1/2."""
    from unweave.metrics.dci import _mean_purity

    assert _mean_purity(np.array([[1.0, 0.0], [0.5, 0.5]])) == pytest.approx(0.5, abs=1e-6)
    assert _mean_purity(np.array([[1.0, 0.0], [0.0, 0.0]])) == pytest.approx(1, abs=1e-6), "a dead code has no weight"
    assert _mean_purity(np.zeros((2, 2))) == 0


def test_the_estimators_of_dci_agree_on_who_is_best_and_not_on_numbers(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.3 * rng.normal(size=grid.shape)
    noise = rng.normal(size=grid.shape)
    for estimator in ("trees", "rf", "lasso"):
        good, bad = (dci(grid[::4], codes[::4], estimator=estimator) for codes in (z, noise))
        # Lasso may pick any single code for a factor that none predicts, which then looks disentangled: look at I.
        assert good.informativeness > bad.informativeness + 0.5
        assert estimator == "lasso" or good.disentanglement > bad.disentanglement + 0.5


def test_explicitness_sees_a_linear_code_and_not_a_wrapped_one(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert (
        explicitness(grid, np.eye(4)[grid.astype(int)].reshape(len(grid), -1) + 0.01 * rng.normal(size=(4000, 8)))
        > 0.999
    )
    assert explicitness(grid, np.sin(10 * z)) < 0.9
    assert explicitness(grid, rng.normal(size=grid.shape)) == pytest.approx(0.5, abs=0.05)


def test_too_few_classes_and_rows_are_refused(grid):
    c = np.zeros(30)
    c[29] = 1
    with pytest.raises(InputError, match="one class only among the training rows"):
        dci(c, np.arange(30.0), seed=None)
    with pytest.raises(InputError, match="too few to train"):
        sap(np.arange(3.0), np.arange(3.0), train=0.1)
    with pytest.raises(InputError, match="between 0 and 1"):
        explicitness(grid, grid, train=1.5)


def test_fewer_samples_than_twice_the_classes_are_warned_of():
    with pytest.warns(UserWarning, match="factor 0 has 15 classes in 20 samples"):
        mig(np.arange(20) % 15, np.arange(20.0))


def test_the_factor_vae_score_holds_votes_out_and_counts_active_codes(grid):
    rng = np.random.default_rng(0)
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert factor_vae_score(grid, z) == (1.0, 2)
    noise = factor_vae_score(grid, rng.normal(size=(4000, 6)))
    assert noise.accuracy == pytest.approx(0.5, abs=0.08), "two factors: a guess is right half of the time"
    dead = np.column_stack([z, np.full(4000, 3.0), 0.01 * rng.normal(size=4000)])
    assert factor_vae_score(grid, dead).active == 2 and factor_vae_score(grid, 1e-4 * dead).active == 2
    assert factor_vae_score(grid, dead, prune=0).active == 3
    with pytest.raises(InputError, match="eight rows or more"):
        factor_vae_score(np.arange(20) % 10, np.arange(20.0))


def test_the_beta_vae_score_tells_shared_factors(grid):
    rng = np.random.default_rng(0)
    a = np.pi / 4
    z = grid + 0.05 * rng.normal(size=grid.shape)
    assert beta_vae_score(grid, z) > 0.99
    assert beta_vae_score(grid, rng.normal(size=grid.shape)) == pytest.approx(0.5, abs=0.08)
    turned = z @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert beta_vae_score(grid, turned) < 0.7, "by half a right angle, both codes change alike"


def test_all_scores_at_once_with_chance_and_interval(grid):
    z = grid[::4] + 0.3 * np.random.default_rng(0).normal(size=grid[::4].shape)
    table = score_all(grid[::4], z, chance=True, bootstrap=4)
    assert {"mcc", "mig", "dci[trees].disentanglement", "factor-vae-score.accuracy", "irs[q100]", "sap[r2]"} <= set(
        table.index
    )
    assert table.loc["mig", "value"] == mig(grid[::4], z)
    assert table.loc["mcc", "chance"] < 0.1 < table.loc["irs[q99]", "chance"], "noise does not score zero everywhere"
    assert (table["low"] <= table["high"]).all()
    assert table.loc["mcc", "low"] - 0.02 < table.loc["mcc", "value"] < table.loc["mcc", "high"] + 0.02
    assert score_all(grid[::4], z).columns.tolist() == ["value", "best"]


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """The correlation of a code with its factor is known: 0.8. Of 40 intervals of 90 %, some must miss and most hit."""
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = rng.normal(size=400)
        z = 0.8 * c + 0.6 * rng.normal(size=400)
        low, high = interval(mcc, c, z, repeats=60, level=0.9, seed=seed)[""]
        hits += low <= 0.8 <= high
    assert 30 <= hits <= 40


@pytest.mark.parametrize("name", ["infomec", "dci[trees]", "sap[logistic]", "mig", "explicitness"])
def test_every_interval_holds_its_value_and_is_narrower_with_more_samples(name):
    """Scores that train, test or look for neighbors must not see a row twice."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, [3, 4], (1600, 2)).astype(float)
    z = c + 0.5 * rng.normal(size=c.shape)
    scorer = next(iter(catalog.find_metrics([name]).values()))
    widths = []
    for n in (200, 1600):
        bounds = interval(scorer, c[:n], z[:n], repeats=8)
        for part, value in as_numbers(scorer(c[:n], z[:n])).items():
            assert bounds[part][0] <= value <= bounds[part][1]
        widths.append(np.ptp(next(iter(bounds.values()))))
    assert widths[1] < widths[0]
    with pytest.raises(InputError, match="at least two resamples"):
        interval(scorer, c, z, repeats=1)


def test_levels_with_fractions_and_values_that_repeat_are_classes_like_others():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 5, (600, 2)) / 4
    assert irs(c, c) == pytest.approx(1)
    tied = np.maximum(rng.normal(size=(600, 2)), 0)  # half of the values are zero: most equal-count bins are empty
    assert irs(tied, tied) > 0.7
    assert factor_vae_score(tied, tied).accuracy == 1


def test_what_is_left_of_a_dead_code_is_rounding_and_no_score_minds():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 3, (600, 2)).astype(float)
    for dead in (0.1 + 1.4e-17 * rng.integers(-1, 2, 600), np.full(600, 1e17)):
        z = np.column_stack([c, dead])
        assert mig(c, z) == mig(c, c)
        assert modularity(c, z) == pytest.approx(modularity(c, c) * 2 / 3)


def test_a_dead_code_does_not_help_noise_in_sap():
    """It can say the most frequent class, like a code of noise: the gap between them is small."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, (2000, 2))
    assert sap(c, np.column_stack([rng.normal(size=2000), np.zeros(2000)])) < 0.1


def test_axes_swapped_in_both_are_noticed():
    x = np.random.default_rng(0).normal(size=(500, 4))
    with pytest.raises(InputError, match=r"more columns than samples in both; are the axes swapped"):
        mcc(x.T, x.T)


def test_known_kinds_beat_what_values_look_like():
    """120 classes by number are classes; levels of 22.5 degrees are levels."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 120, 3000).astype(float)
    assert len(np.unique(prepared(label).classes[0])) == 20, "an array may hold anything: many values are a range"
    assert len(np.unique(prepared(label, [True]).classes[0])) == 120
    angle = 22.5 * rng.integers(0, 4, 600)
    with pytest.raises(InputError, match="use sap"):
        sap(angle, angle)
    assert sap(prepared(angle, [True]), angle) > 0.4


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
