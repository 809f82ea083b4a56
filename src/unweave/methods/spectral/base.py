"""Base class of spectral methods: everything but the operator whose null space is the embedding."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.sparse import csc_matrix
from torch import Generator, Tensor

from unweave.data.core import FactorData
from unweave.methods.base import Method
from unweave.methods.linear import excess_kurtosis, unmix
from unweave.methods.spectral.automatic import MAX_NEIGHBORS, EmbeddingSearch, check_min_neighbors
from unweave.methods.spectral.diagnosis import (
    MIN_POINTS,
    describe_dimension,
    describe_eigenvectors,
    describe_gaussian_factors,
    describe_isometry,
)
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.isometry import isometry_score, rescaled_distances, select_columns
from unweave.methods.spectral.landmarks import average_landmarks
from unweave.methods.spectral.out_of_sample import AffineMaps
from unweave.methods.spectral.point_cloud import Embedding, PointCloud, build_cloud
from unweave.methods.spectral.preprocessing import MAX_SOLVED_POINTS, Projection, project_data
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import resolve_device

N_LANDMARKS = 3_000  # where "auto" uses landmarks
MAX_DIRECT_DIMENSION = 3  # up to which eigenvectors are computed by factorization; see `smallest_eigenvectors`
BLUR_WIDTH = 1 / 32  # of an image's width: the blur that "auto" tries
MIN_BLUR_SIZE = 8  # pixels, below which "auto" does not blur
MIN_ISOMETRY_GAIN = 0.02  # gain in isometry that justifies a blur, or eigenvectors other than the first


# Maps for new points are fitted on first use. They follow from the learned attributes, so they are not saved.
_MAPS: WeakKeyDictionary[Method, tuple[Tensor, AffineMaps]] = WeakKeyDictionary()


class SpectralICA(Method):
    """Abstract: an embedding by the null space of an operator on the neighbor graph, then linear ICA.

    Learned attributes:
        codes_: Codes of the points, (n, latent_dim_).
        embedding_: The embedding before ICA, centered, (n, latent_dim_).
        points_: Projected observations, or landmarks, (n, components).
        latent_dim_, n_neighbors_, smooth_: The values that were used.
        dimension_: Estimates of the dimension, where it was chosen automatically.
        searched_: Local isometry of every neighborhood size that was tried.
        eigenvalues_, eigengap_: Smallest eigenvalues, and the ratio of the first unused to the last used one.
        isometry_, kurtosis_, kurtosis_error_: Quality of the codes.
        diagnosis_: The same in sentences.
    """

    linear: ClassVar[bool] = True
    """Whether the embedding is a linear map of the factors, so that isometry can choose eigenvectors."""

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]  # wider than Method's: it also takes a word
    """Number of factors. auto estimates the dimension of the manifold and reports how certain it is."""
    n_neighbors: int | Literal["auto"] = "auto"
    """Size of a neighborhood. auto takes the one that keeps near distances best (local isometry score)."""
    landmarks: int | Literal["auto"] = "auto"
    """Solve for this many averaged points and extend to the rest. 0 solves for all; auto: 3,000 beyond 5,000 points."""
    smooth: float | Literal["auto"] = "auto"
    """Gaussian blur of images in pixels: hard edges hide factors. auto blurs where that increases isometry."""
    project: int = 50
    """Principal components computed before the neighbor search: faster, and smooths pixel noise. 0 keeps all."""
    samples: int = 3_000
    """Points to draw where the data are a generator or a large grid. Your own rows are always all used."""
    on_disconnected: Literal["error", "largest"] = "error"
    """If the neighbor graph falls into parts: stop, or learn from the largest one."""

    device: str = "auto"
    """'cpu', 'cuda', or 'auto': a GPU where there is one, for neighbors and tangent spaces. The rest uses the CPU."""

    # The operator -----------------------------------------------------------------------------------------------

    @abstractmethod
    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """Return a positive semidefinite matrix (n, n) from k neighbors of each point, and its trivial null vector."""

    @abstractmethod
    def min_neighbors(self, d: int) -> int:
        """Return the smallest neighborhood that works in d dimensions."""

    def to_embedding(self, vectors: np.ndarray, trivial: np.ndarray) -> np.ndarray:
        """Return the embedding that eigenvectors (n, count) represent; `trivial` is the null vector (n,)."""
        return vectors

    # Learning ---------------------------------------------------------------------------------------------------

    def resolve_device(self) -> str:
        return resolve_device(self.device)

    def learn(self, data: FactorData) -> None:
        self._validate_settings(data)
        indices = data.points_or_sample(self.samples, Generator().manual_seed(int(self.seed)))
        best: tuple[EmbeddingSearch, Embedding, Projection, float] | None = None
        for sigma in self._blur_widths(data.shape):
            projection, cloud = self._prepare(data, indices, sigma)
            search = EmbeddingSearch(cloud, self._embed, self.min_neighbors, self.n_neighbors)
            trial = search.choose_dimension(self.latent_dim)
            if best is None or trial.choice.score > best[1].choice.score + MIN_ISOMETRY_GAIN:
                best = search, trial, projection, sigma
        assert best is not None
        search, trial, (self.mean_, self.components_), self.smooth_ = best
        self.dimension_: dict[str, float] = trial.votes
        embedding, self.searched_ = search.choose_neighbors(trial)
        y = torch.from_numpy(embedding.y)
        y = y - y.mean(0)
        self.points_, self.embedding_, self.codes_ = search.cloud.points, y, y @ unmix(y, self.seed).T
        self.latent_dim_, self.n_neighbors_ = embedding.d, embedding.k
        self.eigenvalues_ = [float(v) for v in embedding.values]
        self._diagnose(search.cloud, embedding)

    def encode(self, x: Tensor) -> Tensor:
        points = Projection(self.mean_, self.components_)(x)
        codes, maps = _MAPS.get(self, (None, None))
        if codes is not self.codes_ or maps is None:
            # Enough neighbors for an affine map; with more, the manifold bends.
            k = min(int(self.n_neighbors_), max(2 * self.latent_dim_ + 4, 10), len(self.points_) - 1)
            maps = AffineMaps(self.points_, self.codes_, k)
            _MAPS[self] = self.codes_, maps
        return maps(points)

    def _embed(self, cloud: PointCloud, d: int, k: int) -> Embedding:
        """Embed a point cloud in d dimensions with k neighbors.

        A few more eigenvectors than d are computed, so that later ones can be chosen.
        """
        operator, trivial = self.operator(cloud, k, d)
        count = min(d + {1: 3, 2: 4, 3: 3}.get(d, 2), len(cloud.points) - 2)
        direct = d <= MAX_DIRECT_DIMENSION
        values, vectors = smallest_eigenvectors(
            operator, count, trivial=trivial, n_converged=d, direct=direct, seed=int(self.seed)
        )
        y = self.to_embedding(vectors, trivial)
        y = y / np.maximum(y.std(0), 1e-300)
        choice = select_columns(y[cloud.scored], d, cloud.pairs, margin=MIN_ISOMETRY_GAIN if self.linear else np.inf)
        return Embedding(k, d, y[:, list(choice.columns)], values, choice, {})

    # Data -------------------------------------------------------------------------------------------------------

    def _validate_settings(self, data: FactorData) -> None:
        """Raise an error if settings contradict each other or the shape of the data."""
        d = 1 if self.latent_dim == "auto" else self.latent_dim
        features = prod(data.shape)
        if d > features:
            raise InputError(f"latent_dim={d} is more than the data allow: n_features={features}; lower latent_dim")
        if self.project < 0 or 0 < self.project < d:
            raise InputError(f"project={self.project}: expected 0 for all, or at least latent_dim={d} components")
        if self.smooth != "auto" and self.smooth < 0:
            raise InputError(f"smooth={self.smooth}: expected 0 or a number of pixels")
        if self.smooth != "auto" and self.smooth and len(data.shape) < 2:
            raise InputError(f"smooth={self.smooth} blurs images, but the observations are rows of numbers")
        if self.samples < 2:
            raise InputError(f"samples={self.samples}: draw at least two points")
        if self.landmarks != "auto" and self.landmarks < 0:
            raise InputError(f"landmarks={self.landmarks}: expected 0 for all points, or a number of landmarks")
        if self.n_neighbors != "auto":
            check_min_neighbors(self.n_neighbors, self.min_neighbors(d), d)

    def _blur_widths(self, shape: tuple[int, ...]) -> list[float]:
        """Return the blurs to try for observations of a shape, in pixels."""
        if self.smooth != "auto":
            return [float(self.smooth)]
        large = len(shape) >= 2 and min(shape[-2:]) >= MIN_BLUR_SIZE
        return [0.0, max(1.0, min(shape[-2:]) * BLUR_WIDTH)] if large else [0.0]

    def _prepare(self, data: FactorData, indices: Tensor, sigma: float) -> tuple[Projection, PointCloud]:
        """Return the projection of observations, and the points to embed with their neighbors."""
        rng = np.random.default_rng(int(self.seed))
        latent_dim = 0 if self.latent_dim == "auto" else self.latent_dim
        projection, points = project_data(
            data, indices, sigma, max_components=self.project, latent_dim=latent_dim, seed=int(self.seed), rng=rng
        )
        notes = []
        if len(points) < len(indices):
            notes.append(f"{plural(len(indices) - len(points), 'observation')} repeat others.")
        count = self._n_landmarks(len(points))
        if count:
            notes.append(f"{count:,} landmarks represent {len(points):,} observations.")
            points = torch.from_numpy(average_landmarks(points.numpy(), count, rng))
        least = self.min_neighbors(max(1, latent_dim)) if self.n_neighbors == "auto" else self.n_neighbors
        most = max(MAX_NEIGHBORS, 2 * least) if self.n_neighbors == "auto" else least
        return projection, build_cloud(
            points, rng, n_neighbors=(least, most), size_name="landmarks" if count else "n_samples",
            on_disconnected=self.on_disconnected, device=self.resolve_device(), notes=tuple(notes),
        )  # fmt: skip

    def _n_landmarks(self, n: int) -> int:
        """Return the number of landmarks for n points; 0 for none."""
        if self.landmarks == "auto":
            return N_LANDMARKS if n > MAX_SOLVED_POINTS else 0
        return self.landmarks if 0 < self.landmarks < n else 0

    # Diagnosis --------------------------------------------------------------------------------------------------

    def _diagnose(self, cloud: PointCloud, embedding: Embedding) -> None:
        """Learn how far the codes can be trusted, in numbers and in sentences."""
        z = self.codes_.numpy()
        self.isometry_ = isometry_score(rescaled_distances(z[cloud.scored], cloud.pairs), cloud.pairs.dx)
        kurtosis, error = excess_kurtosis((z - z.mean(0)) / z.std(0))
        self.kurtosis_, self.kurtosis_error_ = kurtosis.tolist(), error.tolist()
        used, unused = embedding.values[: embedding.d].max(), embedding.values[embedding.d :]
        self.eigengap_ = float(unused.min() / max(used, 1e-300)) if len(unused) else float("inf")
        texts = list(cloud.notes)
        if self.smooth_:
            texts.append(f"Images were blurred by {self.smooth_:g} pixels.")
        if self.latent_dim == "auto":
            texts.append(describe_dimension(embedding.d, self.dimension_))
        texts.append(f"The neighbor graph of {embedding.k} neighbors is connected.")
        if len(cloud.points) < MIN_POINTS:
            texts.append(f"{plural(len(cloud.points), 'point')} are too few to assess the embedding.")
        else:
            seen = {"blurred": bool(self.smooth_), "projected": bool(self.project)}
            texts += describe_isometry(self.isometry_, cloud.pairs, **seen)
            texts += describe_eigenvectors(embedding, self.eigengap_)
        self.diagnosis_ = [*texts, *describe_gaussian_factors(kurtosis, error)]
