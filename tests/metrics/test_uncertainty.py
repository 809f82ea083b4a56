"""Chance levels and intervals."""

import numpy as np
import pytest

from unweave import InputError, catalog
from unweave.metrics import factor_vae_score, mcc
from unweave.metrics.contract import as_numbers
from unweave.metrics.uncertainty import chance_level, interval, plus_minus, score_table


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


def test_counts_have_no_best_value_and_chance_is_that_of_shuffled_codes():
    c = np.repeat(np.arange(4.0), 50)[:, None] * [1, -1]
    c[:, 1] = np.tile(np.arange(4.0), 50)
    rows = score_table("f", factor_vae_score, c, c, chance=True, bootstrap=3, seed=1)
    assert list(rows) == ["f.accuracy", "f.active"]
    assert list(rows["f.active"]) == ["value", "best", "chance", "low", "high"]
    assert rows["f.accuracy"]["best"] == 1.0 and np.isnan(rows["f.active"]["best"]) and rows["f.active"]["value"] == 2
    assert rows["f.accuracy"]["chance"] == chance_level(factor_vae_score, c, c, seed=1)["accuracy"] < 0.9
    plain = score_table("m", mcc, c, c)
    assert list(plain) == ["m"] and list(plain["m"]) == ["value", "best"]
    rng = np.random.default_rng(1)
    shuffled = [mcc(c, c[rng.permutation(200)]) for _ in range(3)]
    assert chance_level(mcc, c, c, seed=1)[""] == pytest.approx(np.mean(shuffled))


def test_bounds_are_quantiles_over_halves_around_the_value():
    rng = np.random.default_rng(0)
    c, z = rng.normal(size=(2, 61, 1))
    low, high = interval(mcc, c, z, repeats=7, level=0.5, seed=3)[""]
    rng = np.random.default_rng(3)
    halves = [rng.permutation(61)[:30] for _ in range(7)]
    values = np.array([mcc(c[rows], z[rows]) for rows in halves])
    expected = mcc(c, z) + np.quantile(values - values.mean(), [0.25, 0.75])
    np.testing.assert_allclose([low, high], expected)


def test_the_interval_of_repeated_runs_is_students():
    assert plus_minus([1.0, 2.0, 3.0]) == "2.000 +- 2.484"  # t(0.975, 2) = 4.3027, over the root of 3
    assert plus_minus([0.5]) == "0.500"
