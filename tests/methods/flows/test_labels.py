"""Soft labels: recognized, and used to estimate classes."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers import FLOW_SETTINGS, blobs
from unweave.data.conversion import as_data
from unweave.methods import GIN
from unweave.methods.flows.families import FAMILIES
from unweave.methods.flows.labels import find_classes, is_soft, regression_weights, to_probabilities
from unweave.utils.errors import InputError


def test_class_statistics_are_estimated_from_mixing_probabilities():
    rng = np.random.default_rng(0)
    r = rng.dirichlet([0.5, 0.5], 20_000)
    means, deviations = np.array([[-3.0, 1], [3, 0]]), np.array([[1.0, 0.5], [0.5, 2]])
    u = (rng.random(20_000) > r[:, 0]).astype(int)  # an observation is of one class, with its probability
    y = torch.from_numpy(means[u] + deviations[u] * rng.standard_normal((20_000, 2)))
    p = regression_weights(torch.from_numpy(r))
    found = FAMILIES["normal"].fit(y, p)
    torch.testing.assert_close(found.first / found.second, torch.from_numpy(means), atol=0.1, rtol=0)
    torch.testing.assert_close(found.second.rsqrt(), torch.from_numpy(deviations), atol=0.15, rtol=0)
    mixed = FAMILIES["normal"].mix(found, torch.from_numpy(r))
    middle = np.abs(r[:, 0] - 0.5) < 0.1
    assert float((mixed.first / mixed.second)[middle, 0].mean()) == pytest.approx(float(y[middle, 0].mean()), abs=0.2)
    assert float(mixed.second.rsqrt()[middle, 0].mean()) == pytest.approx(float(y[middle, 0].std()), abs=0.2)


def test_soft_labels_are_recognized():
    assert is_soft(np.full((4, 2), 0.5)) and is_soft([[0.2, 0.8], [1.0, 0.0]])
    assert is_soft(np.eye(3, dtype=int)) and not is_soft(np.full((4, 2), 0.6)) and not is_soft(np.arange(4.0))
    assert is_soft([[0.5, 0.51]]) and not is_soft([[0.5, 0.53]]) and not is_soft([[0.5, 0.47]]), "rounded probabilities"
    assert not is_soft([[-0.2, 1.2]]) and not is_soft([[1.0], [1.0]]) and not is_soft(np.full((2, 2, 2), 0.5))
    assert not is_soft([["0.5", "0.5"]]) and not is_soft([[np.nan, 1.0]]) and not is_soft([[np.inf, 0.0]])
    assert is_soft(pd.DataFrame({"a": [0.2], "b": [0.8]})) and is_soft([[True, False]])
    with warnings.catch_warnings(), pytest.raises(InputError, match="real-valued"):
        GIN(**FLOW_SETTINGS).fit(blobs(60)[0], np.random.default_rng(0).random(60))


def test_only_real_columns_that_sum_to_one_are_probabilities():
    x, u = blobs(60)
    p = np.random.default_rng(0).dirichlet([1.0, 2.0], 60)
    for y, names, column, levels in (
        (p, ["y0", "y1"], None, []),
        (
            np.column_stack([u % 2, 1 - u % 2]),
            ["0", "1"],
            0,
            [0, 1],
        ),  # two factors
        (np.column_stack([0.0 + (u == 0), p[:, 0], 1 - p[:, 0] - (u == 0)]), ["0", "1"], 0, [0, 1]),
    ):
        data = as_data(x, y)
        found = find_classes(data, data.labels(data.points_or_sample(60, torch.Generator(), limit=60)), "")
        assert (found.column, found.levels) == (column, levels) and len(found.names) == len(names)
    data = as_data(x, p)
    with pytest.raises(InputError, match="labels that are probabilities are all columns together"):
        find_classes(data, data.labels(data.points_or_sample(60, torch.Generator(), limit=60)), data.factors[0].name)


def test_labels_of_any_form_become_probabilities():
    names, eye = ["a", "b"], torch.eye(2)
    for y, expected in (("b", eye[[1, 1, 1]]), (["b", "a", "a"], eye[[1, 0, 0]]), ([0.25, 0.75], [[0.25, 0.75]] * 3),
                        ([[0.5, 0.51]], [[0.5 / 1.01, 0.51 / 1.01]] * 3)):  # fmt: skip
        torch.testing.assert_close(to_probabilities(y, names, 3), torch.as_tensor(expected))
    for y, message in ((["a", "b"], "2 labels for 3 observations"), ("c", r"no class 'c' \(there are: a, b\)"),
                       ([[0.2, 0.3, 0.5]], "rows of 3 probabilities for 2 classes")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            to_probabilities(y, names, 3)


def test_weights_of_one_hot_labels_are_means_and_sum_to_one():
    r = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 1, 1, 2]]
    torch.testing.assert_close(regression_weights(r), r / r.sum(0), atol=1e-4, rtol=0)
    p = torch.from_numpy(np.random.default_rng(0).dirichlet([1, 1, 1], (2, 20)))  # a stack of two batches
    w = regression_weights(p)
    torch.testing.assert_close(w.sum(-2), torch.ones(2, 3, dtype=torch.float64))
    solved = torch.linalg.solve(p.mT @ p + 1e-4 * torch.eye(3, dtype=torch.float64), p.mT).mT
    torch.testing.assert_close(w, solved / solved.sum(-2, keepdim=True))
