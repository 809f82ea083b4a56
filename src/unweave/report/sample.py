"""The observations that a figure or a page shows: a random sample, with what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator

from unweave.data.conversion import as_data
from unweave.data.core import Factor, FactorData
from unweave.data.dataset import Dataset
from unweave.methods.base import Method
from unweave.methods.encoding import column_order
from unweave.utils.errors import InputError

MAX_OBSERVATIONS = 5_000
MAX_CODE_VALUES = 2**19  # of all observations: methods with hundreds of codes show fewer observations
MIN_OBSERVATIONS = 250
MAX_LISTED_POINTS = 2_000_000  # up to which every point of finite data is listed, so that none is drawn twice


class DrawnData(NamedTuple):
    """Observations that figures show, with what is known about them."""

    x: np.ndarray  # (n, *shape)
    truth: np.ndarray  # (n, k): factors
    factors: Sequence[Factor]
    row_names: Sequence[str] | None = None  # identifiers of the observations
    feature_names: Sequence[str] = ()  # names of the columns of a table

    @property
    def labels(self) -> np.ndarray | None:
        """The first discrete factor, (n,), or None."""
        return next((self.truth[:, j] for j, f in enumerate(self.factors) if f.size is not None), None)


def sample_data(method: Method, data: Any, seed: int = 0, limit: int = MAX_OBSERVATIONS) -> DrawnData:
    """Return at most `limit` observations in random order, with the columns that the method has learned from."""
    data = data.load() if isinstance(data, Dataset) else data
    if not isinstance(data, FactorData):
        if hasattr(data, "__len__") and not len(data):
            raise InputError("the data have no rows: expected observations that the method can encode")
        data = as_data(data)
    if tuple(data.shape) != method.shape_:
        raise InputError(f"{method.name} was trained on shape {method.shape_}, but the data have shape {data.shape}")
    limit = min(limit, max(MIN_OBSERVATIONS, MAX_CODE_VALUES // method.latent_dim_))
    rng = Generator().manual_seed(seed)
    points = data.all_points(MAX_LISTED_POINTS)
    points = data.sample(limit, rng) if points is None else points
    rows = torch.randperm(len(points), generator=rng)[:limit]
    names = data.row_names or ()
    row_names = [str(names[i]) for i in rows.tolist()] if len(names) == len(points) else None
    x, c = data.render(points[rows]).float().numpy(force=True), data.labels(points[rows]).numpy(force=True)
    order, columns = column_order(method, data), tuple(map(str, data.feature_names))
    if order is not None:
        x, columns = x[:, order], tuple(columns[i] for i in order)
    return DrawnData(x, c, data.factors, row_names, columns)
