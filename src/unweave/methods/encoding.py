"""Fitted methods: encode arrays of observations, and describe what was learned."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from unweave.data.core import as_float, split_rows
from unweave.utils.errors import InputError, plural
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


def describe_fitted(method: Method) -> str:
    """Return what a fitted method has learned, as a comment behind its settings; '' before `fit`."""
    try:
        check_is_fitted(method)
    except NotFittedError:
        return ""
    latent_dim: Any = vars(method).get("latent_dim_")  # a word while a method still chooses it
    codes = plural(latent_dim, "code") if isinstance(latent_dim, int) else "codes"
    text = f"  # fitted: shape {vars(method).get('shape_')} -> {codes}"
    history = method.history
    if not history.empty:
        last = history.iloc[-1]
        text += f", {plural(int(last['step']), 'step')}, loss {last['loss']:.4g}"
    return text
