"""Geometry of a sample of points: intrinsic dimension with an interval, connected parts, noise, Gaussianity."""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from unweave.methods.linear import excess_kurtosis
from unweave.methods.spectral.dimension import gap_dimension
from unweave.methods.spectral.neighbors import find_neighbors, label_components
from unweave.utils.errors import InputError

DIMENSION_NEIGHBORS = (8, 16)  # of the two estimates, whose intervals are joined
REFERENCE_DIMENSIONS = (1, 2, 3, 4, 6, 8, 12, 16, 20)  # of the cubes that calibrate the estimator
MAX_DIMENSION = REFERENCE_DIMENSIONS[-1]  # beyond it, so few points do not tell dimensions from each other
MAX_BLOCK_SIZE = 16  # neighboring points that are resampled together: they share neighbors
MIN_BLOCKS = 20
N_BOOTSTRAP = 200
PART_NEIGHBORS = 15  # of the graph whose parts are counted
MIN_PART = 5  # points of a part; smaller ones are outliers
MAX_GAP_DIMENSION = 8
TANGENT_NEIGHBORS = 20
MIN_GAUSSIAN_ROWS = 200  # below which the kurtosis of half of the rows says nothing
MAX_COMPONENTS = 10  # whose Gaussianity is tested
MAX_GAUSSIAN_ERRORS = 3.0  # standard errors of the kurtosis within which a component counts as Gaussian


class Dimension(NamedTuple):
    """Estimate of the intrinsic dimension with its 95 % interval."""

    estimate: float
    low: float
    high: float

    def text(self) -> str:
        """Return estimate and interval, e.g. "2.0 (95 % interval 1.9 to 2.2)"."""
        if self.low >= 0.95 * MAX_DIMENSION:
            return f"{MAX_DIMENSION} or more"
        high = f"{self.high:.1f}" if self.high < MAX_DIMENSION else f"{MAX_DIMENSION} or more"
        return f"{self.estimate:.1f} (95 % interval {self.low:.1f} to {high})"


class Parts(NamedTuple):
    """Connected parts of the neighbor graph."""

    number: int
    largest: float
    """Share of the points in the largest part."""
    outliers: int
    """Points in parts of fewer than five."""


class Gaussianity(NamedTuple):
    """Independent components tested for a Gaussian distribution."""

    components: int
    gaussian: int
    """Components whose excess kurtosis is within three standard errors of zero."""
    kurtosis: tuple[float, ...]
    errors: tuple[float, ...]


# Dimension ------------------------------------------------------------------------------------------------------------


def estimate_dimension(points: np.ndarray, neighbors: np.ndarray, rng: np.random.Generator) -> Dimension | None:
    """Estimate the dimension of points (n, D) with neighbors (n, k + 1) by the likelihood of neighbor distances.

    The estimator of Levina and Bickel (2004) is too small for few points and near edges. It is calibrated on as many
    uniform points in cubes. The interval joins those of two neighborhood sizes, each by a bootstrap over blocks of
    neighboring points. None for fewer than 20 points.
    """
    sizes = [k for k in DIMENSION_NEIGHBORS if k < min(len(points) / 3, neighbors.shape[1])]
    if len(points) < 20 or not sizes:
        return None
    blocks = neighboring_blocks(points)
    values = []
    for k in sizes:
        inverse = _inverse_estimates(points, neighbors[:, : k + 1])
        sums = np.array([inverse[block].sum() for block in blocks])
        counts = np.array([len(block) for block in blocks])
        picks = rng.integers(len(blocks), size=(N_BOOTSTRAP, len(blocks)))
        means = np.append(sums[picks].sum(1) / counts[picks].sum(1), inverse.mean())
        calibrated = calibrate(_dimension_of(means, k), len(points), k)
        values.append((calibrated[-1], *np.quantile(calibrated[:-1], [0.025, 0.975])))
    estimates, lows, highs = np.array(values).T
    return Dimension(float(estimates.mean()), float(lows.min()), float(highs.max()))


def neighboring_blocks(points: np.ndarray) -> list[np.ndarray]:
    """Return the rows in blocks of neighboring points: halves along the widest coordinate, halved again."""
    size = max(2, min(MAX_BLOCK_SIZE, len(points) // MIN_BLOCKS))
    blocks, finished = [np.arange(len(points))], []
    while blocks:
        rows = blocks.pop()
        if len(rows) < 2 * size:
            finished.append(rows)
            continue
        widest = np.argmax(np.ptp(points[rows], axis=0))
        order = rows[np.argsort(points[rows, widest], kind="stable")]
        blocks += [order[: len(rows) // 2], order[len(rows) // 2 :]]
    return finished


def _inverse_estimates(points: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return the mean logarithm of the ratio of the farthest to each nearer neighbor distance, (n,)."""
    distance = np.linalg.norm(points[neighbors[:, 1:]] - points[:, None], axis=2)
    distance = np.maximum(distance, 1e-12 * max(distance.max(), 1e-300))
    return np.asarray(np.log(distance[:, -1:] / distance[:, :-1]).mean(1))


def _dimension_of(inverse: np.ndarray, k: int) -> np.ndarray:
    return (k - 2) / ((k - 1) * np.maximum(inverse, 1e-12))


def calibrate(estimates: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return the dimensions of cubes for which n points give these estimates; at most `MAX_DIMENSION`."""
    return np.interp(estimates, cube_estimates(n, k), REFERENCE_DIMENSIONS)


@cache
def cube_estimates(n: int, k: int) -> np.ndarray:
    """Return the estimates for n uniform points in cubes of the reference dimensions, ascending."""
    rng = np.random.default_rng(0)
    estimates = []
    for d in REFERENCE_DIMENSIONS:
        points = rng.uniform(size=(n, d))
        inverse = _inverse_estimates(points, find_neighbors(points, k))
        estimates.append(float(_dimension_of(inverse.mean(), k)))
    return np.maximum.accumulate(estimates)


# Shape of the cloud ---------------------------------------------------------------------------------------------------


def count_parts(neighbors: np.ndarray) -> Parts:
    """Count the connected parts of the neighbor graph, (n, k + 1); parts of fewer than five points are outliers."""
    sizes = np.bincount(label_components(neighbors[:, : PART_NEIGHBORS + 1]))
    large = sizes[sizes >= MIN_PART]
    return Parts(max(1, len(large)), float(sizes.max() / sizes.sum()), int(sizes[sizes < MIN_PART].sum()))


def local_noise(points: np.ndarray, neighbors: np.ndarray) -> tuple[int, float]:
    """Return the dimension of tangent spaces by the gap in their spectra, and the variance outside of them.

    The share includes curvature. It is the median over points.
    """
    cloud, rows = torch.from_numpy(points), torch.from_numpy(neighbors[:, : TANGENT_NEIGHBORS + 1])
    d = gap_dimension(cloud, rows.numpy(), min(MAX_GAP_DIMENSION, points.shape[1]))
    spectra = torch.linalg.svdvals(cloud[rows] - cloud[rows].mean(1, keepdim=True)) ** 2
    outside = spectra[:, d:].sum(1) / spectra.sum(1).clamp(min=1e-300)
    return d, float(outside.median())


def has_loop(points: np.ndarray, neighbors: np.ndarray) -> bool | None:
    """Return whether the points go around a closed loop; None where loops cannot be detected."""
    try:
        loops = importlib.import_module("unweave.methods.spectral.loops")
    except ImportError:
        return None
    return loops.find_loop(points, neighbors) is not None


# Distribution ---------------------------------------------------------------------------------------------------------


def measure_gaussianity(rows: np.ndarray, rank: int) -> Gaussianity | None:
    """Test the independent components of rows (n, d) for a Gaussian distribution; None for fewer than 200 rows.

    FastICA looks for large kurtosis, so it is fitted to one half of the rows and tested on the other.
    """
    d = min(rank, MAX_COMPONENTS)
    if len(rows) < MIN_GAUSSIAN_ROWS or d < 1:
        return None
    first, second = rows[::2], rows[1::2]
    ica = FastICA(d, fun="cube", whiten="unit-variance", max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica.fit(first)
    components = ica.transform(second)
    deviations = components.std(0)
    if not (deviations > 0).all():
        raise InputError("all rows of one half are equal: shuffle the rows, or look for constant columns")
    kurtosis, error = excess_kurtosis((components - components.mean(0)) / deviations)
    gaussian = int((np.abs(kurtosis) < MAX_GAUSSIAN_ERRORS * error).sum())
    return Gaussianity(d, gaussian, tuple(kurtosis.tolist()), tuple(error.tolist()))
