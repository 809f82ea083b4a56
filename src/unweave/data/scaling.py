"""Scaling of the columns of tables, so that their units do not decide which factors are learned."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
import torch
from torch import Generator, Tensor

from unweave.data.containers import MAX_STORED_ELEMENTS, Table
from unweave.data.core import FactorData, Subset
from unweave.data.splits import Correlated
from unweave.utils.errors import InputError

Scale = Literal["auto", "none", "standard", "robust"]
"""How methods scale columns; 'auto' standardizes tables with named columns and nothing else."""
ScaleMode = Literal["none", "standard", "robust"]

NORMAL_IQR = 1.3489795003921634  # interquartile range of the standard normal distribution
ROUNDING = 4 * torch.finfo(torch.float64).eps  # of the mean: a deviation below it is rounding error
MAX_BLOCK_ELEMENTS = 2**24  # numbers in a block of columns
MAX_SAMPLE = 100_000  # rows whose statistics are computed where the data have no end, or do not fit into memory
MAX_DEVIATION_RATIO = 10  # of the columns of a table that is not scaled, from which a warning is given


@dataclass(frozen=True, eq=False)
class Scaling:
    """Shift and scale of each column: x -> (x - shift) / scale.

    Example:
        >>> scaling = Scaling.measure(torch.tensor([[1.0, 10.0], [3.0, 30.0]]), "standard")
        >>> scaling.apply(torch.tensor([[2.0, 40.0]]))
        tensor([[0., 2.]])
    """

    mode: ScaleMode
    """'standard' (mean and standard deviation) or 'robust' (median and interquartile range)."""
    shift: Tensor
    """Subtracted from each column, (columns,), in double precision."""
    scale: Tensor
    """Divides each column, (columns,), in double precision; 1 for a constant column."""

    @classmethod
    def measure(cls, x: Tensor, mode: ScaleMode) -> Self:
        """Return the statistics of rows x, (n, columns).

        The interquartile range is divided by 1.349, so that both modes agree on normal columns. Where it is 0, as in a
        column of mostly equal values, the standard deviation is used.
        """
        shifts, scales = zip(*(_measure_columns(block.double(), mode) for block in column_blocks(x)), strict=True)
        return cls(mode, torch.cat(shifts), torch.cat(scales))

    def apply(self, x: Tensor) -> Tensor:
        """Return scaled rows in the precision of x, (n, columns)."""
        return ((x - self.shift.to(x.device)).div_(self.scale.to(x.device))).to(x.dtype)

    def invert(self, x: Tensor) -> Tensor:
        """Return rows in the units of the data, (n, columns); inverse of `apply`."""
        return ((x * self.scale.to(x.device)).add_(self.shift.to(x.device))).to(x.dtype)

    def log_volume(self) -> float:
        """Return the sum of log(scale): a log-density of scaled rows minus it is one in the units of the data."""
        return float(self.scale.log().sum())

    def describe(self) -> str:
        """Return what was done, and how to keep the units, in one sentence."""
        what = {
            "standard": "standardized (mean 0, standard deviation 1)",
            "robust": "scaled robustly (median 0, interquartile range 1.349)",
        }[self.mode]
        return f"Columns were {what}; --data.scale none (in Python scale='none') keeps their units."


def column_blocks(x: Tensor) -> list[Tensor]:
    """Split rows x (n, columns) into blocks of columns that are small enough to be copied."""
    width = max(1, MAX_BLOCK_ELEMENTS // max(1, len(x)))
    return [x[:, start : start + width] for start in range(0, x.shape[1], width)]


def _measure_columns(x: Tensor, mode: ScaleMode) -> tuple[Tensor, Tensor]:
    """Return shift and scale of columns in double precision, (n, columns) -> (columns,), (columns,)."""
    shift = x.mean(0)
    deviation = x.std(0, correction=0)
    deviation = torch.where(deviation <= ROUNDING * shift.abs(), 0.0, deviation)
    if mode == "robust":
        low, shift, high = torch.from_numpy(np.quantile(x.numpy(force=True), (0.25, 0.5, 0.75), axis=0)).to(x)
        spread = (high - low) / NORMAL_IQR
        deviation = torch.where(spread <= ROUNDING * shift.abs(), deviation, spread)
    return shift, torch.where(deviation > 0, deviation, 1.0)


def scale_data(data: FactorData) -> FactorData:
    """Return the data with scaled columns, as `data.scale` says, and with the statistics as `scaling`.

    Data that need no scaling, and scaled data, are returned as they are. Statistics are those of all rows; of data
    that do not fit into memory, those of a random sample.
    """
    if data.scale == "none":
        return data
    check_scalable(data.shape, data.scale)
    if isinstance(data, Table):
        x = data.x
    else:
        limit = max(2, MAX_STORED_ELEMENTS // data.shape[0])
        x = data.render(data.points_or_sample(min(MAX_SAMPLE, limit), Generator().manual_seed(0), limit=limit))
    return _rescale(data, Scaling.measure(x, data.scale))


def resolve_scale(scale: Scale, *, is_table: bool) -> ScaleMode:
    """Return how to scale: 'auto' standardizes tables, whose columns have units of their own, and nothing else."""
    if scale not in get_args(Scale):
        raise InputError(f"scale={scale!r}: expected {', '.join(map(repr, get_args(Scale)))}")
    if scale == "auto":
        return "standard" if is_table else "none"
    return scale


def check_scalable(shape: tuple[int, ...], mode: ScaleMode) -> None:
    """Raise InputError for observations without columns, such as images."""
    if mode != "none" and len(shape) != 1:
        text = f"scale={mode!r} scales the columns of a table, and these observations have the shape {shape}"
        raise InputError(f"{text}: leave --data.scale out")


def _rescale(data: FactorData, scaling: Scaling) -> FactorData:
    """Return the same kind of data with scaled observations."""
    scaled = copy.copy(data)
    if isinstance(scaled, Table):
        scaled.x = scaling.apply(scaled.x)
    elif isinstance(scaled, Subset | Correlated):
        scaled.data = _rescale(scaled.data, scaling)
    else:
        scaled = ScaledData(data, scaling)
    scaled.scale, scaled.scaling = "none", scaling
    return scaled


class ScaledData(FactorData):
    """Any other data with scaled observations: everything but `render` is that of the data."""

    def __init__(self, data: FactorData, scaling: Scaling) -> None:
        self.data, self.factors, self.shape = data, data.factors, data.shape
        self.feature_names, self.row_names = data.feature_names, data.row_names
        self.shift, self.divisor = scaling.shift, scaling.scale  # attributes, so that `to` moves them to a device

    def sample(self, n: int, rng: Generator) -> Tensor:
        """Draw points of the data."""
        return self.data.sample(n, rng)

    def render(self, points: Tensor) -> Tensor:
        """Return scaled observations."""
        x = self.data.render(points)
        return ((x - self.shift) / self.divisor).to(x.dtype)

    def labels(self, points: Tensor) -> Tensor:
        """Return the factors in the data."""
        return self.data.labels(points)

    def locate(self, c: Tensor, rng: Generator, like: Tensor | None = None) -> Tensor:
        """Return points of the data."""
        return self.data.locate(c, rng, like)

    def all_points(self, limit: int) -> Tensor | None:
        """Return all points of the data, if there are at most `limit`."""
        return self.data.all_points(limit)

    def groups(self, points: Tensor) -> Tensor | None:
        """Return the groups in the data."""
        return self.data.groups(points)

    def levels(self, j: int) -> Tensor:
        """Return the values in the data."""
        return self.data.levels(j)


def warn_of_units(x: np.ndarray, names: Sequence[str]) -> None:
    """Warn if the deviations of columns (n, columns) that are not scaled differ by more than a factor of ten."""
    deviations = x.std(0, dtype=np.float64)
    small, large = int(np.where(deviations > 0, deviations, np.inf).argmin()), int(deviations.argmax())
    ratio = deviations[large] / deviations[small] if deviations[small] > 0 else 1.0
    if ratio > MAX_DEVIATION_RATIO:
        warnings.warn(
            f"the columns are not scaled: {names[large]!r} varies {ratio:,.0f} times as much as {names[small]!r} "
            f"(standard deviations {deviations[large]:.3g} and {deviations[small]:.3g}), so its unit decides what is "
            "learned. --data.scale standard (in Python scale='standard') gives all columns equal weight",
            stacklevel=3,
        )
