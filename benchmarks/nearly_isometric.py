"""Manifolds that are only nearly isometric to their factors, and some that are not at all, with the factors known.

Strips along a curve whose speed depends on their short side, in several ways, with several densities of the factors,
two and three of them, embedded in 30 dimensions by an orthogonal map or a smooth one, with and without noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from unweave.datasets import Faces

WIDTH = 30  # dimensions of the observations
Sample = tuple[np.ndarray, np.ndarray]


def planar_curve(kind: str, u: np.ndarray, length: float) -> np.ndarray:
    """A curve of unit speed at arc lengths u from 0 to its length."""
    s = np.linspace(0, 1, 10_001)
    angle = {"arc": 2.5 * s, "hook": 4 * s**2, "snake": 3 * np.sin(3 * s), "wave": 1.2 * np.cos(8 * s)}.get(kind)
    if kind == "spiral":
        turn = 3 + 9 * s
        points = turn[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    elif kind == "parabola":
        points = np.stack([3 * (s - 0.5), 9 * (s - 0.5) ** 2], 1)
    else:
        assert angle is not None
        points = np.cumsum(np.stack([np.cos(angle), np.sin(angle)], 1), 0)
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    points, arc = points * length / arc[-1], arc * length / arc[-1]
    return np.stack([np.interp(u, arc, column) for column in points.T], 1)


DENSITIES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "triangular": lambda rng, n: rng.triangular(0, 0.5, 1, n),
    "skew": lambda rng, n: rng.beta(1.5, 2.5, n),
    "two ends": lambda rng, n: rng.beta(0.6, 0.6, n),
}


@dataclass(frozen=True)
class Strip:
    """A strip of two factors, u along the curve and v across, or of three."""

    curve: str = "arc"
    ratio: float = 10.0
    e: float = 0.1
    """How far the speed along one side depends on the other: 0 is isometric."""
    shape: str = "speed"
    third: float = 0.0
    """Length of a third side; 0 for none."""
    noise: float = 0.0
    density: tuple[str, str] = ("uniform", "uniform")
    bend: float = 0.0
    """Frequency of a smooth nonlinear map into the space of observations; 0 for an orthogonal one."""
    n: int = 1_500
    seed: int = 0

    def draw(self) -> Sample:
        """Observations and factors."""
        rng = np.random.default_rng(self.seed)
        share, v = (DENSITIES[name](rng, self.n) for name in self.density)
        u = self.ratio * share
        c = planar_curve(self.curve, u, self.ratio)
        factors = [u, v]
        if self.shape == "speed":
            columns = [(1 + self.e * (v - 0.5))[:, None] * c, v]
        elif self.shape == "centered":
            columns = [(1 + self.e * (v - 0.5))[:, None] * (c - c.mean(0)), v]
        elif self.shape == "width":  # across is longer where u is large
            columns = [c, (1 + 2 * self.e * (share - 0.5)) * v]
        elif self.shape == "both":
            columns = [(1 + self.e * (v - 0.5))[:, None] * c, (1 + self.e * np.cos(3 * share)) * v]
        elif self.shape == "uneven":  # the speed along the curve changes, too
            moved = self.ratio * (share + 0.3 * np.sin(2 * np.pi * share) / (2 * np.pi))
            columns = [(1 + self.e * (v - 0.5))[:, None] * planar_curve(self.curve, moved, self.ratio), v]
        elif self.shape == "curved across":
            columns = [(1 + self.e * (v - 0.5))[:, None] * c, np.sin(2 * v), np.cos(2 * v)]
        elif self.shape == "dependent":  # the second factor has a range that the first one sets
            v = (1 - self.e + self.e * share) * v
            factors, columns = [u, v], [c, v]
        elif self.shape == "disc":  # neither factor has its range without the other
            r, angle = np.sqrt(share), 2 * np.pi * v
            factors = [self.ratio * r * np.cos(angle), r * np.sin(angle)]
            columns = [planar_curve(self.curve, factors[0] + self.ratio, 2 * self.ratio), factors[1]]
        elif self.shape == "gaussian":
            factors = [rng.normal(size=self.n), rng.normal(size=self.n)]
            columns = [np.cos(factors[0] / 3), np.sin(factors[0] / 3), factors[1] / 3]
        elif self.shape == "sheared":  # coordinates of the surface that are no factors
            columns = [c, np.exp(self.e * (share + v)), v - share]
        else:
            raise ValueError(self.shape)
        if self.third:
            w = DENSITIES[self.density[1]](rng, self.n)
            columns[0] = columns[0] * (1 + self.e * (w - 0.5))[:, None]
            columns, factors = [*columns, self.third * w], [*factors, self.third * w]
        return self.embed(np.column_stack(columns), rng), np.column_stack(factors)

    def embed(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Put a surface (n, few) into the space of observations, with noise."""
        y = x @ np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0][: x.shape[1]]
        if self.bend:
            waves = np.sin(x @ rng.normal(size=(x.shape[1], WIDTH)) * self.bend + rng.uniform(0, 6, WIDTH))
            y = y + 0.3 * np.sqrt(2 / WIDTH) * waves / self.bend
        return y + self.noise * rng.normal(size=y.shape)

    def __str__(self) -> str:
        plain = Strip()
        changed = {
            k: getattr(self, k) for k in ("third", "noise", "bend", "n") if getattr(self, k) != getattr(plain, k)
        }
        words = [self.curve, f"{self.ratio:g}:1", f"e={self.e:g}", self.shape if self.shape != "speed" else ""]
        words += [f"{key}={value:g}" for key, value in changed.items()]
        words += ["x".join(self.density)] if self.density != plain.density else []
        return ", ".join(word for word in words if word)


@dataclass(frozen=True)
class FaceBand:
    """Generated faces along a strong direction and a weak one: a band of the second factor, or of the first."""

    manifold: str
    weak: int
    width: float = 0.4

    def draw(self) -> Sample:
        data = Faces(manifold=self.manifold).load()  # type: ignore[arg-type]
        x, c = data.collect(3_000, torch.Generator().manual_seed(0))
        z = c.double().numpy()
        rows = np.abs(z[:, self.weak]) <= self.width * np.abs(z[:, self.weak]).max()
        return x.numpy()[rows], z[rows]

    def __str__(self) -> str:
        return f"faces-{self.manifold}, factor {self.weak + 1} in {self.width:g} of its range"
