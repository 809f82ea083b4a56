"""Automatic choice of the dimension and the neighborhood size, by the local isometry of trial embeddings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Literal

import numpy as np

from unweave.methods.spectral.dimension import gap_dimension, likelihood_dimension, likelihood_interval
from unweave.methods.spectral.neighbors import is_connected, label_components
from unweave.methods.spectral.point_cloud import Embedding, PointCloud
from unweave.utils.errors import InputError, plural

MAX_NEIGHBORS = 48  # largest neighborhood that is tried
N_SIZES = 8  # neighborhood sizes on the grid
FIRST_SIZE = 3  # place on the grid of the size that is tried first
MAX_DIMENSION = 8
DIMENSION_NEIGHBORS = 20  # of the estimators of the dimension
TIE_TOLERANCE = 0.01  # isometry below the best by this much counts as equal, and fewer dimensions win
DOUBTFUL_ISOMETRY = 0.9  # below which more dimensions are tried, and the confidence in codes decides
RIVAL_ISOMETRY = 0.4  # of fewer dimensions, from which the confidence in codes decides
MAX_DOUBTFUL_DIMENSION = 4  # tried there at least
CONFIDENCE_TOLERANCE = 0.05  # confidence below the best by this much counts as equal, and fewer dimensions win
NOISY_ISOMETRY = 0.7  # below which noise decides near distances, so that the confidence in codes chooses neighborhoods
MIN_CONFIDENCE_GAIN = 0.1  # of codes over the isometry of points, that shows noise
MIN_CONFIDENCE_POINTS = 200  # fewer points do not show how far codes can be trusted


@dataclass(frozen=True)
class EmbeddingSearch:
    """The search for an embedding of one point cloud over dimensions d and neighborhood sizes k."""

    cloud: PointCloud
    embed: Callable[[PointCloud, int, int], Embedding]
    """Embeds the cloud in d dimensions with k neighbors: (cloud, d, k)."""
    min_neighbors: Callable[[int], int]
    """Smallest neighborhood that works in d dimensions."""
    n_neighbors: int | Literal["auto"]
    confidence: Callable[[PointCloud, Embedding], float] | None = None
    """How far the codes of an embedding can be trusted; None where that cannot be measured."""
    _embeddings: dict[tuple[int, int], Embedding] = field(default_factory=dict)
    _confidences: dict[tuple[int, int], float] = field(default_factory=dict)

    def choose_dimension(self, latent_dim: int | Literal["auto"]) -> Embedding:
        """Return a first embedding, in the number of dimensions asked for or in the most isometric one."""
        if latent_dim != "auto":
            return self.embedding(int(latent_dim), self.first_size(int(latent_dim)))
        points = self.cloud.points
        n, features = points.shape
        allowed = [d for d in range(2, MAX_DIMENSION + 1) if d <= features and n > 2 * self.min_neighbors(d)]
        largest = max([1, *allowed])
        near = self.cloud.neighbors[:, : min(DIMENSION_NEIGHBORS, n - 1) + 1]
        likelihood, gap = likelihood_dimension(points.numpy(), near), gap_dimension(points, near, largest)
        estimates = (np.floor(likelihood + 0.25), np.ceil(likelihood - 0.25), gap)
        trials = self._try_dimensions({min(max(1, int(d)), largest) for d in estimates})
        if max(e.choice.score for e in trials.values()) < DOUBTFUL_ISOMETRY:  # estimators fail: try the usual ones
            trials |= self._try_dimensions(range(1, min(MAX_DOUBTFUL_DIMENSION, largest) + 1))
        scores = {d: trials[d].choice.score for d in sorted(trials)}
        best = self._choose_trial(trials)
        low, high = likelihood_interval(points.numpy(), near)
        lowest, highest = min(best.d, gap, floor(low + 0.35)), max(best.d, gap, ceil(high - 0.25))
        votes = {"likelihood": round(likelihood, 2), "lowest": max(1, lowest), "highest": highest, "gap": gap}
        votes |= {f"isometry in {d} dimensions": round(score, 3) for d, score in scores.items()}
        return best._replace(votes=votes)

    def _try_dimensions(self, dimensions: Iterable[int]) -> dict[int, Embedding]:
        """Return first embeddings in numbers of dimensions."""
        return {d: self.embedding(d, self.first_size(d)) for d in dimensions}

    def _choose_trial(self, trials: Mapping[int, Embedding]) -> Embedding:
        """Return the embedding of the fewest dimensions that keep near distances, or whose codes can be trusted.

        Noise lowers the isometry of the right number of dimensions, and so does a small factor that is lost among
        functions of a large one. Then embeddings are compared by the confidence in their codes.
        """
        scores = {d: trial.choice.score for d, trial in trials.items()}
        fewest = fewest_dimensions(scores, TIE_TOLERANCE)
        rivals = [d for d in scores if d < fewest and scores[d] > RIVAL_ISOMETRY]
        if not self._measures_confidence or (scores[fewest] >= DOUBTFUL_ISOMETRY and not rivals):
            return trials[fewest]
        best = dict(trials)
        if scores[fewest] < NOISY_ISOMETRY:  # noise wants large neighborhoods
            largest = {d: self.embedding(d, self.connected_sizes(d)[-1]) for d in trials}
            best = {d: max(trials[d], largest[d], key=self._confidence) for d in trials}
        return best[fewest_dimensions({d: self._confidence(e) for d, e in best.items()}, CONFIDENCE_TOLERANCE)]

    def choose_neighbors(self, first: Embedding) -> tuple[Embedding, dict[str, float]]:
        """Return the best embedding over neighborhood sizes, and the isometry of every size that was tried.

        The best one is the most isometric one. Where noise decides that, it is the one with the highest confidence.
        """
        if self.n_neighbors != "auto":
            return first, {}
        sizes = self.connected_sizes(first.d)
        best = self._search_sizes(first.d, sizes, (1, 3, 5), lambda e: e.choice.score)
        if best.choice.score < NOISY_ISOMETRY and self._measures_confidence:
            robust = self._search_sizes(first.d, sizes, (3, 5, 7), self._confidence)
            best = robust if self._confidence(robust) > best.choice.score + MIN_CONFIDENCE_GAIN else best
        tried = {k: e.choice.score for (d, k), e in self._embeddings.items() if d == first.d}
        return best, {str(k): round(tried[k], 4) for k in sorted(tried)}

    def _search_sizes(
        self, d: int, sizes: list[int], start: tuple[int, ...], score: Callable[[Embedding], float]
    ) -> Embedding:
        """Return the embedding in d dimensions with the highest score, which has one maximum over the sizes.

        Sizes at the places `start` are tried, the largest if the score rises up to there, then those on both sides.
        """

        def score_of(i: int) -> float:
            return score(self.embedding(d, sizes[i]))

        last = len(sizes) - 1
        best = max(sorted({min(i, last) for i in start}), key=score_of)
        best = max(best, min(7, last), key=score_of) if best == min(5, last) else best
        best = max({max(best - 1, 0), best, min(best + 1, last)}, key=score_of)
        return self.embedding(d, sizes[best])

    def embedding(self, d: int, k: int) -> Embedding:
        """Return the embedding in d dimensions with k neighbors, computed once."""
        if (d, k) not in self._embeddings:
            self._embeddings[d, k] = self.embed(self.cloud, d, k)
        return self._embeddings[d, k]

    @property
    def _measures_confidence(self) -> bool:
        return self.confidence is not None and len(self.cloud.points) >= MIN_CONFIDENCE_POINTS

    def _confidence(self, embedding: Embedding) -> float:
        """Return the confidence in the codes of an embedding, computed once."""
        assert self.confidence is not None
        key = embedding.d, embedding.k
        if key not in self._confidences:
            self._confidences[key] = self.confidence(self.cloud, embedding)
        return self._confidences[key]

    def first_size(self, d: int) -> int:
        """Return the neighborhood size of a first embedding; its graph is connected."""
        if self.n_neighbors == "auto":
            sizes = self.connected_sizes(d)
            return sizes[min(FIRST_SIZE, len(sizes) - 1)]
        check_min_neighbors(self.n_neighbors, self.min_neighbors(d), d)
        if not is_connected(self.cloud.neighbors, self.n_neighbors):
            raise self._disconnected(self.n_neighbors)
        return int(self.n_neighbors)

    def connected_sizes(self, d: int) -> list[int]:
        """Return the neighborhood sizes to try, of those whose graph is connected."""
        least, most = self.min_neighbors(d), self.cloud.neighbors.shape[1] - 1
        n = len(self.cloud.neighbors)
        if most < least:
            raise InputError(f"n_samples={n} is too few for {plural(d, 'dimension')}: at least {least + 1}")
        largest = min(most, max(least + 1, n // 4, min(most, 2 * least)))
        grid = sorted({round(k) for k in np.geomspace(min(least, largest), largest, N_SIZES)})
        connected = [k for k in grid if is_connected(self.cloud.neighbors, k)]
        if connected:
            self._warn_of_clumps(grid, connected[0])
            return connected
        while largest < most:  # points in clumps: take whatever size connects them
            largest = min(most, largest + max(1, largest // 4))
            if is_connected(self.cloud.neighbors, largest):
                return [largest]
        raise self._disconnected(largest)

    def _warn_of_clumps(self, grid: list[int], smallest: int) -> None:
        """Warn if only large neighborhoods reach some points: these decide k for all others."""
        usual = grid[min(FIRST_SIZE, len(grid) - 1)]
        sizes = np.bincount(label_components(self.cloud.neighbors[:, : usual + 1]))
        if smallest > usual and len(sizes) > 1:
            warnings.warn(
                f"the neighbor graph of n_neighbors={usual} falls into {len(sizes)} parts (the second has {sizes[1]} "
                f"points). Only n_neighbors={smallest} and more connect it, which may be too many. Leave those "
                "points out, or set on_disconnected='largest'",
                stacklevel=6,
            )

    def _disconnected(self, k: int) -> InputError:
        """Return the error for a graph in several components."""
        sizes = np.bincount(label_components(self.cloud.neighbors[:, : k + 1])).tolist()
        shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
        return InputError(
            f"the neighbor graph of n_neighbors={k} falls into {len(sizes)} parts (sizes {shown}), and each would "
            "look like a factor of its own: raise n_neighbors, learn from each part alone, or take the largest "
            "(on_disconnected='largest')"
        )


def fewest_dimensions(scores: Mapping[int, float], tolerance: float) -> int:
    """Return the fewest dimensions whose score is close to the highest.

    Noise fills all dimensions, so more of them always keep its distances a little better.
    """
    highest = max(scores.values())
    return min(d for d, score in scores.items() if score > highest - tolerance)


def check_min_neighbors(n_neighbors: int, least: int, d: int) -> None:
    """Raise an error if a neighborhood is too small for d dimensions."""
    if n_neighbors < least:
        text = f"n_neighbors={n_neighbors} is too few for latent_dim={d}"
        raise InputError(f"{text}: a neighborhood needs at least {least}")
