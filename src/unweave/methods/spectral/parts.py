"""Data in separate parts, as a discrete factor makes them: each part is embedded on its own, and parts are aligned.

A hue moves every pixel of a wall, so that the neighbor graph of images with several hues has a part for each. Inside of
a part the other factors vary as in all others. Their codes there are free in order and sign. Of two parts that are
aligned, observations with equal codes differ from the mean of their part alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial import cKDTree
from sklearn.base import clone

from unweave.methods.linear import unmix
from unweave.methods.spectral.base import SpectralICA
from unweave.methods.spectral.neighbors import find_neighbors, label_components
from unweave.utils.errors import InputError

EXTRA_NEIGHBORS = 2  # of the graph whose components are the parts, besides those that an embedding needs
MIN_PART = 30  # points of a part
NEAREST_PARTS = 3  # aligned parts that another one is compared with
N_REVISIONS = 2  # rounds in which every part is aligned again, with more of the others
REVISED_PARTS = 8  # others in these rounds


class Part(NamedTuple):
    """A component of the neighbor graph."""

    rows: np.ndarray  # (p,): its points
    change: np.ndarray  # (p, D): their differences from its mean
    center: np.ndarray  # (D,): its mean
    codes: np.ndarray  # (p, d): standardized, with order and signs of their own
    isometry: float


class AlignedParts(NamedTuple):
    """Codes of points in separate parts."""

    codes: np.ndarray  # (n, d): of the factors that vary inside of parts
    labels: np.ndarray  # (n,): the part of each point; 0 is the largest
    centers: np.ndarray  # (parts, D)
    agreement: float  # mean cosine of changes in aligned parts at equal codes; 1 where parts differ by a shift alone

    def part_codes(self, count: int, seed: int = 0) -> np.ndarray:
        """Return codes of what differs between parts, by linear ICA of their centers, (n, count)."""
        centered = self.centers[self.labels] - self.centers[self.labels].mean(0)
        U, S, _ = np.linalg.svd(centered, full_matrices=False)
        y = torch.from_numpy(U[:, :count] * S[:count])
        return (y @ unmix(y, seed).T).numpy()


def align_parts(points: np.ndarray, method: SpectralICA, d: int) -> AlignedParts:
    """Embed each part of a point cloud (n, D) by a method in d dimensions, and align their codes.

    Parts are aligned one after the other, the most certain one first, each to the nearest ones that are aligned.

    Raises:
        InputError: If a part has too few points.
    """
    parts = embed_parts(points, method, d)
    centers = np.stack([part.center for part in parts])
    distance = np.linalg.norm(centers[:, None] - centers, axis=2)  # between parts
    first = int(np.argmax([part.isometry for part in parts]))
    aligned = {first: parts[first].codes}
    while len(aligned) < len(parts):
        trials = []
        for i in set(range(len(parts))) - set(aligned):
            near = sorted(aligned, key=lambda j, i=i: distance[i, j])[:NEAREST_PARTS]  # type: ignore[misc]
            trials.append((*align_part(parts[i], [parts[j] for j in near], [aligned[j] for j in near]), i))
        _, codes, i = max(trials, key=lambda trial: trial[0])
        aligned[i] = codes
    agreement = np.ones(len(parts))
    for i in [*range(len(parts))] * N_REVISIONS if len(parts) > 1 else ():
        near = sorted(set(aligned) - {i}, key=lambda j: distance[i, j])[:REVISED_PARTS]
        agreement[i], aligned[i] = align_part(parts[i], [parts[j] for j in near], [aligned[j] for j in near])
    codes, labels = np.empty((len(points), d)), np.empty(len(points), int)
    for i, part in enumerate(parts):
        codes[part.rows], labels[part.rows] = aligned[i], i
    return AlignedParts(codes, labels, centers, float(agreement.mean()))


def embed_parts(points: np.ndarray, method: SpectralICA, d: int) -> list[Part]:
    """Return the components of the neighbor graph of points (n, D), largest first, each with codes of its own."""
    k = min(method.min_neighbors(d) + EXTRA_NEIGHBORS, len(points) - 1)
    labels = label_components(find_neighbors(points, k))
    sizes = np.bincount(labels)
    if sizes.min() < MIN_PART:
        raise InputError(f"of {len(sizes)} parts the smallest has {sizes.min()} points: at least {MIN_PART} are needed")
    own = clone(method).set_params(latent_dim=d, smooth=0.0, project=0, landmarks=0, loops="never")
    parts = []
    for i in range(len(sizes)):
        rows = np.flatnonzero(labels == i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about single parts, of which there are many
            codes = own.fit(points[rows]).codes_.numpy()
        center = points[rows].mean(0)
        standardized = (codes - codes.mean(0)) / codes.std(0)
        parts.append(Part(rows, points[rows] - center, center, standardized, own.isometry_))
    return parts


def align_part(part: Part, others: Sequence[Part], codes: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """Return the order and signs of a part's codes that agree best with other parts, and how well they agree.

    Args:
        part: The part to align.
        others: Parts that are aligned.
        codes: The codes of those, (p, d) each.
    """
    tree, change = cKDTree(np.concatenate(codes)), np.concatenate([other.change for other in others])
    best, best_codes = -np.inf, part.codes
    for order, signs in list_orders(part.codes.shape[1]):
        turned = part.codes[:, order] * signs
        theirs = change[tree.query(turned)[1]]
        agreement = (part.change * theirs).sum() / np.sqrt((part.change**2).sum() * (theirs**2).sum())
        if agreement > best:
            best, best_codes = float(agreement), turned
    return best, best_codes


def list_orders(d: int) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield every order of d codes, with all their signs (d,)."""
    for order in permutations(range(d)):
        for signs in product((1.0, -1.0), repeat=d):
            yield list(order), np.array(signs)
