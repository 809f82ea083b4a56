"""Base class of spectral methods: everything but the operator whose null space is the embedding."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from math import pi
from typing import ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.sparse import csc_matrix
from torch import Tensor

from unweave.data.core import FactorData
from unweave.methods.base import Method
from unweave.methods.linear import unmix
from unweave.methods.spectral.assessment import assess
from unweave.methods.spectral.automatic import MAX_NEIGHBORS, EmbeddingSearch
from unweave.methods.spectral.circular import AngleSearch, circular_isometry, orient_angles
from unweave.methods.spectral.closed_curve import ClosedCurve, CurveFit, fit_closed_curve
from unweave.methods.spectral.diagnosis import MIN_REPORTED_PERSISTENCE, describe_blur, describe_curve
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.independence import largest_dependence
from unweave.methods.spectral.isometry import averaged_isometry, select_columns
from unweave.methods.spectral.landmarks import average_landmarks
from unweave.methods.spectral.loops import find_loop, has_several_loops, to_full_turn
from unweave.methods.spectral.out_of_sample import AffineMaps
from unweave.methods.spectral.point_cloud import Embedding, PointCloud, build_cloud
from unweave.methods.spectral.preprocessing import Projection, project_data
from unweave.methods.spectral.straightening import straighten_dependent
from unweave.methods.spectral.views import (
    MIN_ISOMETRY_GAIN,
    View,
    blur_widths,
    check_enough_points,
    choose_observations,
    count_landmarks,
    validate_settings,
)
from unweave.utils.errors import plural
from unweave.utils.threads import one_blas_thread
from unweave.utils.validation import resolve_device

MAX_DIRECT_DIMENSION = 3  # up to which eigenvectors are computed by factorization; see `smallest_eigenvectors`
MAX_ORIENTED_ROWS = 1_000  # first observations whose order gives an angle its direction


# Maps for new points are fitted on first use. They follow from the learned attributes, so they are not saved.
_MAPS: WeakKeyDictionary[Method, tuple[Tensor, AffineMaps]] = WeakKeyDictionary()


class Codes(NamedTuple):
    """Codes of an embedding."""

    codes: Tensor  # (n, d)
    straightened: bool


def centered(y: np.ndarray) -> Tensor:
    """Return columns (n, d) with mean zero."""
    columns = torch.from_numpy(y)
    return columns - columns.mean(0)


class SpectralICA(Method):
    """Abstract: an embedding by the null space of an operator on the neighbor graph, then linear ICA.

    Learned attributes:
        codes_: Codes of the points, (n, latent_dim_).
        periods_: The period of each code: 2 pi for an angle, which comes first, None for the others.
        embedding_: The embedding before ICA, centered, (n, latent_dim_); of an angle its cosine and its sine.
        nodes_, node_angles_: A polygon along a closed curve, and the angles there; None for other data.
        points_: Projected observations, or landmarks, (n, components).
        latent_dim_, n_neighbors_, smooth_: The values that were used.
        dimension_: Estimates of the dimension, where it was chosen automatically.
        searched_: Local isometry of every neighborhood size that was tried.
        eigenvalues_, eigengap_: Smallest eigenvalues, and the ratio of the first unused to the last used one.
        isometry_, averaged_isometry_: Local isometry of the codes, and of averages over neighbors (linear codes).
        dependence_, independence_p_value_: Largest distance correlation of two codes, and its permutation test.
        straightened_: Whether codes by linear ICA were dependent, and were straightened.
        kurtosis_, kurtosis_error_: Excess kurtosis of linear codes, and its standard error.
        recovered_: Whether the codes are isometric and independent, as factors that meet the theory are.
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
    loops: Literal["auto", "arc-length", "steps", "never"] = "auto"
    """Where data go around a closed loop, the first code is an angle: arc length, or steps where these are even (auto),
    or always one of them. never: all codes are linear."""

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

    @one_blas_thread()
    def learn(self, data: FactorData) -> None:
        validate_settings(self, data.shape)
        indices = choose_observations(self, data, n_first=MAX_ORIENTED_ROWS)
        best: View | None = None
        for sigma in blur_widths(self.smooth, data.shape):
            view = self._view(data, indices, sigma, curves_only=best is not None and best.is_curve)
            best = view if best is None or view.is_better(best) else best
        assert best is not None
        (self.mean_, self.components_), self.smooth_ = best.projection, best.sigma
        self.points_: Tensor = best.search.cloud.points
        self.nodes_: Tensor | None = None
        self.node_angles_: Tensor | None = None
        self.dimension_: dict[str, float] = {}
        self.searched_: dict[str, float] = {}
        self.eigenvalues_: list[float] = []
        self.eigengap_ = float("inf")
        self.kurtosis_: list[float] = []
        self.kurtosis_error_: list[float] = []
        self.averaged_isometry_, self.dependence_, self.independence_p_value_ = 0.0, 0.0, 1.0
        if best.is_curve:
            assert best.curve is not None
            self._learn_curve(best.search.cloud, best.curve)
        else:
            self._learn_embedding(best)

    def _view(self, data: FactorData, indices: Tensor, sigma: float, *, curves_only: bool) -> View:
        """Return the observations blurred by `sigma`, the loop they make, and a first embedding if it is needed."""
        projection, cloud = self._prepare(data, indices, sigma)
        points = cloud.points.numpy()
        loop = find_loop(points, cloud.neighbors) if self.loops != "never" else None
        even = None if self.loops == "auto" else self.loops == "steps"
        curve = fit_closed_curve(points, cloud.neighbors, loop, even=even) if loop else None
        is_linear = self.linear and (loop is None or loop.persistence < MIN_REPORTED_PERSISTENCE)
        confidence = self._confidence if is_linear else None
        search = EmbeddingSearch(cloud, self._embed, self.min_neighbors, self.n_neighbors, confidence)
        view = View(sigma, projection, search, loop, curve, None, self.latent_dim in ("auto", 1))
        if curves_only or view.is_curve:
            return view
        check_enough_points(len(points), self.latent_dim)
        return view._replace(trial=search.choose_dimension(self.latent_dim))

    def _learn_curve(self, cloud: PointCloud, fit: CurveFit) -> None:
        """Learn the angle along a closed curve."""
        zero, direction = orient_angles(fit.curve(cloud.rows).numpy())
        curve = fit.curve.turn(zero, direction)
        self.nodes_, self.node_angles_ = curve
        angle = curve(cloud.points)
        self.codes_, self.embedding_ = angle[:, None], torch.stack([angle.cos(), angle.sin()], 1)
        self.latent_dim_, self.n_neighbors_ = 1, fit.loop.k
        self.periods_: list[float | None] = [2 * pi]
        self.isometry_ = circular_isometry(angle.numpy()[cloud.scored], cloud.pairs)
        self.straightened_, self.recovered_ = False, fit.certain
        self.diagnosis_ = [*cloud.notes, *describe_blur(self.smooth_), *describe_curve(fit)]

    def _learn_embedding(self, view: View) -> None:
        """Learn codes from an embedding; the first of them is an angle where the data go around a loop."""
        assert view.trial is not None
        cloud = view.search.cloud
        self.dimension_ = view.trial.votes
        embedding, self.searched_ = view.search.choose_neighbors(view.trial)
        embedding = self._embed_loop(view, embedding) or embedding
        self.embedding_ = centered(embedding.y)
        self.codes_, self.straightened_ = self._separate(cloud, embedding)
        self.latent_dim_, self.n_neighbors_ = embedding.d, embedding.k
        self.periods_ = [None] * embedding.d
        if embedding.angle is not None:
            self._add_angle(torch.from_numpy(embedding.angle), cloud)
        self.eigenvalues_ = [float(v) for v in embedding.values]
        assess(self, view, embedding)

    def _separate(self, cloud: PointCloud, embedding: Embedding, *, quick: bool = False) -> Codes:
        """Return codes by linear ICA, straightened where they depend on each other without an angle beside them."""
        y = centered(embedding.y)
        codes = y @ unmix(y, self.seed, quick=quick).T
        if embedding.angle is not None or not self.linear:
            return Codes(codes, False)
        d, k = embedding.d, embedding.k
        eigenvectors = partial(self._eigenvectors, cloud, d, k)
        straight = straighten_dependent(cloud, k, codes.numpy(), eigenvectors, int(self.seed))
        return Codes(codes, False) if straight is None else Codes(torch.from_numpy(straight), True)

    def _confidence(self, cloud: PointCloud, embedding: Embedding) -> float:
        """Return how far codes keep the distances of local averages, minus how far they depend on each other."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ICA, about embeddings that may not be taken
            codes, straightened = self._separate(cloud, embedding, quick=True)
        y = codes.numpy() if straightened else embedding.y
        isometry = averaged_isometry(cloud.points.numpy(), y, cloud.neighbors, cloud.scored)
        return isometry - largest_dependence(codes.numpy())

    def _add_angle(self, angle: Tensor, cloud: PointCloud) -> None:
        """Put an angle (n,) before the linear codes."""
        self.periods_[0] = 2 * pi
        self.codes_ = torch.cat([angle[:, None], self.codes_], 1)
        zero, direction = orient_angles(self._encode_points(cloud.rows)[:, 0].numpy())
        self.codes_ = torch.cat([to_full_turn(direction * (self.codes_[:, :1] - zero)), self.codes_[:, 1:]], 1)
        self.embedding_ = torch.cat([angle.cos()[:, None], angle.sin()[:, None], self.embedding_], 1)

    def encode(self, x: Tensor) -> Tensor:
        return self._encode_points(Projection(self.mean_, self.components_)(x))

    def _encode_points(self, points: Tensor) -> Tensor:
        """Return codes of projected observations, (n, components) -> (n, d)."""
        nodes, angles = getattr(self, "nodes_", None), getattr(self, "node_angles_", None)
        if nodes is not None and angles is not None:
            return ClosedCurve(nodes, angles)(points)[:, None]
        codes, maps = _MAPS.get(self, (None, None))
        if codes is not self.codes_ or maps is None:
            # Enough neighbors for an affine map; with more, the manifold bends.
            k = min(int(self.n_neighbors_), max(2 * self.latent_dim_ + 4, 10), len(self.points_) - 1)
            maps = AffineMaps(self.points_, self.codes_, k, self.code_periods())
            _MAPS[self] = self.codes_, maps
        return maps(points)

    def code_periods(self) -> tuple[float | None, ...]:
        return tuple(getattr(self, "periods_", ())) or super().code_periods()

    def _embed(self, cloud: PointCloud, d: int, k: int) -> Embedding:
        """Embed a point cloud in d dimensions with k neighbors."""
        values, y = self._eigenvectors(cloud, d, k)
        choice = select_columns(y[cloud.scored], d, cloud.pairs, margin=MIN_ISOMETRY_GAIN if self.linear else np.inf)
        return Embedding(k, d, y[:, list(choice.columns)], values, choice, {})

    def _embed_loop(self, view: View, chosen: Embedding) -> Embedding | None:
        """Embed by an angle and linear codes; None if that is no better than the linear codes that were chosen."""
        if view.loop is None or has_several_loops(view.loop) or not self.linear:
            return None
        dimensions = {chosen.d} if self.latent_dim != "auto" else {2, *(max(1, chosen.d - i) for i in range(3))}
        return AngleSearch(view.search, view.loop, self._eigenvectors).choose(chosen, dimensions)

    def _eigenvectors(self, cloud: PointCloud, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest eigenvalues (q,) and their vectors (n, q), of unit variance, in d dimensions.

        There are a few more than d, so that later ones can be chosen.
        """
        operator, trivial = self.operator(cloud, k, d)
        count = min(d + {1: 3, 2: 4, 3: 3}.get(d, 2), len(cloud.points) - 2)
        direct = d <= MAX_DIRECT_DIMENSION
        values, vectors = smallest_eigenvectors(
            operator, count, trivial=trivial, n_converged=d, direct=direct, seed=int(self.seed)
        )
        y = self.to_embedding(vectors, trivial)
        return values, y / np.maximum(y.std(0), 1e-300)

    # Data -------------------------------------------------------------------------------------------------------

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
        rows, count = points[:MAX_ORIENTED_ROWS], count_landmarks(self.landmarks, len(points))
        if count:
            notes.append(f"{count:,} landmarks are averages of {len(points):,} observations.")
            points = torch.from_numpy(average_landmarks(points.numpy(), count, rng))
        least = self.min_neighbors(max(1, latent_dim)) if self.n_neighbors == "auto" else self.n_neighbors
        most = max(MAX_NEIGHBORS, 2 * least) if self.n_neighbors == "auto" else least
        cloud = build_cloud(
            points, rng, n_neighbors=(least, most), size_name="landmarks" if count else "n_samples",
            on_disconnected=self.on_disconnected, device=self.resolve_device(), notes=tuple(notes),
        )  # fmt: skip
        return projection, cloud._replace(rows=rows)
