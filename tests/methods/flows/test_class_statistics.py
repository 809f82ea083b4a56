"""Statistics of outputs in every class, by hand."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from unweave.methods.flows import class_statistics
from unweave.methods.flows.class_statistics import (
    class_moments,
    coefficient_rank,
    fill_rare_classes,
    fit_classes,
    joint_log_prob,
    label_cross_entropy,
)
from unweave.methods.flows.families import FAMILIES
from unweave.methods.flows.family import Coefficients

NORMAL = FAMILIES["normal"]
RNG = np.random.default_rng(0)
U = np.repeat([0, 1, 2], [30, 20, 10])
Y = RNG.normal(size=(60, 2)) * (1 + U[:, None]) + U[:, None] * [3, -1]
R = torch.eye(3, dtype=torch.float64)[U]
MEANS = np.array([Y[k == U].mean(0) for k in range(3)])
DEVIATIONS = np.array([Y[k == U].std(0) for k in range(3)])


def test_coefficients_and_moments_are_those_of_each_class():
    c = fit_classes(NORMAL, torch.from_numpy(Y), R, soft=False)
    np.testing.assert_allclose(c.first / c.second, MEANS)
    np.testing.assert_allclose(c.second.rsqrt(), DEVIATIONS)
    for found, expected in zip(class_moments(torch.from_numpy(Y), R), (MEANS, DEVIATIONS), strict=True):
        np.testing.assert_allclose(found, expected)
    soft = fit_classes(NORMAL, torch.from_numpy(Y), R, soft=True)
    np.testing.assert_allclose(soft.first / soft.second, MEANS, atol=1e-3)


def test_densities_and_cross_entropy_are_those_of_a_mixture():
    c = fit_classes(NORMAL, torch.from_numpy(Y), R, soft=False)
    log_det, shares = RNG.normal(size=(60, 1)), np.array([0.5, 1 / 3, 1 / 6])
    outputs = torch.from_numpy(np.hstack([Y, log_det]))
    densities = np.stack([stats.norm(m, s).logpdf(Y).sum(1) for m, s in zip(MEANS, DEVIATIONS, strict=True)], 1)
    expected = densities + log_det + np.log(shares)
    np.testing.assert_allclose(joint_log_prob(NORMAL, c, torch.from_numpy(shares), outputs), expected)
    log_posterior = densities + np.log(shares)
    log_posterior -= special.logsumexp(log_posterior, axis=1, keepdims=True)
    entropy = -log_posterior[np.arange(60), U].mean()
    assert float(label_cross_entropy(NORMAL, torch.from_numpy(Y), c, R)) == pytest.approx(entropy)
    some = R * torch.from_numpy((np.arange(60) % 2 == 0) & (U < 2))[:, None]  # rows of zeros, and an absent class
    rows = np.flatnonzero(some.sum(1))
    share = np.bincount(U[rows], minlength=2)[:2] / len(rows)
    part = densities[rows, :2] + np.log(share)
    part -= special.logsumexp(part, axis=1, keepdims=True)
    expected = -part[np.arange(len(rows)), U[rows]].mean()
    assert float(label_cross_entropy(NORMAL, torch.from_numpy(Y), c, some)) == pytest.approx(expected)


def test_rare_classes_are_filled_with_all_of_their_points(monkeypatch):
    monkeypatch.setattr(class_statistics, "MIN_CLASS_SAMPLES", 8)
    every = torch.arange(60)[:, None]
    rows = torch.from_numpy(np.r_[0:20, 30:34, 50])  # 20 of the first class, 4 of the second, one of the third
    points, r = fill_rare_classes(every[rows], R[rows], every, R)
    assert r.sum(0).tolist() == [20, 8, 8] and len(points) == 36
    assert torch.equal(R[points[:, 0]], r) and len(points.unique()) == 36
    enough = torch.from_numpy(np.r_[1:9, 31:39, 51:59])
    points, r = fill_rare_classes(every[enough], R[enough], every, R)
    assert torch.equal(points, every[enough]) and torch.equal(r, R[enough]), "eight are enough"


def test_the_rank_counts_independent_ways_of_coefficients():
    r = torch.from_numpy(np.random.default_rng(0).dirichlet([1, 1, 1], 50))
    same = torch.ones(3, 2, dtype=torch.float64)
    means = torch.tensor([[0.0, 0], [1, 2], [5, 1]], dtype=torch.float64)
    assert coefficient_rank(NORMAL, Coefficients(means, same), r) == 4, "means, and variances of mixtures"
    one_way = torch.tensor([[0.0, 0], [1, 1], [0, 0]], dtype=torch.float64)
    assert coefficient_rank(NORMAL, Coefficients(one_way, same), r) == 2, "both variables vary together"
    assert coefficient_rank(NORMAL, Coefficients(means, same), r[:2]) == 1
