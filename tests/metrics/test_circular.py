"""Scores of circular factors and codes."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unweave import InputError
from unweave.metrics import angle_error, dci, infomec, mcc, mig, prepared, sap, score_all
from unweave.metrics.circular import fisher_lee
from unweave.metrics.factors import unit_circle
from unweave.metrics.mcc import associations

TURN = 2 * np.pi
ANGLE = np.arange(0.0, 360, 2)


def circle(code_periods=None, factors=ANGLE):
    return prepared(factors, kinds=("circular", 360), code_periods=code_periods)


@pytest.mark.parametrize("code", [ANGLE, ANGLE + 77, -ANGLE, 500 - ANGLE], ids=["same", "offset", "mirror", "both"])
def test_an_angle_is_recovered_up_to_offset_and_direction(code):
    z = np.deg2rad(code) % TURN
    assert mcc(circle((TURN,)), z) == pytest.approx(1)
    assert mcc(circle((TURN,)), z, only_circular=True) == pytest.approx(1)
    assert angle_error(circle((TURN,)), z) < 1e-6
    assert sap(circle((TURN,)), z, predictor="r2") == pytest.approx(1)


def test_correlation_of_angles_is_that_of_fisher_and_lee():
    """Their definition by pairs of observations, for angles that are not uniform."""
    rng = np.random.default_rng(0)
    a = rng.vonmises(0.3, 2, 60)
    b = a + rng.vonmises(0, 3, 60)
    i, j = np.triu_indices(60, 1)
    da, db = np.sin(a[i] - a[j]), np.sin(b[i] - b[j])
    by_pairs = (da * db).sum() / np.sqrt((da**2).sum() * (db**2).sum())
    assert fisher_lee(unit_circle(a, TURN), unit_circle(b, TURN)) == pytest.approx(abs(by_pairs))
    assert 0.3 < by_pairs < 0.95


def test_a_cosine_is_half_of_an_angle_and_both_together_are_all_of_it():
    z = unit_circle(ANGLE, 360.0)
    assert mcc(circle(), z[:, :1]) == pytest.approx(np.sqrt(0.5))
    assert angle_error(circle(), z) < 1e-6
    assert angle_error(circle(), z[:, :1]) > 20
    half = np.sin(np.deg2rad(ANGLE))[:, None]
    assert mcc(prepared(half, code_periods=(TURN,)), np.deg2rad(ANGLE)) == pytest.approx(1)


def test_independent_codes_score_near_chance():
    rng = np.random.default_rng(0)
    angle, z = rng.uniform(0, 360, 4000), rng.uniform(0, TURN, 4000)
    assert mcc(circle((TURN,), angle), z) < 0.05
    assert mcc(circle(None, angle), z) < 0.05
    assert angle_error(circle(None, angle), z) == pytest.approx(90, abs=5)


def test_the_cut_of_the_circle_does_not_matter():
    """Angles around 0 and around 180 degrees score the same."""
    rng = np.random.default_rng(0)
    angle = np.concatenate([rng.uniform(-40, 40, 300)])
    z = unit_circle(angle + 5 * rng.normal(size=300), 360.0)
    scores = []
    for offset in (0, 180):
        truth = prepared((angle + offset) % 360, kinds=("circular", 360))
        scores.append([
            mcc(truth, z), angle_error(truth, z), sap(truth, z, predictor="r2"),
            dci(truth, z, estimator="rf").informativeness, dci(truth, z, estimator="lasso").informativeness,
        ])  # fmt: skip
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    assert scores[0][3] > 0.7


def test_regressions_predict_cosine_and_sine():
    angle = np.random.default_rng(0).uniform(0, 360, 500)
    other = np.random.default_rng(1).uniform(size=500)
    c, z = np.stack([angle, other], 1), np.column_stack([unit_circle(angle, 360.0), other])
    truth, plain = prepared(c, kinds=[("circular", 360), None]), prepared(c)
    assert infomec(truth, z).explicitness == pytest.approx(1)
    assert infomec(plain, z).explicitness < 0.9
    assert dci(truth, z, estimator="lasso").informativeness > 0.95
    assert dci(truth, z, estimator="lasso").disentanglement > 0.99
    assert dci(plain, z, estimator="lasso").informativeness < 0.9


def test_scores_of_angles_are_for_circular_factors_only():
    with pytest.raises(InputError, match="no factor is circular"):
        mcc(ANGLE, ANGLE, only_circular=True)
    with pytest.raises(InputError, match="no factor is circular"):
        angle_error(ANGLE, ANGLE)
    assert {"angle-error", "mcc[circular]"}.isdisjoint(score_all(ANGLE[:, None] % 10, ANGLE[:, None]).index)
    z = unit_circle(ANGLE, 360.0)
    assert {"angle-error", "mcc[circular]"} <= set(score_all(circle(), z).index)
    assert mig(circle(), z) >= 0


def test_kinds_are_stated_per_factor():
    c = np.stack([ANGLE, ANGLE], 1)
    assert prepared(c, kinds=[("circular", 180), "continuous"]).periods == [180.0, None]
    with pytest.raises(InputError, match="1 kind for 2 factors"):
        prepared(c, kinds=["continuous"])
    with pytest.raises(InputError, match="period -1"):
        prepared(c, kinds=("circular", -1))
    with pytest.raises(InputError, match=r"runs from 0 to 100.*e.g. factor 0=360"):
        prepared(np.arange(101.0), kinds="circular")


def test_associations_of_angles_and_numbers_by_hand():
    """An angle and a number: the root of R^2; two angles: Fisher and Lee's; two numbers: their correlation."""
    rng = np.random.default_rng(0)
    angle, size = rng.uniform(0, 360, 200), rng.normal(size=200)
    turned = (2 - 6.5 * angle / 360 + 0.1 * rng.normal(size=200)) % 6.5
    number = np.cos(np.deg2rad(angle)) + rng.normal(size=200)
    z = np.column_stack([turned, number])
    truth = prepared(np.column_stack([angle, size]), kinds=[("circular", 360), "continuous"], code_periods=(6.5, None))
    found = associations(truth, z)
    a, b = (np.stack([np.cos(t), np.sin(t)], 1) for t in (np.deg2rad(angle), 2 * np.pi * turned / 6.5))
    lee = np.linalg.det(a.T @ b) / np.sqrt(np.linalg.det(a.T @ a) * np.linalg.det(b.T @ b))

    def explained(x, y):
        rest = y - LinearRegression().fit(x, y).predict(x)
        return np.sqrt(1 - (rest**2).sum() / ((y - y.mean(0)) ** 2).sum())

    expected = [
        [abs(lee), explained(number[:, None], a)],
        [explained(b, size), abs(np.corrcoef(size, number)[0, 1])],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    constant = associations(truth, np.column_stack([np.ones(200), np.ones(200)]))
    np.testing.assert_allclose(constant, 0, atol=1e-9)
