"""Encode arrays of observations with a fitted method."""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator

from unweave.data.conversion import open_observations
from unweave.data.core import FactorData, as_float, split_rows
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError
from unweave.utils.validation import check_finite, is_row_source, validate_observations

if TYPE_CHECKING:
    from unweave.methods.base import Method

MAX_OBSERVATIONS = 10_000  # sampled if data without an end are transformed
MAX_ENCODED_ELEMENTS = 2**26  # numbers that are encoded at a time


def encode_observations(method: Method, X: Any) -> np.ndarray:
    """Return the codes (n, latent_dim) of an array, of a dataset, or of anything that `as_data` takes."""
    if isinstance(X, Dataset):
        X = X.load()
    elif not isinstance(X, FactorData) and is_row_source(X):
        X = open_observations(X)
    if isinstance(X, FactorData):
        return _encode_data(method, X)
    return encode_array(method, validate_observations(method, X, method.shape_))


def _encode_data(method: Method, data: FactorData) -> np.ndarray:
    """Return the codes of all observations in order, or of a sample of data without an end.

    A part is rendered at a time, so that data that are read on demand are never in memory as a whole.
    """
    rng = Generator().manual_seed(0)
    points = data.points_or_sample(MAX_OBSERVATIONS, rng, limit=sys.maxsize if data.reader else None)
    parts = split_rows(points, MAX_ENCODED_ELEMENTS // max(1, prod(data.shape))) or [points]
    arrays = (validate_observations(method, data.render(part), method.shape_) for part in parts)
    return np.concatenate([encode_array(method, x) for x in arrays])


def encode_array(method: Method, x: np.ndarray) -> np.ndarray:
    """Return the codes (n, latent_dim) of validated observations; check the shape and the values of the codes."""
    name = type(method).__name__
    with torch.no_grad():  # in parts, to convert few bytes to floats at a time
        parts = split_rows(torch.from_numpy(x), MAX_ENCODED_ELEMENTS // max(1, prod(method.shape_)))
        z = torch.cat([method.encode(as_float(part)) for part in parts])
    if tuple(z.shape) != (len(x), method.latent_dim_):
        raise InputError(
            f"{name}.encode gave codes of shape {tuple(z.shape)}, expected ({len(x)}, {method.latent_dim_})"
        )
    codes = z.numpy(force=True).astype(np.float32 if x.dtype == np.uint8 else x.dtype, copy=False)
    check_finite(codes, what=f"the output of {name}.encode")
    return codes
