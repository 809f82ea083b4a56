"""Geometry of a sample of points: intrinsic dimension with an interval, connected parts, noise, Gaussianity."""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import digamma, polygamma
from scipy.stats import kurtosis, kurtosistest
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from unweave.methods.spectral.dimension import gap_dimension
from unweave.methods.spectral.neighbors import find_neighbors, label_components
from unweave.utils.errors import InputError

DIMENSION_NEIGHBORS = ((2, 8), (4, 16))  # nearer and farther neighbor of the estimates, whose intervals are joined
MIN_POINTS = 20  # for an estimate of the dimension
MIN_POINTS_PER_NEIGHBOR = 12  # of the farther neighbor: with fewer points it is no longer near
REFERENCE_DIMENSIONS = (1, 2, 3, 4, 6, 8, 12, 16, 20)  # of the cubes that calibrate the estimator
MAX_DIMENSION = REFERENCE_DIMENSIONS[-1]  # beyond it, so few points do not tell dimensions from each other
MAX_BLOCK_SIZE = 16  # neighboring points that are resampled together: they share neighbors
MIN_BLOCKS = 20
N_BOOTSTRAP = 200
PART_NEIGHBORS = 15  # of the graph whose parts are counted
MIN_PART = 5  # points of a part; smaller ones are outliers
MAX_GAP_DIMENSION = 8
TANGENT_NEIGHBORS = 20
MIN_DIRECTION = 0.1  # variance of the last direction, relative to the one before it, from which on it is no noise
MIN_GAUSSIAN_ROWS = 200  # below which the kurtosis of half of the rows says nothing
MAX_COMPONENTS = 10  # whose Gaussianity is tested
MAX_GAUSSIAN_Z = 3.0  # z-score of the kurtosis (Anscombe and Glynn, 1983), below which a component may be Gaussian


class Dimension(NamedTuple):
    """Estimate of the intrinsic dimension with its 95 % interval."""

    estimate: float
    low: float
    high: float

    def text(self) -> str:
        """Return estimate and interval, e.g. "2.0 (95 % interval 1.9 to 2.2)"."""
        if self.estimate > 0.99 * MAX_DIMENSION:
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
    """Components whose kurtosis cannot be told from that of a Gaussian."""
    kurtosis: tuple[float, ...]
    """Excess kurtosis of each component; 0 for a Gaussian."""


# Dimension ------------------------------------------------------------------------------------------------------------


def estimate_dimension(points: np.ndarray, neighbors: np.ndarray, rng: np.random.Generator) -> Dimension | None:
    """Estimate the dimension of points (n, D) with neighbors (n, k + 1) by the growth of neighbor distances.

    The distance of the k-th neighbor grows like k^(1 / d), also for points at equal spacing (Pettis et al., 1979). The
    estimate is calibrated on as many uniform points in cubes, since it is too small near edges. The interval joins
    those of two scales, each by a bootstrap over blocks of neighboring points, and at least as wide as for random
    points: equal spacing looks more certain than it is. None for fewer than 20 points.
    """
    n = len(points)
    if n < MIN_POINTS:
        return None
    near, *farther = DIMENSION_NEIGHBORS
    scales = [near, *(pair for pair in farther if n >= MIN_POINTS_PER_NEIGHBOR * pair[1])]
    blocks = neighboring_blocks(points)
    counts = np.array([len(block) for block in blocks])
    values = []
    for pair in scales:
        growth = distance_growth(points, neighbors, pair)
        sums = np.array([growth[block].sum() for block in blocks])
        picks = rng.integers(len(blocks), size=(N_BOOTSTRAP, len(blocks)))
        means = np.append(sums[picks].sum(1) / counts[picks].sum(1), growth.mean())
        calibrated = calibrate(dimension_of(means, pair), n, pair)
        low, high = np.quantile(calibrated[:-1], [0.025, 0.975])
        margin = calibrated[-1] * random_margin(n, pair)
        values.append((calibrated[-1], min(low, calibrated[-1] - margin), max(high, calibrated[-1] + margin)))
    estimates, lows, highs = np.array(values).T
    low, high = np.clip([lows.min(), highs.max()], 1, MAX_DIMENSION)
    return Dimension(float(estimates.mean()), float(low), float(high))


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


def distance_growth(points: np.ndarray, neighbors: np.ndarray, pair: tuple[int, int]) -> np.ndarray:
    """Return the logarithm of the ratio of the distances of two neighbors, the farther to the nearer, (n,)."""
    near, far = (np.linalg.norm(points[neighbors[:, k]] - points, axis=1) for k in pair)
    least = 1e-12 * max(far.max(), 1e-300)
    return np.asarray(np.log(np.maximum(far, least) / np.maximum(near, least)))


def dimension_of(growth: np.ndarray, pair: tuple[int, int]) -> np.ndarray:
    """Return the dimension for mean logarithms of ratios: those of a Poisson process in d dimensions, inverted."""
    return np.asarray((digamma(pair[1]) - digamma(pair[0])) / np.maximum(growth, 1e-12))


def random_margin(n: int, pair: tuple[int, int]) -> float:
    """Return half of the 95 % interval for n random points, relative to the dimension.

    The variance of the logarithm of a ratio is that of a Poisson process. Points that share neighbors count once.
    """
    spread = np.sqrt(polygamma(1, pair[0]) - polygamma(1, pair[1])) / (digamma(pair[1]) - digamma(pair[0]))
    return float(1.96 * spread / np.sqrt(n / (pair[1] / 2)))


def calibrate(estimates: np.ndarray, n: int, pair: tuple[int, int]) -> np.ndarray:
    """Return the dimensions of cubes for which n points give these estimates; at most `MAX_DIMENSION`."""
    return np.interp(estimates, cube_estimates(n, pair), REFERENCE_DIMENSIONS)


@cache
def cube_estimates(n: int, pair: tuple[int, int]) -> np.ndarray:
    """Return the estimates for n uniform points in cubes of the reference dimensions, ascending."""
    rng = np.random.default_rng(0)
    estimates = []
    for d in REFERENCE_DIMENSIONS:
        points = rng.uniform(size=(n, d))
        growth = distance_growth(points, find_neighbors(points, pair[1]), pair)
        estimates.append(float(dimension_of(growth.mean(), pair)))
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
    typical = spectra.mean(0)
    if d == points.shape[1] - 1 and typical[d] > MIN_DIRECTION * typical[d - 1]:
        d += 1  # the gap is sought before the last direction only, and this one is no noise
    outside = spectra[:, d:].sum(1) / spectra.sum(1).clamp(min=1e-300)
    return d, float(outside.median())


def has_loop(points: np.ndarray, neighbors: np.ndarray) -> bool | None:
    """Return whether the points go around a closed loop; None where loops cannot be detected."""
    try:
        loops = importlib.import_module("unweave.methods.spectral.loops")
    except ModuleNotFoundError:
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
    if not (components.std(0) > 0).all():
        raise InputError("all rows of one half are equal: shuffle the rows, or look for constant columns")
    z = kurtosistest(components).statistic
    values = kurtosis(components)
    return Gaussianity(d, int((np.abs(z) < MAX_GAUSSIAN_Z).sum()), tuple(values.tolist()))
