"""Observations as users pass them to methods: conversion to arrays, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data
from torch import Tensor

from unweave.utils.errors import InputError
from unweave.utils.validation import as_array, check_finite

if TYPE_CHECKING:
    from unweave.methods.base import Method


def validate_observations(method: Method, X: Any, *, reset: bool) -> np.ndarray:
    """Convert to an array of finite floats, or of bytes for images; `reset` stores the names of features."""
    if isinstance(X, Tensor):
        X = as_array(X, "Input X")
    x = validate_data(
        method, X, reset=reset, dtype="numeric", allow_nd=True, ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1, accept_sparse=False,
    )  # fmt: skip
    if x.dtype == np.uint8 and x.ndim > 2:
        return np.ascontiguousarray(x)  # a quarter of the memory of floats
    x = as_array(x, "Input X")
    x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    check_finite(x, getattr(method, "feature_names_in_", None))
    return x


def validate_new_observations(method: Method, X: Any) -> np.ndarray:
    """Convert like `validate_observations`; raise an error for another shape than the fitted method learned from."""
    x = validate_observations(method, X, reset=False)
    if x.shape[1:] != method.shape_:
        text = f"{type(method).__name__} learned from observations of shape {method.shape_}"
        raise InputError(f"{text}: expected these, got {x.shape[1:]}")
    return x
