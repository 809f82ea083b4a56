"""Factors of strips that are only nearly isometric to them."""

import warnings
from typing import Any

import numpy as np
import pytest

from unweave import InputError
from unweave.methods import HessianICA
from unweave.methods.spectral import straightening
from unweave.methods.spectral.point_cloud import build_cloud
from unweave.methods.spectral.straightening import (
    Steps,
    conditional_components,
    conditional_mean,
    explained_shares,
    gradients,
    place,
    polynomial_regression,
    standardize_code_given_others,
    standardize_given,
    straighten_dependent,
    subtract_explained,
    tangent_steps,
    to_unit_speed,
)
from unweave.metrics import mcc


def strip(n=700, ratio=10.0, e=0.2, third=0.0, seed=0):
    """A strip along a circle, whose long side is longer where the short one is large; and its factors."""
    rng = np.random.default_rng(seed)
    u, v, w = rng.uniform(size=(3, n)) * np.array([[ratio], [1], [third]])
    radius = ratio / 2.5
    c = radius * np.stack([np.cos(u / radius), np.sin(u / radius)], 1)
    x = np.column_stack([(1 + e * (v - 0.5))[:, None] * c, v, w][: 3 if third else 2])
    z = np.column_stack([u, v, w][: 3 if third else 2])
    return x @ np.linalg.qr(rng.normal(size=(10, 10)))[0][: x.shape[1]], z


@pytest.mark.parametrize(("ratio", "e"), [(10, 0.2), (20, 0.1)])
def test_a_small_factor_of_a_strip_that_is_nearly_isometric_is_not_lost(ratio, e):
    x, z = strip(ratio=ratio, e=e)
    method = HessianICA(latent_dim=2).fit(x)
    assert method.straightened_ and method.recovered_
    assert mcc(z, method.transform(x)) > 0.97
    linear = method.embedding_.numpy()
    fitted = np.column_stack([linear, np.ones(len(x))])
    lost = z[:, 1] - fitted @ np.linalg.lstsq(fitted, z[:, 1], rcond=None)[0]
    assert lost.var() > 0.2 * z[:, 1].var()  # no linear map of the embedding has it
    assert any("They were straightened" in text for text in method.diagnosis_)


def test_three_factors_of_a_strip_that_is_nearly_isometric():
    x, z = strip(n=1_000, ratio=8, e=0.2, third=0.5)
    method = HessianICA(latent_dim=3).fit(x)
    assert method.straightened_ and mcc(z, method.codes_) > 0.95


def test_a_code_that_bends_along_two_others_is_straightened():
    """A flat solid whose third coordinate is a factor plus a function of the other two, as for sprites of any size."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (900, 3))
    bent = z * [2, 2, 0.5]
    bent[:, 2] += 0.8 * (z[:, 0] ** 2 + z[:, 1] ** 2)
    x = bent @ np.linalg.qr(rng.normal(size=(8, 8)))[0][:3]
    method = HessianICA(latent_dim=3).fit(x)
    assert method.straightened_ and method.recovered_
    assert mcc(z, method.transform(x)) > 0.97
    linear = np.column_stack([bent, np.ones(900)])
    explained = linear @ np.linalg.lstsq(linear, z[:, 2], rcond=None)[0]
    assert explained.var() < 0.6 * z[:, 2].var()  # no linear map of the solid has it


def test_what_others_explain_of_a_code_is_subtracted():
    z = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    codes = z.copy()
    codes[:, 1] = z[:, 1] + 2 * z[:, 0] ** 2 - z[:, 2] ** 2
    straight = subtract_explained(codes)
    assert mcc(z, straight) > 0.99 > mcc(z, codes) + 0.05
    np.testing.assert_allclose(straight[:, 0], (z[:, 0] - z[:, 0].mean()) / z[:, 0].std())


def test_independent_codes_are_left_alone_by_the_subtraction():
    z = np.random.default_rng(0).uniform(size=(300, 3))
    np.testing.assert_allclose(subtract_explained(z), (z - z.mean(0)) / z.std(0))


def test_codes_that_are_independent_stay_a_linear_map_of_the_embedding():
    x, z = strip(e=0.0)
    method = HessianICA(latent_dim=2).fit(x)
    assert not method.straightened_ and mcc(z, method.codes_) > 0.999
    y = np.column_stack([method.embedding_.numpy(), np.ones(len(x))])
    rest = method.codes_.numpy() - y @ np.linalg.lstsq(y, method.codes_.numpy(), rcond=None)[0]
    assert np.abs(rest).max() < 1e-8


def test_dependent_factors_are_not_claimed_to_be_recovered():
    """The second factor has a range that the first one sets, which no straightening of a triangle undoes."""
    rng = np.random.default_rng(0)
    u = rng.uniform(size=700)
    z = np.column_stack([5 * u, u * rng.uniform(size=700)])
    method = HessianICA(latent_dim=2).fit(np.pad(z, ((0, 0), (0, 3))))
    assert not method.recovered_
    verdict = "the data are not isometric to independent factors. The codes are coordinates of the surface"
    assert any("Codes 1 and 2 are dependent (distance correlation 0.3" in t and verdict in t for t in method.diagnosis_)
    assert method.diagnosis_[-1].startswith("Do not take these codes for the factors")


def test_too_few_points_are_refused_with_the_number_that_is_needed():
    x, _ = strip(n=49)
    with pytest.raises(InputError, match="n_samples=49 is too few to find factors: at least 50 different"):
        HessianICA().fit(x)
    with pytest.raises(InputError, match="n_samples=5 is too few"):
        HessianICA().fit(np.repeat(x[:5], 20, 0))  # repeats count once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not HessianICA(latent_dim=2).fit(x).recovered_  # not assessed


@pytest.fixture(scope="module")
def plane():
    """A square, and steps along it."""
    z = np.random.default_rng(0).uniform(size=(800, 2))
    import torch

    cloud = build_cloud(torch.from_numpy(z), np.random.default_rng(0), n_neighbors=(12, 12))
    return z, tangent_steps(cloud, 12, 2)


def test_steps_along_a_plane_have_the_lengths_of_its_distances(plane):
    z, steps = plane
    distances = np.linalg.norm(z[steps.members] - z[:, None], axis=2)
    assert np.allclose(np.linalg.norm(steps.tangent, axis=2), distances, atol=1e-5)


def test_gradients_of_a_linear_function_have_its_slope(plane):
    z, steps = plane
    assert np.allclose(np.linalg.norm(gradients(3 * z[:, 0] - 4 * z[:, 1], steps), axis=1), 5, atol=1e-4)


def test_unit_speed_undoes_a_function_of_a_coordinate(plane):
    z, steps = plane
    t = to_unit_speed(np.exp(2 * z[:, 0]), steps)
    assert np.abs(t - (z[:, 0] - z[:, 0].mean())).max() < 0.02
    assert isinstance(steps, Steps)


@pytest.mark.parametrize("turns", [1, 3])
def test_components_given_a_coordinate_follow_a_direction_that_turns(turns):
    """The direction of the second factor turns by so many times 180 degrees along the first."""
    rng = np.random.default_rng(0)
    t, v = rng.uniform(size=(2, 1_000))
    turn = np.stack([np.cos(turns * np.pi * t), np.sin(turns * np.pi * t)], 1)
    y = np.column_stack([v[:, None] * turn, 5 * t**2, 3 * np.sin(6 * t)])
    code = conditional_components(y, t, 1)[:, 0]
    assert abs(np.corrcoef(code, v)[0, 1]) > 0.99


def test_standardized_columns_have_mean_zero_and_one_scale_given_t():
    rng = np.random.default_rng(0)
    t = rng.uniform(size=2_000)
    f = standardize_given((t**2 + (1 + 3 * t) * rng.normal(size=2_000))[:, None], t)[:, 0]
    for part in np.array_split(f[np.argsort(t)], 5):
        assert abs(part.mean()) < 0.1 and abs(part.std() - 1) < 0.12


# Formulas -------------------------------------------------------------------------------------------------------------


def test_the_place_of_a_coordinate_is_the_mean_of_rank_and_value():
    np.testing.assert_allclose(place(np.array([3.0, 1, 11, 1])), [0.5 * 0.625 + 0.1, 0.125, 0.5 * 0.875 + 0.5, 0.125])


@pytest.mark.parametrize(
    ("n", "m", "degree"), [(249, 1, 3), (250, 1, 4), (199, 1, 2), (749, 2, 3), (750, 2, 4), (30, 3, 1)]
)
def test_polynomials_have_the_highest_degree_that_points_allow(n, m, degree):
    z = np.random.default_rng(0).uniform(-3, 2, (n, m))
    for power in range(1, 6):
        rest = z[:, 0] ** power - polynomial_regression(z[:, 0] ** power, z)
        assert (np.abs(rest).max() < 1e-8 * 3**power) == (power <= degree)
    np.testing.assert_allclose(polynomial_regression(np.full(n, 7.0), z), 7)


def test_cubic_splines_of_a_coordinate_reproduce_cubic_functions_of_its_place():
    t = np.random.default_rng(0).permutation(np.linspace(0, 5, 60))
    f = np.stack([place(t) ** 3, 1 - place(t), np.sign(t - 2.5)], 1)
    fitted = conditional_mean(f, t, 6)
    np.testing.assert_allclose(fitted[:, :2], f[:, :2], atol=1e-9)
    assert 0.1 < (fitted[:, 2] - f[:, 2]).std() < 0.6 and fitted[:, 2].std() < 1
    assert (conditional_mean(f, t, 30)[:, 2] - f[:, 2]).std() < 0.15, "more splines follow more"


def test_the_code_that_others_explain_best_comes_first():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (3_000, 3))
    z[:, 2] = z[:, 0] ** 2 + 0.1 * rng.normal(size=3_000)
    z = (z - z.mean(0)) / z.std(0)
    shares = explained_shares(z)
    assert shares[2] > 0.85 and shares[1] < 0.05 and shares[0] < 0.1
    straight = standardize_code_given_others(z, 2)
    np.testing.assert_array_equal(straight[:, :2], z[:, :2])
    assert abs(straight[:, 2].mean()) < 1e-12 and straight[:, 2].std() == pytest.approx(1)
    assert explained_shares(straight)[2] < 0.01 and abs(np.corrcoef(straight[:, 2], z[:, 0] ** 2)[0, 1]) < 0.02
    np.testing.assert_allclose(subtract_explained(z)[:, 2], straight[:, 2], atol=1e-9)
    left = np.abs(straight[:, 2])
    sides = [left[np.abs(z[:, 0]) < 0.5].mean(), left[np.abs(z[:, 0]) > 1.2].mean()]
    assert abs(sides[0] - sides[1]) < 0.1, "one scale whatever the others are"


def never():
    raise AssertionError("eigenvectors are not needed")


def test_few_points_single_codes_and_independent_ones_are_not_straightened():
    none: Any = None
    bent = np.linspace(-1, 1, 200)[:, None] ** [1, 2]
    assert straighten_dependent(none, 9, bent[:199], never, 0) is None
    assert straighten_dependent(none, 9, bent[:, :1], never, 0) is None
    assert straighten_dependent(none, 9, np.random.default_rng(0).uniform(size=(400, 2)), never, 0) is None
    with pytest.raises(AssertionError, match="not needed"):
        straighten_dependent(none, 9, bent, never, 0)


@pytest.mark.parametrize(("gain", "is_taken"), [(0.09, True), (0.07, False)])
def test_straightened_codes_are_taken_for_a_gain_in_isometry_minus_dependence(gain, is_taken, monkeypatch):
    none: Any = None
    codes, other = np.zeros((200, 2)), np.ones((200, 2))
    monkeypatch.setattr(straightening, "largest_dependence", lambda z: 0.1 if z is other else 0.5)
    monkeypatch.setattr(straightening, "straighten", lambda *args: other)
    isometries = {id(codes): 0.9, id(other): 0.5 + gain}
    monkeypatch.setattr(straightening, "of_points", lambda cloud, z: isometries[id(z)])
    found = straighten_dependent(none, 9, codes, lambda: (np.zeros(3), np.zeros((200, 3))), 0)
    assert (found is other) == is_taken


@pytest.mark.parametrize(("dependence", "is_tried"), [(0.1, True), (0.099, False)])
def test_codes_are_straightened_from_a_dependence_of_a_tenth_on(dependence, is_tried, monkeypatch):
    none: Any = None
    monkeypatch.setattr(straightening, "largest_dependence", lambda codes: dependence)
    if is_tried:
        with pytest.raises(AssertionError, match="not needed"):
            straighten_dependent(none, 9, np.zeros((200, 2)), never, 0)
    else:
        assert straighten_dependent(none, 9, np.zeros((200, 2)), never, 0) is None
