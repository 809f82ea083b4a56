"""Observations on their way to a fitted method and back: named columns, scaling, encoding, decoding."""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor

from unweave.data.conversion import EncodedFactors, column_names, encode_classes, make_table, read_on_demand
from unweave.data.core import FactorData, as_float, split_rows
from unweave.data.dataset import Dataset
from unweave.utils.errors import InputError, plural
from unweave.utils.row_sources import is_row_source
from unweave.utils.validation import as_array, check_fields, check_finite, validate_observations

if TYPE_CHECKING:
    from unweave.data.scaling import ScaleMode, Scaling
    from unweave.methods.base import Method

MAX_OBSERVATIONS = 10_000  # sampled if data without an end are transformed
MAX_ENCODED_ELEMENTS = 2**26  # numbers that are encoded at a time
MAX_NAMED_COLUMNS = 5  # in an error about columns
SCALING_ATTRIBUTES = ("column_scaling_", "column_shift_", "column_scale_")


# Scaling of columns ---------------------------------------------------------------------------------------------------


def learn_scaling(method: Method, data: FactorData) -> FactorData:
    """Return the data with scaled columns, and store their names and statistics in the method.

    Learned attributes: `feature_names_in_`, the names of the columns, if they have some; `column_scaling_`, 'standard'
    or 'robust', with `column_shift_` and `column_scale_`, (columns,), if the columns are scaled. Data that are scaled
    already are returned as they are.
    """
    if data.scale != "none":
        from unweave.data.scaling import scale_data

        data = scale_data(data)
    for name in ("feature_names_in_", *SCALING_ATTRIBUTES):
        method.__dict__.pop(name, None)
    if data.feature_names:
        method.feature_names_in_ = np.array(data.feature_names, dtype=object)
    if data.scaling is not None:
        method.column_scaling_ = data.scaling.mode
        method.column_shift_, method.column_scale_ = data.scaling.shift, data.scaling.scale
    return data


def learned_scaling(method: Method) -> Scaling | None:
    """Return the scaling that a fitted method has learned; None if it takes observations as they are."""
    if not hasattr(method, "column_scaling_"):  # so too in models of earlier versions
        return None
    from unweave.data.scaling import Scaling

    return Scaling(method.column_scaling_, method.column_shift_, method.column_scale_)


def to_scaled(method: Method, x: Tensor) -> Tensor:
    """Return observations (n, *shape) as `encode` takes them: with scaled columns, if the method has learned to."""
    scaling = learned_scaling(method)
    return x if scaling is None else scaling.apply(x)


def to_units(method: Method, x: Tensor) -> Tensor:
    """Return observations (n, *shape) as `decode` gives them in the units of the data."""
    scaling = learned_scaling(method)
    return x if scaling is None else scaling.invert(x.reshape(len(x), -1))


def log_volume(method: Method) -> float:
    """Return what a log-density of scaled observations exceeds that in the units of the data by, in nats."""
    scaling = learned_scaling(method)
    return 0.0 if scaling is None else scaling.log_volume()


def describe_scaling(method: Method) -> list[str]:
    """Return a sentence about the scaling of the columns, if they were scaled."""
    scaling = learned_scaling(method)
    return [] if scaling is None else [scaling.describe()]


# Encoding and decoding ------------------------------------------------------------------------------------------------


def column_order(method: Method, data: FactorData) -> list[int] | None:
    """Return the places of the learned columns in the data; None if they are in the same order, or have no names."""
    names = [str(name) for name in getattr(method, "feature_names_in_", ())]
    if not names or not data.feature_names or names == list(data.feature_names):
        return None
    missing, extra = set(names) - set(data.feature_names), set(data.feature_names) - set(names)
    if missing or extra:
        kinds = {"missing": missing, "unknown": extra}
        text = "; ".join(f"{kind}: {_name_columns(columns)}" for kind, columns in kinds.items() if columns)
        raise InputError(f"{type(method).__name__} learned from other columns ({text}): pass the same ones")
    places = {name: i for i, name in enumerate(data.feature_names)}
    return [places[name] for name in names]


def _name_columns(names: set[str]) -> str:
    """Return column names as text, at most five."""
    text = ", ".join(map(repr, sorted(names)[:MAX_NAMED_COLUMNS]))
    return text if len(names) <= MAX_NAMED_COLUMNS else f"{text} and {len(names) - MAX_NAMED_COLUMNS} more"


def convert_observations(method: Method, X: Any, y: Any) -> FactorData:
    """Return the arguments of `fit` as data."""
    labels: EncodedFactors | None = () if not method.needs_y() else None
    if labels is None and y is not None:
        labels = encode_classes(method.as_labels(y))
    if isinstance(X, Dataset):
        X = X.load()
    elif not isinstance(X, FactorData) and is_row_source(X):
        X = read_on_demand(X, labels)
    if isinstance(X, FactorData):
        return X
    check_fields(method)
    if y is None and method.needs_y():
        name = type(method).__name__
        raise InputError(f"{name} requires y to be passed, but the target y is None: it learns from {method.needs}")
    scale: ScaleMode = "standard" if column_names(X) else "none"
    return make_table(validate_observations(method, X), labels or (), column_names(X), scale)


def encode_observations(method: Method, X: Any) -> np.ndarray:
    """Return the codes (n, latent_dim) of an array, of a dataset, or of anything that `as_data` takes."""
    if isinstance(X, Dataset):
        X = X.load()
    elif not isinstance(X, FactorData) and is_row_source(X):
        X = read_on_demand(X, ())
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
    order = column_order(method, data)
    rendered = (data.render(part) if order is None else data.render(part)[:, order] for part in parts)
    return np.concatenate([encode_array(method, validate_observations(method, x, method.shape_)) for x in rendered])


def encode_array(method: Method, x: np.ndarray) -> np.ndarray:
    """Return the codes (n, latent_dim) of validated observations; check the shape and the values of the codes."""
    name = type(method).__name__
    with torch.no_grad():  # in parts, to convert few bytes to floats at a time
        parts = split_rows(torch.from_numpy(x), MAX_ENCODED_ELEMENTS // max(1, prod(method.shape_)))
        z = torch.cat([method.encode(to_scaled(method, as_float(part))) for part in parts])
    if tuple(z.shape) != (len(x), method.latent_dim_):
        raise InputError(
            f"{name}.encode gave codes of shape {tuple(z.shape)}, expected ({len(x)}, {method.latent_dim_})"
        )
    codes = z.numpy(force=True).astype(np.float32 if x.dtype == np.uint8 else x.dtype, copy=False)
    check_finite(codes, what=f"the output of {name}.encode")
    return codes


def decode_array(method: Method, codes: Any) -> np.ndarray:
    """Return the observations (n, *shape) of codes (n, latent_dim), in the units of the data."""
    z = as_array(codes, "Input Z")
    z = z if z.dtype.kind == "f" else z.astype(np.float64)
    check_finite(z, what="Input Z")
    if z.ndim != 2 or z.shape[1] != method.latent_dim_:
        raise InputError(f"codes of shape {z.shape}: expected (n, {method.latent_dim_})")
    with torch.no_grad():
        return to_units(method, method.decode(torch.from_numpy(z))).numpy(force=True).reshape(-1, *method.shape_)


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
