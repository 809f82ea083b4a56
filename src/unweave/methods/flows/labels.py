"""Labels of GIN: classes, or rows of class probabilities (soft labels).

With soft labels r, a normal latent variable has the moments of the mixture of classes with these weights. They are
linear in r, so a regression on r estimates them; the natural parameters of GIN, Eq. 1, are not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.data.supervision import label_column
from unweave.nn.functional import one_hot
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import as_classes

MAX_LABELS = 100_000  # labels that classes are looked for in, where the data are endless
RIDGE = 1e-4  # in units of one observation: keeps the regression solvable where a class has no weight
SUM_TOLERANCE = 0.02  # by which a row of probabilities may miss one, by rounding


def label_points(data: FactorData, rng: Generator) -> Tensor:
    """Return all points, or many of endless data, to find classes and their frequencies in."""
    return data.points_or_sample(MAX_LABELS, rng, limit=sys.maxsize)


class Classes(NamedTuple):
    """Classes of the labels."""

    names: list[str]
    column: int | None  # of the labels; None for soft labels, which are all columns together
    levels: list[int]  # values in this column, one for each class


def find_classes(data: FactorData, labels: Tensor, factor: str) -> Classes:
    """Return the classes in labels (n, factors) of the data, by the name of a factor; "" for the first discrete one."""
    if all(f.size is None for f in data.factors) and is_soft(labels.numpy(force=True)):
        if factor:
            raise InputError(f"label={factor!r}: labels that are probabilities are all columns together")
        return Classes([f.name for f in data.factors], None, [])
    column = label_column(data, factor or None)
    levels = torch.unique(labels[:, column].long()).tolist()
    values = data.factors[column].values
    return Classes([str(values[k] if values else k) for k in levels], column, levels)


def check_classes(names: Sequence[str], counts: Tensor, batch_size: int) -> None:
    """Raise an error unless every class has a deviation, from the number of observations of each, (classes,)."""
    if len(names) < 2:
        raise InputError(f"one class only ({names[0]!r}): GIN needs classes that differ")
    rare = [name for name, count in zip(names, counts.tolist(), strict=True) if count < 2]
    if rare:
        raise InputError(f"class {rare[0]!r} has fewer than two observations: it has no deviation; leave it out")
    if batch_size < 2 * len(names):
        text = f"batch_size={batch_size}: a batch needs two observations of each of {len(names)} classes"
        raise InputError(f"{text}, so at least {2 * len(names)}; take many more")


def check_label_loss(weight: float, dim: int, shape: Sequence[int], *, soft: bool) -> None:
    """Raise an error unless the labels' cross-entropy can be a part of the loss, for observations of a shape."""
    if weight < 0 or not 0 <= dim <= prod(shape):
        text = f"label_weight={weight}, label_dim={dim}"
        raise InputError(f"{text}: expected a weight of 0 or more, and 0 to {prod(shape)} outputs")
    if weight and soft:
        raise InputError(f"label_weight={weight}: the cross-entropy needs classes, and labels are probabilities")


def as_floats(y: Any) -> Any:
    """Return a DataFrame or array of probabilities in double precision."""
    return y.astype(float) if hasattr(y, "columns") else np.asarray(y, np.float64)


def is_soft(y: Any) -> bool:
    """Return whether labels are rows of class probabilities: (n, classes), nonnegative, with a sum of one."""
    array = np.asarray(y.to_numpy() if hasattr(y, "columns") else y)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(1), 1, atol=SUM_TOLERANCE))


def regression_weights(r: Tensor) -> Tensor:
    """Return the weights of observations in the statistics of each class, (..., n, classes).

    Weighted sums over n are a ridge regression on the class probabilities r. For one-hot r they are means.
    """
    gram = r.mT @ r + RIDGE * torch.eye(r.shape[-1], device=r.device, dtype=r.dtype)
    weights = torch.linalg.solve(gram.double(), r.mT.double()).mT.to(r)
    return weights / weights.sum(-2, keepdim=True)


def to_probabilities(y: Any, names: Sequence[str], n: int) -> Tensor:
    """Return labels of n observations as class probabilities, (n, classes), one-hot for classes.

    One label, or one row of probabilities, applies to all observations.
    """
    if np.asarray(y).ndim == 1 and len(np.asarray(y)) == len(names) and is_soft([y]):
        y = [y]
    if is_soft(y):
        r = torch.as_tensor(np.asarray(y, np.float32))
        if r.shape[1] != len(names):
            raise InputError(f"rows of {r.shape[1]} probabilities for {len(names)} classes")
        r = r / r.sum(1, keepdim=True)
    else:
        labels = [str(v) for v in as_classes(np.atleast_1d(np.asarray(y)).ravel()).tolist()]
        unknown = [v for v in labels if v not in names]
        if unknown:
            raise InputError(f"no class {unknown[0]!r} (there are: {', '.join(names)})")
        r = one_hot(torch.tensor([list(names).index(v) for v in labels]), len(names))
    if len(r) not in (1, n):
        raise InputError(f"{plural(len(r), 'label')} for {plural(n, 'observation')}")
    return r.expand(n, -1)
