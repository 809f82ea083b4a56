"""Threads of linear algebra."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from unweave.methods import HessianICA
from unweave.methods.spectral import base
from unweave.utils.threads import one_blas_thread


def blas_threads():
    """Return the numbers of threads of numpy's and scipy's linear algebra."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_outside():
    before, of_torch = blas_threads(), torch.get_num_threads()
    assert before == {2}
    with pytest.raises(KeyError), one_blas_thread():
        assert blas_threads() == {1} and torch.get_num_threads() == of_torch
        raise KeyError
    assert blas_threads() == before


def test_a_spectral_method_learns_with_one(monkeypatch):
    seen = []
    solve = base.smallest_eigenvectors
    monkeypatch.setattr(base, "smallest_eigenvectors", lambda *a, **k: seen.append(blas_threads()) or solve(*a, **k))
    HessianICA(latent_dim=2, n_neighbors=12).fit(np.random.default_rng(0).uniform(size=(200, 2)))
    assert seen and all(threads == {1} for threads in seen)
    assert blas_threads() == {2}
