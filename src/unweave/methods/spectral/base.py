"""What the spectral methods share: everything but the operator whose null space is the embedding."""

from __future__ import annotations

import warnings
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
from unweave.methods.linear import excess_kurtosis, independent
from unweave.methods.spectral.dimension import gap_dimension, likelihood_dimension
from unweave.methods.spectral.eigensolver import smallest_eigenvectors
from unweave.methods.spectral.isometry import closest_pairs, isometry_score, rescaled_distances, select_columns
from unweave.methods.spectral.neighbors import find_neighbors, label_components
from unweave.methods.spectral.out_of_sample import AffineMaps, landmarks
from unweave.methods.spectral.point_cloud import Embedding, PointCloud
from unweave.methods.spectral.preprocessing import (
    AT_ONCE,
    SUBSET,
    Projection,
    finite,
    fit_projection,
    project,
    unique_rows,
)
from unweave.methods.spectral.tangent_space import gram_matrices
from unweave.utils.errors import InputError, plural
from unweave.utils.validation import resolve_device

SEARCHED = 8  # values of k that "auto" tries
LARGEST = 48  # of them
ALONE = 5_000  # up to so many points all are solved for, beyond it landmarks stand for them
LANDMARKS = 3_000
MOST_DIMENSIONS = 8  # that "auto" thinks of
JUDGED = 1_000  # points whose near pairs judge an embedding during the search
JUDGING = 0.01  # of their pairs: the score's 5 % reach, on a rolled-up manifold, across to the next turn
KEPT = 2**27  # numbers of Gram matrices that are kept for all k
FEW = 50  # points, below which no embedding can be judged
COARSE = 12  # different near distances, below which points lie on a grid
BLUR = 1 / 32  # of an image's width: the smoothing that "auto" tries


# The maps of a fitted method, worked out when it first places points: they follow from what it learned.
_ATLASES: WeakKeyDictionary[Method, tuple[Tensor, AffineMaps]] = WeakKeyDictionary()


class SpectralICA(Method):
    """Abstract: embed by the null space of an operator on the neighbor graph, then ICA."""

    linear: ClassVar[bool] = True
    """whether the embedding is a linear map of the factors, so that isometry can tell which eigenvectors to take"""

    latent_dim: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    """how many factors to look for; auto estimates the dimension of the manifold, and says how sure it is"""
    n_neighbors: int | Literal["auto"] = "auto"
    """size of a neighborhood; auto takes what keeps near distances best (the local isometry score)"""
    landmarks: int | Literal["auto"] = "auto"
    """solve for so many averaged points and extend to the rest; 0 solves for all; auto: 3,000 beyond 5,000 points"""
    smooth: float | Literal["auto"] = "auto"
    """Gaussian blur of images, in pixels: hard edges hide factors; auto blurs where it makes them more isometric"""
    project: int = 50
    """principal components kept before neighbors are sought: faster, and smooths pixel noise; 0 keeps all"""
    samples: int = 3_000
    """points to draw where the data are a generator or a large grid; your own rows are always all used"""
    on_disconnected: Literal["error", "largest"] = "error"
    """if the neighbor graph falls into parts: stop, or learn from the largest one"""

    device: str = "auto"
    """'cpu', 'cuda', or 'auto': a GPU where there is one, for neighbors and neighborhoods; the rest is the CPU's"""

    # The operator -----------------------------------------------------------------------------------------------

    @abstractmethod
    def operator(self, cloud: PointCloud, k: int, d: int) -> tuple[csc_matrix, np.ndarray]:
        """A positive matrix over the n points and its trivial null vector (n,), from k neighbors of each."""

    @abstractmethod
    def least_neighbors(self, d: int) -> int:
        """The smallest neighborhood that can work in d dimensions."""

    def embedded(self, vectors: np.ndarray, trivial: np.ndarray) -> np.ndarray:
        """Eigenvectors as an embedding."""
        return vectors

    # Learning ---------------------------------------------------------------------------------------------------

    def learn(self, data: FactorData) -> None:
        self._check_settings(data)
        chosen = data.all_points(self.samples)
        if chosen is None:
            chosen = data.sample(self.samples, Generator().manual_seed(int(self.seed)))
        best: tuple[PointCloud, Embedding, Projection, float] | None = None
        for sigma in self._blurs(data.shape):
            view, cloud = self._cloud(data, chosen, sigma)
            trial = self._dimension(cloud)
            # A blur must earn its place: it is taken where it makes the data clearly more isometric.
            if best is None or trial.choice.score > best[1].choice.score + 0.02:
                best = cloud, trial, view, sigma
        assert best is not None
        cloud, trial, view, self.smooth_ = best
        self.mean_, self.components_ = view
        self.dimension_: dict[str, float] = trial.votes
        self.searched_: dict[str, float] = {}
        found = self._neighborhood(cloud, trial)
        y = torch.from_numpy(found.y)
        y = y - y.mean(0)
        codes = y @ independent(y, self.seed).T
        self.points_, self.embedding_, self.codes_ = cloud.points, y, codes
        self.latent_dim_, self.n_neighbors_ = found.d, found.k
        self.eigenvalues_ = [float(v) for v in found.values]
        self._judge(cloud, found)

    def encode(self, x: Tensor) -> Tensor:
        q = Projection(self.mean_, self.components_)(x)
        known, atlas = _ATLASES.get(self, (None, None))
        if known is not self.codes_ or atlas is None:
            atlas = AffineMaps(self.points_, self.codes_, self._map_size())
            _ATLASES[self] = self.codes_, atlas
        return atlas(q)

    def _map_size(self) -> int:
        """Neighbors that an affine map is fitted to: not too many, or the manifold bends."""
        return min(int(self.n_neighbors_), max(2 * self.latent_dim_ + 4, 10), len(self.points_) - 1)

    def _check_settings(self, data: FactorData) -> None:
        d = 1 if self.latent_dim == "auto" else int(self.latent_dim)
        features = prod(data.shape)
        if d > features:
            raise InputError(f"latent_dim={d} is more than the data allow: n_features={features}; lower latent_dim")
        if self.project < 0 or 0 < self.project < d:
            raise InputError(f"project={self.project}: expected 0 for all, or at least latent_dim={d} components")
        if self.smooth != "auto" and self.smooth < 0:
            raise InputError(f"smooth={self.smooth}: expected 0 or a number of pixels")
        if self.smooth != "auto" and self.smooth and len(data.shape) < 2:
            raise InputError(f"smooth={self.smooth} blurs images, and the observations are rows of numbers")
        if self.samples < 2:
            raise InputError(f"samples={self.samples}: draw at least two points")
        if self.landmarks != "auto" and self.landmarks < 0:
            raise InputError(f"landmarks={self.landmarks}: expected 0 for all points, or how many")
        self._check_enough(d)

    def _check_enough(self, d: int) -> None:
        least = self.least_neighbors(d)
        if self.n_neighbors != "auto" and self.n_neighbors < least:
            text = f"n_neighbors={self.n_neighbors} is too few for latent_dim={d}"
            raise InputError(f"{text}: a neighborhood needs at least {least}")

    def _blurs(self, shape: tuple[int, ...]) -> list[float]:
        if self.smooth != "auto":
            return [float(self.smooth)]
        return [0.0, max(1.0, min(shape[-2:]) * BLUR)] if len(shape) >= 2 and min(shape[-2:]) >= 8 else [0.0]

    def _cloud(self, data: FactorData, chosen: Tensor, sigma: float) -> tuple[Projection, PointCloud]:
        """The points to solve for, with their neighbors, and the map to them."""
        rng = np.random.default_rng(int(self.seed))
        n, features = len(chosen), prod(data.shape)
        small = n <= ALONE and n * features <= AT_ONCE  # all of it can be held as floats
        if small:
            x = data.render(chosen).flatten(1)
            kept = unique_rows(x)
            x = x if len(kept) == n else x[kept]
            n = len(x)
            sample = x[_some(n, rng)] if n > SUBSET else x
        else:
            sample = data.render(chosen[_some(n, rng)]).flatten(1)
        if bool((finite(sample)[-1] == sample[0]).all()) and bool((sample == sample[:1]).all()):
            raise InputError("every column of the data is constant: there is nothing to take apart")
        keep = min(self.project or features, features, max(n - 1, 1))
        view = fit_projection(sample, keep, sigma, data.shape, Generator().manual_seed(int(self.seed)))
        if self.latent_dim != "auto" and len(view.components) < self.latent_dim:
            raise InputError(
                f"latent_dim={self.latent_dim} is more than the data allow: all their columns are combinations of "
                f"{len(view.components)}; lower it"
            )
        points = finite(view(x)) if small else project(view, data.render, chosen, features)
        scale = float(points.abs().max()) or 1.0  # local products are in single precision: keep them near one
        points, view = points / scale, Projection(view.mean, view.components / scale)
        if not small:
            points = points[unique_rows(points)]
        said = (
            [f"{plural(len(chosen) - len(points), 'observation')} repeat others."] if len(points) < len(chosen) else []
        )
        count = self._landmarks(len(points))
        if count:
            said.append(f"{count:,} landmarks stand for {len(points):,} observations.")
            points = torch.from_numpy(landmarks(points.numpy(), count, rng))
        return view, self._surveyed(points, said, rng)

    def _landmarks(self, n: int) -> int:
        """How many landmarks to solve for; 0: all points."""
        if self.landmarks == "auto":
            return LANDMARKS if n > ALONE else 0
        return int(self.landmarks) if 0 < self.landmarks < n else 0

    def _surveyed(self, points: Tensor, said: list[str], rng: np.random.Generator) -> PointCloud:
        """Neighbors for every k that will be tried, and the near pairs that judge."""
        n = len(points)
        d = 1 if self.latent_dim == "auto" else int(self.latent_dim)
        least = self.least_neighbors(d) if self.n_neighbors == "auto" else int(self.n_neighbors)
        most = max(LARGEST, 2 * least) if self.n_neighbors == "auto" else least
        if n <= least:
            what = f"landmarks={n}" if said and "landmarks" in said[-1] else f"n_samples={n}"
            raise InputError(
                f"{what} is too few for n_neighbors={least}: give more (repeats count once), or take fewer neighbors"
            )
        device = resolve_device(self.device)
        near = find_neighbors(points.numpy(), min(most, n - 1), device)
        if self.on_disconnected == "largest":
            # Parts as a usual neighborhood sees them: one large enough to reach a far clump would bridge the gap.
            whole = label_components(near[:, : min(2 * least, near.shape[1] - 1) + 1]) == 0
            if not whole.all():
                left = f"{int((~whole).sum()):,} of {n:,} points are in other parts of the graph and were left out."
                return self._surveyed(points[torch.from_numpy(whole)], [*said, left], rng)
        judges = np.sort(rng.choice(n, JUDGED, replace=False)) if n > JUDGED else np.arange(n)
        share = min(1.0, max(JUDGING, 10 / (len(judges) - 1)))  # of few points more pairs: five for each point at least
        kept = list(gram_matrices(points.to(device), near[:, 1:])) if n * near.shape[1] ** 2 <= KEPT else None
        return PointCloud(points, near, kept, judges, closest_pairs(points.numpy()[judges], share), tuple(said), device)

    # Attempts ---------------------------------------------------------------------------------------------------

    def _attempt(self, cloud: PointCloud, d: int, k: int) -> Embedding:
        """Embed with k neighbors."""
        n = len(cloud.points)
        operator, trivial = self.operator(cloud, k, d)
        spare = {1: 3, 2: 4, 3: 3}.get(d, 2)
        count = min(d + spare, n - 2)
        values, vectors = smallest_eigenvectors(
            operator, count, trivial=trivial, expected=d, direct=d <= 3, seed=int(self.seed)
        )
        y = self.embedded(vectors, trivial)
        y = y / np.maximum(y.std(0), 1e-300)
        choice = select_columns(y[cloud.judges], d, cloud.pairs, margin=0.02 if self.linear else np.inf)
        return Embedding(k, d, y[:, list(choice.columns)], values, choice, {})

    def _dimension(self, cloud: PointCloud) -> Embedding:
        """A first embedding, in the given number of dimensions or in the one that seems right."""
        if self.latent_dim != "auto":
            d = int(self.latent_dim)
            return self._attempt(cloud, d, self._default(cloud, d))
        n, features = cloud.points.shape
        most = max(d for d in range(1, MOST_DIMENSIONS + 1) if d == 1 or (d <= features and self._room(n, d)))
        few = cloud.near[:, : min(20, n - 1) + 1]
        guess, gap = likelihood_dimension(cloud.points.numpy(), few), gap_dimension(cloud.points, few, most)
        candidates = sorted({min(max(1, int(c)), most) for c in (np.floor(guess + 0.25), np.ceil(guess - 0.25), gap)})
        trials = [self._attempt(cloud, d, self._default(cloud, d)) for d in candidates]
        best = max(trials, key=lambda t: (t.choice.score > max(u.choice.score for u in trials) - 0.01, -t.d))
        votes = {"likelihood": round(guess, 2), "gap": gap}
        votes |= {f"isometry in {t.d} dimensions": round(t.choice.score, 3) for t in trials}
        return best._replace(votes=votes)

    def _room(self, n: int, d: int) -> bool:
        return n > 2 * self.least_neighbors(d)

    def _default(self, cloud: PointCloud, d: int) -> int:
        """The neighborhood of a first attempt, large enough to hold the points together if any is."""
        if self.n_neighbors != "auto":
            self._check_enough(d)
            if label_components(cloud.near[:, : int(self.n_neighbors) + 1]).max() > 0:
                raise _in_parts(cloud, int(self.n_neighbors))
            return int(self.n_neighbors)
        grid = self._grid(cloud, d)
        return grid[min(3, len(grid) - 1)]

    def _grid(self, cloud: PointCloud, d: int) -> list[int]:
        """The values of k that hold the points together, of those to try."""
        least, most = self.least_neighbors(d), cloud.near.shape[1] - 1
        if most < least:
            raise InputError(
                f"n_samples={len(cloud.near)} is too few for {plural(d, 'dimension')}: at least {least + 1}"
            )
        largest = min(most, max(least + 1, len(cloud.near) // 4, min(most, 2 * least)))
        grid = sorted({round(k) for k in np.geomspace(min(least, largest), largest, SEARCHED)})
        whole = [k for k in grid if label_components(cloud.near[:, : k + 1]).max() == 0]
        if whole:
            self._warn_of_clumps(cloud, grid, whole[0])
            return whole
        while largest < most:  # points in clumps: whatever holds them together
            largest = min(most, largest + max(1, largest // 4))
            if label_components(cloud.near[:, : largest + 1]).max() == 0:
                return [largest]
        raise _in_parts(cloud, largest)

    def _warn_of_clumps(self, cloud: PointCloud, grid: list[int], first: int) -> None:
        """Say so if only large neighborhoods reach some points: they decide k for all the others."""
        usual = grid[min(3, len(grid) - 1)]
        sizes = np.bincount(label_components(cloud.near[:, : usual + 1]))
        if first > usual and len(sizes) > 1:
            warnings.warn(
                f"the neighbor graph of n_neighbors={usual} falls into {len(sizes)} parts (the second has {sizes[1]} "
                f"points), and only n_neighbors={first} and more hold it together, which may be too many: leave those "
                "points out, or set on_disconnected='largest'",
                stacklevel=6,
            )

    def _neighborhood(self, cloud: PointCloud, trial: Embedding) -> Embedding:
        """The embedding with the given k, or with the one that keeps near distances best."""
        if self.n_neighbors != "auto":
            return trial
        grid = self._grid(cloud, trial.d)
        found = {trial.k: trial}

        def score(i: int) -> float:
            k = grid[i]
            found[k] = found[k] if k in found else self._attempt(cloud, trial.d, k)
            return found[k].choice.score

        # The score has one hill: every second value, the largest only if it rises up to there, then beside the best.
        last = len(grid) - 1
        best = max(sorted({min(i, last) for i in (1, 3, 5)}), key=score)
        best = max(best, min(7, last), key=score) if best == min(5, last) else best
        best = max({max(best - 1, 0), best, min(best + 1, len(grid) - 1)}, key=score)
        self.searched_ = {str(k): round(found[k].choice.score, 4) for k in sorted(found)}
        return found[grid[best]]

    # Diagnosis --------------------------------------------------------------------------------------------------

    def _judge(self, cloud: PointCloud, found: Embedding) -> None:
        """How far to trust the codes, in numbers and in words."""
        z = self.codes_.numpy()
        self.isometry_ = isometry_score(rescaled_distances(z[cloud.judges], cloud.pairs), cloud.pairs.dx)
        kurtosis, error = excess_kurtosis((z - z.mean(0)) / z.std(0))
        self.kurtosis_, self.kurtosis_error_ = kurtosis.tolist(), error.tolist()
        expected, unwanted = found.values[: found.d].max(), found.values[found.d :]
        self.eigengap_ = float(unwanted.min() / max(expected, 1e-300)) if len(unwanted) else float("inf")
        self.diagnosis_ = [*self._said_of_data(cloud, found), *self._said_of_factors(kurtosis, error)]

    def _said_of_data(self, cloud: PointCloud, found: Embedding) -> list[str]:
        said = list(cloud.said)
        if self.smooth_:
            said.append(f"Images were blurred by {self.smooth_:g} pixels.")
        if self.latent_dim == "auto":
            said.append(self._said_of_dimension(found.d))
        said.append(f"The neighbor graph of {found.k} neighbors is in one piece.")
        if len(cloud.points) < FEW:
            said.append(f"{plural(len(cloud.points), 'point')} are too few to judge an embedding by.")
            return said
        how = "keeps near distances" if self.isometry_ > 0.9 else "keeps near distances roughly"
        if self.isometry_ < 0.7:
            how = "does not keep near distances: the data are not isometric to so few factors, or too sparse"
        seen = "as the method sees them, " + ("blurred and projected" if self.smooth_ else "projected")
        seen = f" of observations {seen}" if self.smooth_ or self.project else ""
        said.append(f"The embedding {how} (local isometry {self.isometry_:.3f}{seen}; 1 is perfect).")
        if len(np.unique(np.round(cloud.pairs.dx / cloud.pairs.dx.max(), 3))) < COARSE:
            said.append(
                "The points lie on a coarse grid, whose near distances take few values: that score says little."
            )
        if found.choice.columns != tuple(range(found.d)):
            chosen = ", ".join(str(c + 1) for c in found.choice.columns)
            said.append(f"Eigenvectors {chosen} were taken: earlier ones only repeat a factor.")
        elif self.eigengap_ < 2:
            said.append(
                f"The eigenvalues have no gap after {found.d} ({self.eigengap_:.1f} times): other choices are near."
            )
        return said

    def _said_of_dimension(self, d: int) -> str:
        votes = [round(self.dimension_["likelihood"]), self.dimension_["gap"]]
        sure = "sure" if votes == [d, d] else "fairly sure" if d in votes else "not sure"
        listed = ", ".join(f"{name} {value}" for name, value in self.dimension_.items())
        return f"The data seem to have {plural(d, 'dimension')} ({sure}; {listed})."

    def _said_of_factors(self, kurtosis: np.ndarray, error: np.ndarray) -> list[str]:
        gaussian = [j for j, (k, e) in enumerate(zip(kurtosis, error, strict=True)) if abs(k) < 4 * e or abs(k) < 0.1]
        texts = [
            f"Factor {j + 1} is close to Gaussian (excess kurtosis {kurtosis[j]:.2f} +- {2 * error[j]:.2f})"
            for j in gaussian
        ]
        # One Gaussian factor is found by the others being found; two can be turned into each other.
        return [f"{text}: ICA cannot fix its rotation." for text in texts] if len(gaussian) > 1 else []


def _some(n: int, rng: np.random.Generator) -> Tensor:
    """Row numbers that the main directions are learned from."""
    return torch.from_numpy(np.sort(rng.choice(n, min(n, SUBSET), replace=False)))


def _in_parts(cloud: PointCloud, k: int) -> InputError:
    """Of a graph in parts, each would look like a factor of its own."""
    sizes = np.bincount(label_components(cloud.near[:, : k + 1])).tolist()
    shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
    return InputError(
        f"the neighbor graph of n_neighbors={k} falls into {len(sizes)} parts (sizes {shown}), and each would "
        "look like a factor of its own: raise n_neighbors, learn from each part alone, or take the largest "
        "(on_disconnected='largest')"
    )
