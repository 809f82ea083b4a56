"""When "does not keep near distances" is said, on manifolds with known factors: python -m benchmarks.isometry

Every manifold is sampled with few and many points, without and with noise. Codes are bad where their MCC is below 0.9.
The thresholds of the diagnosis are chosen on every second manifold and assessed on the others. A table of all cases,
then errors of three scores: the local isometry of the codes, the same for any linear map, and that of local averages.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.loops import embed
from unweave.data.containers import Mixing
from unweave.datasets import FlatSheet, SquaresXC, SquaresXY
from unweave.methods import HessianICA
from unweave.methods.spectral.isometry import averaged_isometry
from unweave.methods.spectral.neighbors import find_neighbors
from unweave.metrics import mcc

BAD = 0.9  # MCC below which codes are bad
# Points and noise, relative to the spread of the data.
SIZES = ((60, 0.0), (150, 0.0), (600, 0.0), (600, 0.02), (600, 0.1), (600, 0.3), (1_500, 0.05), (1_500, 0.2))
SCORES = ("local isometry", "up to a linear map", "local averages")

Sample = tuple[np.ndarray, np.ndarray]
Square = Callable[[np.ndarray], np.ndarray]


def roll(z: np.ndarray, *, isometric: bool) -> np.ndarray:
    """A Swiss roll: by arc length, or by angle."""
    grid = np.linspace(1.5 * np.pi, 4.5 * np.pi, 2_000)
    length = np.cumsum(np.sqrt(1 + grid**2))
    turn = np.interp((z[:, 0] + 1) / 2, (length - length[0]) / (length[-1] - length[0]), grid)
    turn = turn if isometric else 1.5 * np.pi * (2 + z[:, 0])
    return np.stack([turn * np.cos(turn), 10 * z[:, 1], turn * np.sin(turn)], 1)


def cap(z: np.ndarray) -> np.ndarray:
    """A part of a sphere."""
    r, a = 0.9 * np.linalg.norm(z, axis=1), np.arctan2(z[:, 1], z[:, 0])
    return np.stack([np.sin(r) * np.cos(a), np.sin(r) * np.sin(a), np.cos(r)], 1)


# Of two uniform factors from -1 to 1.
SURFACES: dict[str, Square] = {
    "square": lambda z: np.pad(z, ((0, 0), (0, 8))),
    "strip 8:1": lambda z: z * [8, 1],
    "roll": lambda z: roll(z, isometric=True),
    "roll by angle": lambda z: roll(z, isometric=False),
    "bowl": lambda z: np.column_stack([z, (z**2).sum(1)]),
    "deep bowl": lambda z: np.column_stack([z, 2 * (z**2).sum(1)]),
    "part of a sphere": cap,
    "saddle": lambda z: np.column_stack([z, z[:, 0] * z[:, 1]]),
    "stretched": lambda z: np.column_stack([np.exp(1.5 * z[:, 0]), z[:, 1]]),
    "waves 0.7": lambda z: embed(z, 30, 0.7),
    "waves 1.5": lambda z: embed(z, 30, 1.5),
    "waves 3": lambda z: embed(z, 30, 3.0),
    "waves 5": lambda z: embed(z, 30, 5.0),
    "paraboloid in 20": lambda z: np.column_stack([z, 0.3 * z**2, np.zeros((len(z), 16))]),
    "folded": lambda z: np.column_stack([np.abs(z[:, 0]), z[:, 1], 0.2 * z[:, 0]]),
    "wide and bent": lambda z: np.column_stack([np.cos(2 * z[:, 0]), np.sin(2 * z[:, 0]), 3 * z[:, 1]]),
}
SHEETS = {"helices 2": (2, 50), "helices 3": (3, 30), "helices 4": (4, 30), "helices 2 in 6": (2, 6)}
IMAGES: dict[str, tuple[Any, float, Any]] = {  # dataset, its blur, and `smooth` of the method
    "squares-xc, sharp": (SquaresXC, 0.0, 0.0), "squares-xc": (SquaresXC, 0.0, "auto"),
    "squares-xc, blurred": (SquaresXC, 2.0, "auto"), "squares-xy": (SquaresXY, 0.0, "auto"),
    "squares-xy, sharp": (SquaresXY, 0.0, 0.0), "squares-xy, blurred": (SquaresXY, 2.0, "auto"),
}  # fmt: skip
OTHERS = ("triangular", "exponential", "cube of 8, two codes", "cube of 5, two codes")
NAMES = (*SURFACES, *SHEETS, *IMAGES, *OTHERS)


def render(data: Mixing) -> Sample:
    assert data.sources is not None
    return data.render(data.sources).numpy(), data.sources.numpy()


def draw(name: str, n: int, noise: float) -> Sample:
    """Observations and their factors."""
    rng = np.random.default_rng(1)
    if name in IMAGES:
        cls, blur, _ = IMAGES[name]
        return render(cls(points=n, seed=1, size=32, side=10, blur=blur).load())
    if name in SHEETS:
        x, z = render(FlatSheet(dimensions=SHEETS[name][0], width=SHEETS[name][1], points=n, seed=1).load())
    elif name in SURFACES:
        z = rng.uniform(-1, 1, (n, 2))
        x = SURFACES[name](z)
    elif name.startswith("cube"):
        x = rng.uniform(size=(n, int(name.split()[2].strip(","))))
        z = x[:, :2]
    else:
        z = rng.triangular(-1, 0, 1, (n, 2)) if name == "triangular" else rng.exponential(size=(n, 2))
        x = np.pad(z, ((0, 0), (0, 3)))
    return x + noise * x.std() * rng.normal(size=x.shape), z


def assess(name: str, n: int, noise: float) -> tuple[float, tuple[float, float, float], bool]:
    """MCC of the codes, the three scores, and whether the diagnosis finds fault with them."""
    x, z = draw(name, n, noise)
    smooth: Any = IMAGES[name][2] if name in IMAGES else "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = HessianICA(latent_dim=z.shape[1], loops="never", smooth=smooth).fit(x)
    points, codes = method.points_.numpy(), method.codes_.numpy()
    rows = np.random.default_rng(0).permutation(len(codes))[:1_000]
    neighbors = find_neighbors(points, min(10, len(points) - 1))
    averaged = averaged_isometry(points, codes, neighbors, rows)
    linear = method.searched_[str(method.n_neighbors_)]
    blames = any("does not keep near distances" in text for text in method.diagnosis_)
    return mcc(z[: len(codes)], codes), (method.isometry_, linear, averaged), blames


def best_threshold(scores: np.ndarray, bad: np.ndarray) -> float:
    """The threshold below which bad codes are, with the fewest errors; the middle of the best ones."""
    candidates = np.linspace(0, 1, 201)
    errors = np.array([((scores < t) != bad).sum() for t in candidates])
    return float(np.median(candidates[errors == errors.min()]))


def main() -> None:
    print("| manifold | used to | points | noise | MCC | " + " | ".join(SCORES) + " | does not keep |")
    print("|---|---|---|---|---|" + "---|" * (len(SCORES) + 1))
    rows: list[tuple[bool, float, tuple[float, float, float], bool]] = []
    for i, name in enumerate(NAMES):
        for n, noise in SIZES:
            if name in IMAGES and noise:
                continue
            quality, scores, blames = assess(name, n, noise)
            rows.append((i % 2 == 0, quality, scores, blames))
            cells = " | ".join(f"{score:.3f}" for score in scores)
            use = "choose" if i % 2 == 0 else "assess"
            print(f"| {name} | {use} | {n} | {noise} | {quality:.3f} | {cells} | {blames} |", flush=True)
    choosing, bad = np.array([row[0] for row in rows]), np.array([row[1] < BAD for row in rows])
    print(
        "\n| score | threshold | errors where chosen | errors where assessed: missed | false |\n|---|---|---|---|---|"
    )
    for j, score_name in enumerate(SCORES):
        values = np.array([row[2][j] for row in rows])
        threshold = best_threshold(values[choosing], bad[choosing])
        wrong = ((values < threshold) != bad)[choosing]
        low, truth = (values < threshold)[~choosing], bad[~choosing]
        missed, false = (truth & ~low).sum(), (low & ~truth).sum()
        text = f"{missed} of {truth.sum()} | {false} of {(~truth).sum()}"
        print(f"| {score_name} | {threshold:.3f} | {wrong.sum()} of {len(wrong)} | {text} |")
    blamed = np.array([row[3] for row in rows])
    for use, part in (("chosen", choosing), ("assessed", ~choosing)):
        missed, false = (bad & ~blamed)[part].sum(), (blamed & ~bad)[part].sum()
        print(f"the diagnosis where {use}: {missed} of {bad[part].sum()} missed, {false} of {(~bad)[part].sum()} false")


if __name__ == "__main__":
    main()
