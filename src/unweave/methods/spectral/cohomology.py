"""One-dimensional persistent cohomology of a Vietoris-Rips complex: the loops of a finite metric space.

De Silva, Morozov and Vejdemo-Johansson (2011), Persistent cohomology and circular coordinates. Nearly all edges are
paired at once, with the first triangle whose longest edge they are (apparent pairs; Bauer, 2021, Ripser). Only the
few others are reduced.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PRIME = 47  # coefficients are integers modulo this; small multiples of a loop stay different from zero
SCAN_LENGTH = 4096  # triangles searched at a time for the first nonzero coefficient


class Cocycle(NamedTuple):
    """A loop: an integer on every edge (i, j), whose sum around the loop is its winding number."""

    birth: float  # length of the edges that close it
    death: float  # side of the triangles that fill it
    i: np.ndarray  # (e,)
    j: np.ndarray  # (e,)
    value: np.ndarray  # (e,)

    @property
    def persistence(self) -> float:
        """Return death divided by birth: 1 for an accident of sampling, large for a loop."""
        return self.death / max(self.birth, 1e-300)


class RipsComplex:
    """Edges and triangles of a metric space in the order of their longest side, and the coboundary of each edge."""

    def __init__(self, distances: np.ndarray) -> None:
        """Build the complex of distances (m, m) up to the radius at which some point reaches all others.

        No loop lives beyond that radius.
        """
        m = len(distances)
        i, j = np.triu_indices(m, 1)
        length = distances[i, j]
        order = np.argsort(length, kind="stable")
        order = order[length[order] <= distances.max(1).min()]
        self.i, self.j, self.length = i[order], j[order], length[order]
        rank = np.full((m, m), -1)
        rank[self.i, self.j] = rank[self.j, self.i] = np.arange(len(order))
        near = rank >= 0
        ij, k = np.nonzero(near[self.i] & near[self.j] & (np.arange(m) > self.j[:, None]))
        ik, jk = rank[self.i[ij], k], rank[self.j[ij], k]
        longest = np.maximum(np.maximum(ij, ik), jk)
        order = np.argsort(longest, kind="stable")
        self.longest = longest[order]  # (t,): longest edge of each triangle
        edges = np.concatenate([jk[order], ik[order], ij[order]])  # boundary of (i, j, k): (j, k) - (i, k) + (i, j)
        by_edge = np.argsort(edges, kind="stable")
        self._triangles = np.tile(np.arange(len(order)), 3)[by_edge]
        self._signs = np.repeat([1, -1, 1], len(order))[by_edge]
        self._starts = np.searchsorted(edges[by_edge], np.arange(len(self.i) + 1))

    def coboundary(self, edge: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the triangles at an edge and the signs with which it is in their boundaries."""
        at = slice(self._starts[edge], self._starts[edge + 1])
        return self._triangles[at], self._signs[at]


class Column(NamedTuple):
    """A cochain, by edge, and the first triangle and coefficient of its coboundary (-1: it has none)."""

    coefficients: dict[int, int]
    pivot: int
    pivot_value: int


def persistent_loops(distances: np.ndarray) -> list[Cocycle]:
    """Return the loops of a connected metric space, from its distances (m, m), the most persistent first."""
    space = RipsComplex(distances)
    paired, first = np.unique(space.longest, return_index=True)
    owner = np.full(len(space.longest), -1)  # the edge whose coboundary begins with a triangle
    owner[first] = paired
    rest = np.setdiff1d(np.arange(len(space.i)), paired)
    rest = rest[~_joins_components(space.i[rest], space.j[rest], len(distances))]
    reduced: dict[int, Column] = {}
    cocycles = []
    for edge in rest[::-1].tolist():
        column = _reduce_column(space, edge, owner, reduced)
        if column.pivot < 0:
            continue  # it would live forever, which the radius of the complex excludes
        owner[column.pivot], reduced[edge] = edge, column
        used = np.array(sorted(column.coefficients))
        value = np.array([column.coefficients[e] for e in used.tolist()])
        value = (value + PRIME // 2) % PRIME - PRIME // 2  # integers near zero
        death = float(space.length[space.longest[column.pivot]])
        cocycles.append(Cocycle(float(space.length[edge]), death, space.i[used], space.j[used], value))
    return sorted(cocycles, key=lambda cocycle: -cocycle.persistence)


def _joins_components(i: np.ndarray, j: np.ndarray, m: int) -> np.ndarray:
    """Return which edges (i, j), in order of length, connect points that shorter ones do not, (e,) each."""
    component = np.arange(m)
    joins = np.zeros(len(i), bool)
    for edge, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        if component[a] != component[b]:
            component[component == component[b]] = component[a]
            joins[edge] = True
    return joins


def _reduce_column(space: RipsComplex, edge: int, owner: np.ndarray, reduced: dict[int, Column]) -> Column:
    """Add multiples of other columns to the coboundary of an edge until no other begins with the same triangle."""
    vector = np.zeros(len(space.longest), np.int64)
    coefficients: dict[int, int] = {}

    def add(column: dict[int, int], factor: int) -> None:
        for other, value in column.items():
            triangles, signs = space.coboundary(other)
            vector[triangles] = (vector[triangles] + factor * value * signs) % PRIME
            coefficients[other] = (coefficients.get(other, 0) + factor * value) % PRIME

    add({edge: 1}, 1)
    start = 0
    while (pivot := _first_nonzero(vector, start)) >= 0:
        start, other = pivot, int(owner[pivot])
        if other < 0:
            break
        column = reduced.get(other) or _apparent_column(space, other, pivot)
        add(column.coefficients, -int(vector[pivot]) * pow(column.pivot_value, -1, PRIME) % PRIME)
    kept = {e: value for e, value in coefficients.items() if value}
    return Column(kept, pivot, int(vector[pivot]))


def _apparent_column(space: RipsComplex, edge: int, pivot: int) -> Column:
    """Return the column of an edge that is paired with its first triangle."""
    triangles, signs = space.coboundary(edge)
    return Column({edge: 1}, pivot, int(signs[triangles == pivot][0]) % PRIME)


def _first_nonzero(vector: np.ndarray, start: int) -> int:
    """Return the first nonzero place of a vector from `start` on; -1 if there is none."""
    for begin in range(start, len(vector), SCAN_LENGTH):
        places = np.flatnonzero(vector[begin : begin + SCAN_LENGTH])
        if len(places):
            return begin + int(places[0])
    return -1
