"""Soft labels: recognized, and used to estimate classes."""

import warnings

import numpy as np
import pytest
import torch

from tests.helpers import FLOW_SETTINGS, blobs
from unweave.methods import GIN
from unweave.methods.flows.families import FAMILIES
from unweave.methods.flows.labels import is_soft, regression_weights
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
    with warnings.catch_warnings(), pytest.raises(InputError, match="real-valued"):
        GIN(**FLOW_SETTINGS).fit(blobs(60)[0], np.random.default_rng(0).random(60))
