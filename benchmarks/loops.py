"""Angles of closed loops by hessian-ica: python -m benchmarks.loops [NAME ...]

turntables: an object turned around, 36 to 360 views of 64 x 64, evenly, at random angles or with a varying speed; the
    median error of the angle in degrees, after the best offset and direction.
shuffled: the same views in random order, and new views between them.
products: a turntable under changing light, and cylinders.
manifolds: which closed and open curves, sheets, bands and others are recognized.
cost: seconds of a fit with and without the search for loops, on data without any.
Without an argument, all of them.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from tests.helpers import swiss_roll
from tests.turntable import angle_error, photograph, random_object, symmetric_object

from benchmarks.spectral import sheet, squares
from unweave.methods import HessianICA

OBJECTS = range(4)


def draw_angles(n: int, kind: str, seed: int) -> np.ndarray:
    """Ascending angles: in even steps, uniformly at random, or four times denser on one side than on the other."""
    rng = np.random.default_rng(seed)
    if kind == "even":
        return np.arange(n) * 2 * np.pi / n
    if kind == "random":
        return np.sort(rng.uniform(0, 2 * np.pi, n))
    grid = np.linspace(0, 2 * np.pi, 4_001)
    return np.interp(np.arange(n) / n, (grid + 0.6 * np.sin(grid)) / (2 * np.pi), grid)


def fitted(x: np.ndarray, **settings: Any) -> HessianICA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HessianICA(**settings).fit(x)


def outcome(method: HessianICA, x: np.ndarray, angles: np.ndarray, period: float = 2 * np.pi) -> str:
    """The error of the angle, or how many linear codes there are instead."""
    if method.code_periods()[0] is None:
        return f"{method.latent_dim_} lin."
    return f"{angle_error(method.transform(x)[:, 0], angles, period):.1f}"


def best_correlation(factor: np.ndarray, codes: np.ndarray) -> float:
    return max((abs(np.corrcoef(factor, code)[0, 1]) for code in codes.T), default=0.0)


def noisy(x: np.ndarray, noise: float, seed: int) -> np.ndarray:
    return x + noise * np.random.default_rng(seed).normal(size=x.shape).astype(x.dtype)


def turntables() -> None:
    print("| views | angles | noise | " + " | ".join(f"object {i + 1}" for i in OBJECTS) + " |")
    print("|---|---|---|" + "---|" * len(OBJECTS))
    for n in (24, 36, 72, 120, 360):
        for kind in ("even", "random", "varying"):
            views = [photograph(random_object(i), draw_angles(n, kind, i)) for i in OBJECTS]
            for noise in (0.0, 0.05, 0.15):
                pairs = [(noisy(x, noise, i), draw_angles(n, kind, i)) for i, x in zip(OBJECTS, views, strict=True)]
                cells = [outcome(fitted(x), x, angles) for x, angles in pairs]
                print(f"| {n} | {kind} | {noise} | " + " | ".join(cells) + " |", flush=True)
    for fold in (2, 4):
        angles = draw_angles(72, "even", 0)
        x = noisy(photograph(symmetric_object(0, fold), angles), 0.01, 0)
        cell = outcome(fitted(x), x, angles, 2 * np.pi / fold)
        print(f"an object of {fold}-fold symmetry, 72 even views, noise 0.01: {cell} degrees modulo {360 // fold}")


def shuffled() -> None:
    rng = np.random.default_rng(0)
    for n in (36, 72, 120):
        angles = draw_angles(n, "even", 0)
        between = angles + np.pi / n
        for i in OBJECTS:
            x, new = photograph(random_object(i), angles), photograph(random_object(i), between)
            order = rng.permutation(n)
            straight, mixed = fitted(x), fitted(x[order])
            rising = np.diff(straight.transform(x)[:, 0])
            text = f"in order: first {straight.transform(x)[0, 0]:.2f}, {(rising > 0).mean():.0%} of steps rise"
            first, second = outcome(mixed, x[order], angles[order]), outcome(straight, new, between)
            print(
                f"{n} views, object {i + 1}: shuffled {first} degrees, new views {second} degrees, {text}", flush=True
            )


def products() -> None:
    for n_angles, n_lights in ((36, 5), (36, 9), (72, 9)):
        for kind in ("even", "random"):
            n = n_angles * n_lights
            rng = np.random.default_rng(0)
            angles = np.repeat(draw_angles(n_angles, "even", 0), n_lights)
            lights = np.tile(np.linspace(-1, 1, n_lights), n_angles)
            if kind == "random":
                angles, lights = rng.uniform(0, 2 * np.pi, n), rng.uniform(-1, 1, n)
            cells = []
            for i in OBJECTS:
                x = photograph(random_object(i), angles, lights, size=32)
                method = fitted(x)
                codes = method.transform(x)
                light = best_correlation(lights, codes[:, 1:])
                cells.append(f"{outcome(method, x, angles)} ({method.latent_dim_} codes, light {light:.2f})")
            print(f"turntable x lamp, {n_angles} x {n_lights}, {kind}: " + "; ".join(cells), flush=True)
    for n in (300, 1_000, 3_000):
        for height in (0.3, 1.0, 4.0):
            for noise in (0.0, 0.03):
                rng = np.random.default_rng(n)
                z = rng.uniform(-1, 1, (n, 2)) * [np.pi, height]
                x = np.column_stack([np.cos(z[:, 0]), np.sin(z[:, 0]), z[:, 1], np.zeros((n, 7))])
                method = fitted(x + noise * rng.normal(size=x.shape))
                other = best_correlation(z[:, 1], method.codes_.numpy()[:, 1:])
                text = outcome(method, x, z[:, 0])
                print(
                    f"cylinder of height {2 * height}, {n} points, noise {noise}: {text}, height {other:.3f}",
                    flush=True,
                )


def circle(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def embed(z: np.ndarray, dimensions: int, frequency: float, seed: int = 0) -> np.ndarray:
    """A smooth random map, a sum of 200 waves."""
    rng = np.random.default_rng(seed)
    waves = np.cos(z @ rng.normal(size=(z.shape[1], 200)) * frequency + rng.uniform(0, 2 * np.pi, 200))
    return waves @ rng.normal(size=(200, dimensions)) / 200**0.5


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ring(n: int, inner: float, rng: np.random.Generator) -> np.ndarray:
    return circle(rng.uniform(0, 2 * np.pi, n)) * np.sqrt(rng.uniform(inner**2, 1, (n, 1)))


def with_hole(n: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    x = rng.uniform(-1, 1, (5 * n, 2))
    return x[np.linalg.norm(x, axis=1) > radius][:n]


def rolled(n: int, rng: np.random.Generator, *, hole: bool) -> np.ndarray:
    t, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=4 * n)), 21 * rng.uniform(size=4 * n)
    kept = ~((t > 9) & (t < 12) & (height > 8) & (height < 13)) if hole else np.full(4 * n, True)
    t, height = t[kept][:n], height[kept][:n]
    return np.stack([t * np.cos(t), height, t * np.sin(t)], 1)


def cases(n: int, seed: int) -> dict[str, tuple[str, np.ndarray]]:
    """What should come out (angle, angle+1, linear) and the points, by name."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 2 * np.pi, (2, n))
    u, v = np.linspace(0, 1, n), rng.uniform(-1, 1, n)
    square = rng.uniform(-1, 1, (n, 2))
    arms = np.where((u < 0.4)[:, None], np.stack([0 * u, 1 - u], 1), np.stack([0 * u + 0.2, u], 1))
    arms = np.where(((u >= 0.4) & (u < 0.6))[:, None], np.stack([u - 0.4, 0 * u + 0.6], 1), arms)
    wide = 1 + 0.4 * v * np.cos(a / 2)
    return {
        "circle": ("angle", circle(2 * np.pi * u[:-1])),
        "circle, random": ("angle", circle(a)),
        "ellipse 1:3, random": ("angle", circle(a) * [3, 1]),
        "bumpy curve": ("angle", circle(a) * (1 + 0.3 * np.cos(5 * a))[:, None]),
        "curve in 30": ("angle", embed(circle(a), 30, 1.0, seed)),
        "curve in 1000": ("angle", embed(circle(a), 1000, 2.0, seed)),
        "circle in 30, noise": ("angle", np.pad(circle(a), ((0, 0), (0, 28))) + 0.02 * rng.normal(size=(n, 30))),
        "half circle": ("linear", circle(np.pi * u)),
        "arc of 300": ("linear", circle(np.radians(300) * u)),
        "arc of 300, random": ("linear", circle(np.radians(300) * rng.uniform(size=n))),
        "U shape": ("linear", arms),
        "helix": ("linear", np.column_stack([circle(9 * u), 3 * u])),
        "square": ("linear", square),
        "swiss roll": ("linear", rolled(n, rng, hole=False)),
        "curved sheet in 50": ("linear", embed(square, 50, 1.0, seed)),
        "cube": ("linear", rng.uniform(size=(n, 3))),
        "normal in 5": ("linear", rng.normal(size=(n, 5))),
        "sphere": ("linear", unit(rng.normal(size=(n, 3)))),
        "small hole": ("linear", with_hole(n, 0.3, rng)),
        "large hole": ("linear", with_hole(n, 0.6, rng)),
        "roll with hole": ("linear", rolled(n, rng, hole=True)),
        "thick ring": ("linear", ring(n, 0.5, rng)),
        "cylinder": ("angle+1", np.column_stack([circle(a), v])),
        "low cylinder": ("angle+1", np.column_stack([circle(a), 0.4 * v])),
        "curved cylinder in 50": ("angle+1", embed(np.column_stack([circle(a), v]), 50, 0.5, seed)),
        "cylinder x interval": ("angle+2", np.column_stack([circle(a), v, rng.uniform(-1, 1, n)])),
        "flat torus": ("linear", np.column_stack([circle(a), circle(b)])),
        "torus": ("linear", np.column_stack([circle(a) * (3 + np.cos(b))[:, None], np.sin(b)])),
        "figure eight": ("linear", np.stack([np.sin(a), np.sin(a) * np.cos(a)], 1)),
        "Moebius band": ("linear", np.column_stack([circle(a) * wide[:, None], 0.4 * v * np.sin(a / 2)])),
    }


def manifolds() -> None:
    sizes, seeds = (36, 72, 200, 1_000), range(3)
    print("| manifold | should be | " + " | ".join(f"n = {n}" for n in sizes) + " |\n|---|---|" + "---|" * len(sizes))
    for name, (answer, _) in cases(10, 0).items():
        cells = []
        for n in sizes:
            results = []
            for seed in seeds:
                method = fitted(cases(n, seed)[name][1])
                more = method.latent_dim_ - 1
                results.append(f"angle+{more}" if method.code_periods()[0] else "linear")
            cells.append(", ".join(f"{results.count(r)} {r.removesuffix('+0')}" for r in sorted(set(results))))
        print(f"| {name} | {answer} | " + " | ".join(cells) + " |", flush=True)


def cost() -> None:
    images, rolls, flat = squares(3_000)[0], swiss_roll(3_000)[0], sheet(3_000, 3)[0]
    for name, x in (("images", images), ("swiss roll", rolls), ("three dimensions", flat)):
        times: dict[str, list[float]] = {"auto": [], "never": []}
        for _ in range(5):
            for loops, values in times.items():
                start = time.perf_counter()
                fitted(x, loops=loops)
                values.append(time.perf_counter() - start)
        auto, never = (float(np.min(values)) for values in times.values())
        print(
            f"3,000 points, {name}: {auto:.2f} s with the search for loops, {never:.2f} s without: {auto / never:.2f}"
        )


if __name__ == "__main__":
    parts = {f.__name__: f for f in (turntables, shuffled, products, manifolds, cost)}
    for part in sys.argv[1:] or parts:
        parts[part]()
