"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the linear algebra of numpy and scipy use one thread; that of torch keeps its own.

    Their threads wait actively, and so take the cores from each other and from those of torch: with two cores, a fit
    to a few thousand points then takes much longer. It serves as a decorator, too.
    """
    with _blas_libraries().limit(limits=1):
        yield


@cache
def _blas_libraries() -> ThreadpoolController:
    """Return the libraries of linear algebra that are loaded: numpy's and scipy's, for torch has its own built in."""
    return ThreadpoolController().select(user_api="blas")
