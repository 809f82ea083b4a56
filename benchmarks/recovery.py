"""Whether the diagnosis claims success where the factors are recovered: python -m benchmarks.recovery [--csv FILE]

A table of manifolds with known factors: MCC, and whether `recovered_` is true. Thresholds and settings were chosen on
the first list. The second one has other curves, shapes, densities and noise, and was only run at the end.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from benchmarks.isometry import SURFACES, draw
from benchmarks.nearly_isometric import FaceBand, Sample, Strip
from unweave.datasets import ContinuousSprites, Faces, Slice
from unweave.methods import HessianICA
from unweave.metrics import mcc
from unweave.utils.errors import InputError

GOOD = 0.9  # MCC from which factors count as recovered


class Manifold(Protocol):
    """Observations with known factors."""

    def draw(self) -> Sample: ...


class Surface:
    """One of the surfaces of `benchmarks.isometry`."""

    def __init__(self, name: str, n: int = 1_500, noise: float = 0.0) -> None:
        self.name, self.n, self.noise = name, n, noise

    def draw(self) -> Sample:
        return draw(self.name, self.n, self.noise)

    def __str__(self) -> str:
        return f"{self.name}, n={self.n}" + (f", noise={self.noise:g}" if self.noise else "")


class Images:
    """Images of a dataset of three factors, the effects of which depend on each other."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def draw(self) -> Sample:
        x, z = self.data.load().collect(self.data.points, torch.Generator().manual_seed(0))
        return x.numpy(), z.double().numpy()

    def __str__(self) -> str:
        return f"{self.data.title()}, n={self.data.points}"


TWO_ENDS = ("two ends", "two ends")
CHOOSING: list[Manifold] = [
    *(Strip("arc", r, e) for r in (5, 10, 20) for e in (0.05, 0.1, 0.2)),
    *(Strip("hook", r, e) for r in (5, 10, 20) for e in (0.1, 0.2, 0.4)),
    Strip("arc", 2, 0.4), Strip("arc", 10, 0.0), Strip("spiral", 20, 0.0), Strip("spiral", 10, 0.4),
    Strip("hook", 10, 0.2, "width"), Strip("hook", 4, 0.5, "width"), Strip(density=("triangular", "skew")),
    Strip(density=TWO_ENDS), Strip(density=("skew", "triangular")),
    Strip(n=300), Strip(n=1_000), Strip(noise=0.03), Strip(noise=0.06), Strip(noise=0.1), Strip(ratio=3, noise=0.2),
    Strip(third=0.5, ratio=5), Strip(third=0.5, ratio=10, e=0.2), Strip(third=1, ratio=2, e=0.2),
    Strip(shape="dependent", ratio=1, e=0.9), Strip(shape="dependent", ratio=5, e=1), Strip(shape="disc", ratio=1),
    Strip(shape="disc", ratio=2), Strip(shape="gaussian"), Strip(shape="gaussian", noise=0.02),
    Strip(shape="sheared", ratio=2, e=0.5), Strip(shape="sheared", ratio=1, e=1),
    *(Surface(name) for name in list(SURFACES)[::2]), Surface("cube of 5, two codes"), Surface("square", 600, 0.3),
    Surface("strip 8:1", 600, 0.2), Surface("waves 3", 600), Surface("squares-xc, sharp"), Surface("squares-xy"),
    Images(ContinuousSprites(vary=("x", "y", "scale"), points=1_500)),
]  # fmt: skip
JUDGING: list[Manifold] = [
    *(Strip("wave", r, e) for r in (5, 10, 20) for e in (0.05, 0.2, 0.4)),
    *(Strip("parabola", r, e, seed=1) for r in (7, 15) for e in (0.1, 0.3)),
    *(Strip("snake", r, 0.2, shape, seed=2) for r in (6, 12) for shape in ("centered", "both", "uneven")),
    Strip("spiral", 10, 0.2, "curved across"), Strip("wave", 10, 0.2, "curved across"), Strip("wave", 3, 0.2),
    Strip("wave", density=("uniform", "two ends")), Strip("snake", density=("two ends", "skew"), seed=3),
    Strip("wave", bend=0.5), Strip("spiral", bend=1.0, e=0.2), Strip("wave", n=500), Strip("spiral", n=6_000),
    Strip("wave", noise=0.04), Strip("wave", noise=0.08), Strip("wave", noise=0.15), Strip("snake", 4, noise=0.15),
    Strip("wave", third=0.7, ratio=6, e=0.15), Strip("hook", third=0.4, ratio=8, e=0.1),
    Strip("wave", shape="dependent", ratio=2, e=0.9), Strip("wave", shape="disc", ratio=1.3),
    Strip("arc", shape="gaussian", seed=5), Strip("arc", shape="gaussian", seed=6, n=1_000),
    Strip("wave", shape="sheared", ratio=1.5, e=0.8), Strip("wave", shape="sheared", ratio=3, e=0.3),
    *(Surface(name) for name in list(SURFACES)[1::2]), Surface("cube of 8, two codes"),
    Surface("roll", 600, 0.2), Surface("strip 8:1", 1_500, 0.1), Surface("squares-xc"), Surface("squares-xy, sharp"),
    Images(Slice(of="dsprites", vary=("x", "y", "scale"), points=3_000)),
]  # fmt: skip
# The manifold of the page about spectral methods, at 3,000 points.
STRIPS: list[Manifold] = [Strip("hook", r, e, n=3_000) for r in (5, 10, 20) for e in (0, 0.05, 0.1, 0.2, 0.4)]
FACES = [FaceBand(name, weak, width) for name in ("01", "14", "23") for weak, width in ((0, 0.4), (1, 0.4), (1, 1.0))]
FIELDS = ("mcc", "claimed", "straightened", "isometry", "dependence", "dimension", "interval", "seconds")


def assess(manifold: Manifold) -> dict[str, Any]:
    """Quality of the codes of a manifold, whether success is claimed, and the dimension if it is not given."""
    x, z = manifold.draw()
    row: dict[str, Any] = {"mcc": 0.0, "claimed": False, "straightened": False, "factors": z.shape[1]}
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            method = HessianICA(latent_dim=z.shape[1], loops="never").fit(x)
            automatic = HessianICA(loops="never").fit(x)
        except InputError:
            return row
    return row | {
        "mcc": mcc(z, method.transform(x)), "claimed": method.recovered_, "straightened": method.straightened_,
        "isometry": method.averaged_isometry_, "dependence": method.dependence_, "dimension": automatic.latent_dim_,
        "interval": f"{automatic.dimension_['lowest']} to {automatic.dimension_['highest']}",
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def is_counted(row: dict[str, Any]) -> bool:
    """Whether a manifold has as many dimensions as factors: cubes of which two codes are asked for have more."""
    return "two codes" not in row["manifold"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", help="file for all numbers")
    parser.add_argument("--only", choices=["strips", "choosing", "judging", "faces"], help="one list of manifolds")
    settings = parser.parse_args()
    faces = [face for face in FACES if Faces(manifold=face.manifold).is_available()]  # type: ignore[arg-type]
    lists: dict[str, list[Any]] = {"strips": STRIPS, "choosing": CHOOSING, "judging": JUDGING, "faces": faces}
    rows = []
    for use, manifolds in lists.items():
        if settings.only not in (None, use):
            continue
        print(
            "| manifold | MCC | claimed | straightened | averaged isometry | dependence | factors, found, interval |\n"
            "|---|---|---|---|---|---|---|"
        )
        for manifold in manifolds:
            row = {"use": use, "manifold": str(manifold)} | assess(manifold)
            rows.append(row)
            values = [row.get(field, np.nan) for field in FIELDS[:5]]
            texts = [str(value) if isinstance(value, bool) else f"{value:.3f}" for value in values]
            texts.append(f"{row['factors']}, {row.get('dimension', '-')}, {row.get('interval', '-')}")
            print(f"| {manifold} | " + " | ".join(texts) + " |", flush=True)
        right = [(row["mcc"] >= GOOD) == row["claimed"] for row in rows if row["use"] == use]
        equal = [row.get("dimension") == row["factors"] for row in rows if row["use"] == use and is_counted(row)]
        print(f"\n{use}: the claim is right for {sum(right)} of {len(right)} manifolds, "
              f"the dimension for {sum(equal)} of {len(equal)}\n", flush=True)  # fmt: skip
    if settings.csv:
        with Path(settings.csv).open("w", newline="") as file:
            writer = csv.DictWriter(file, ["use", "manifold", "factors", *FIELDS])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
