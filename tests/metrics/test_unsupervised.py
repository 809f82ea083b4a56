"""Total correlation and mutual information of codes."""

import numpy as np
import pytest

from unweave.metrics import (
    unsupervised,
)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_total_correlation_of_gaussians_has_a_closed_form(rho):
    z = np.random.default_rng(0).multivariate_normal([0, 0], [[1, rho], [rho, 1]], 40_000) * [5, 0.1]
    exact = -0.5 * np.log(1 - rho**2)
    found = unsupervised(None, z)
    assert found.total_correlation == pytest.approx(exact, abs=0.01)
    assert found.mutual_information == pytest.approx(exact, abs=0.06), "for two codes they are the same, but for bins"


def test_dependent_codes_are_infinite_and_constant_ones_are_ignored():
    z = np.random.default_rng(0).normal(size=(500, 1))
    assert unsupervised(None, np.hstack([z, -z])).total_correlation == np.inf
    both = np.random.default_rng(1).normal(size=(500, 2))
    assert unsupervised(None, np.column_stack([both, both.sum(1)])).total_correlation == np.inf
    assert unsupervised(None, np.hstack([z, np.ones_like(z)])) == (0, 0)
