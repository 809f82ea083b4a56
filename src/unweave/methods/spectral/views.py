"""Observations as a spectral method sees them: which blurs and landmarks it tries, and the best of them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.data.lazy import LazyTable
from unweave.methods.spectral.automatic import EmbeddingSearch, check_min_neighbors
from unweave.methods.spectral.closed_curve import CurveFit
from unweave.methods.spectral.diagnosis import MIN_POINTS
from unweave.methods.spectral.landmarks import thin
from unweave.methods.spectral.loops import Loop
from unweave.methods.spectral.point_cloud import Embedding
from unweave.methods.spectral.preprocessing import MAX_SOLVED_POINTS, Projection
from unweave.utils.errors import InputError

if TYPE_CHECKING:
    from unweave.methods.spectral.base import SpectralICA

N_LANDMARKS = 3_000  # where "auto" uses landmarks
BLUR_WIDTH = 1 / 32  # of an image's width: the blur that "auto" tries
MIN_BLUR_SIZE = 8  # pixels, below which "auto" does not blur
MIN_ISOMETRY_GAIN = 0.02  # gain in isometry that justifies a blur, or eigenvectors other than the first
MIN_PERSISTENCE_GAIN = 1.2  # factor in the persistence of a closed curve that justifies a blur
MAX_DOUBTFUL_ISOMETRY = 0.9  # of an embedding that a closed curve replaces where it is not certain


class View(NamedTuple):
    """Observations as the method sees them, blurred by `sigma`, and what it makes of them."""

    sigma: float
    projection: Projection
    search: EmbeddingSearch
    loop: Loop | None
    curve: CurveFit | None
    trial: Embedding | None  # not computed for a closed curve
    may_be_curve: bool  # whether one code was asked for, or any number

    @property
    def is_curve(self) -> bool:
        """Return whether the data are a closed curve: surely, or where an embedding keeps no distances."""
        if self.curve is None or not self.may_be_curve:
            return False
        return self.curve.certain or (self.trial is not None and self.trial.choice.score < MAX_DOUBTFUL_ISOMETRY)

    def is_better(self, other: View) -> bool:
        """Return whether this view, which is blurred more, shows a loop or distances clearly better."""
        if self.is_curve and other.is_curve:
            assert self.loop and other.loop
            return self.loop.persistence > MIN_PERSISTENCE_GAIN * other.loop.persistence
        if self.trial is None or other.trial is None:
            return self.is_curve
        return self.is_curve or self.trial.choice.score > other.trial.choice.score + MIN_ISOMETRY_GAIN


def validate_settings(method: SpectralICA, shape: tuple[int, ...]) -> None:
    """Raise an error if settings contradict each other or the shape of the data."""
    d = 1 if method.latent_dim == "auto" else method.latent_dim
    features = prod(shape)
    if d > features:
        raise InputError(f"latent_dim={d} is more than the data allow: n_features={features}; lower latent_dim")
    if method.project < 0 or 0 < method.project < d:
        raise InputError(f"project={method.project}: expected 0 for all, or at least latent_dim={d} components")
    if method.smooth != "auto" and method.smooth < 0:
        raise InputError(f"smooth={method.smooth}: expected 0 or a number of pixels")
    if method.smooth != "auto" and method.smooth and len(shape) < 2:
        raise InputError(f"smooth={method.smooth} blurs images, but the observations are rows of numbers")
    if method.samples < 2:
        raise InputError(f"samples={method.samples}: draw at least two points")
    if method.landmarks != "auto" and method.landmarks < 0:
        raise InputError(f"landmarks={method.landmarks}: expected 0 for all points, or a number of landmarks")
    if method.n_neighbors != "auto":
        check_min_neighbors(method.n_neighbors, method.min_neighbors(d), d)


def choose_observations(method: SpectralICA, data: FactorData, n_first: int) -> Tensor:
    """Return the points of the data that are used; of many only as many as the averages of landmarks need, (n, p).

    Args:
        method: The method with its settings.
        data: The observations.
        n_first: Number of first observations that are always used.
    """
    # Rows that are read on demand are never held at once where landmarks represent them, so all of them take part.
    limit = len(data) if isinstance(data, LazyTable) and method.landmarks != 0 else None
    points = data.points_or_sample(method.samples, Generator().manual_seed(int(method.seed)), limit=limit)
    count = count_landmarks(method.landmarks, len(points))
    return points[thin(len(points), count, n_first, np.random.default_rng(int(method.seed)))] if count else points


def check_enough_points(n: int, latent_dim: int | Literal["auto"]) -> None:
    """Raise an error if n points are too few to tell how many factors there are."""
    if latent_dim == "auto" and n < MIN_POINTS:
        raise InputError(
            f"n_samples={n} is too few to find factors: at least {MIN_POINTS} different observations are needed, "
            "unless they go around a single loop. Collect more. With latent_dim set, codes are not assessed"
        )


def blur_widths(smooth: float | Literal["auto"], shape: tuple[int, ...]) -> list[float]:
    """Return the blurs to try for observations of a shape, in pixels."""
    if smooth != "auto":
        return [float(smooth)]
    large = len(shape) >= 2 and min(shape[-2:]) >= MIN_BLUR_SIZE
    return [0.0, max(1.0, min(shape[-2:]) * BLUR_WIDTH)] if large else [0.0]


def count_landmarks(landmarks: int | Literal["auto"], n: int) -> int:
    """Return the number of landmarks for n points; 0 for none."""
    if landmarks == "auto":
        return N_LANDMARKS if n > MAX_SOLVED_POINTS else 0
    return landmarks if 0 < landmarks < n else 0
