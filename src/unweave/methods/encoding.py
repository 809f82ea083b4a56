"""Encode arrays of observations with a fitted method."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave.data.core import as_float, split_rows
from unweave.utils.errors import InputError
from unweave.utils.validation import check_finite

if TYPE_CHECKING:
    from unweave.methods.base import Method

MAX_ENCODED_ELEMENTS = 2**26  # numbers that are encoded at a time


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
