"""What `tests/reference/saved` holds: models and runs as version 0.1.0 wrote them, before its modules were moved.

These are to be kept as they are: old folders must load in every later version. `python -m tests.saved FOLDER` writes
such a folder with the version at hand, to look at; `tests/reference/saved` itself is not to be written again.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unweave
from unweave import datasets

from . import golden

HERE = golden.HERE / "saved"

OLD_NAMES = {"dipvae": "DIPVAE", "info-gancr": "InfoGANCR", "ada-mlvae": "AdaMLVAE", "beta-tcvae": "BetaTCVAE"}
"""names in the catalog of 0.1.0 that were changed later"""

ON_IMAGES = ("BetaVAE", "SwapContrast")

METRICS = ("mcc", "local-isometry", "mig", "sap")
RUNS = ("squares", "slice", "mixture")


DATA: dict[str, Any] = {
    "squares": lambda: datasets.SquaresXY(points=60, size=12, side=4.0),
    "slice": lambda: datasets.Slice(points=60, vary=("x", "scale")),
    "mixture": lambda: datasets.GaussianMixture(points=80),
}


def runs(which: str) -> list[unweave.Run]:
    """Runs on one of the datasets; those that differ in seed and one number are trained together."""
    small = {"steps": 10, "widths": (4, 4), "hidden": (8,)}
    deep = {"steps": 6, "widths": (4, 4, 4, 4), "latent_dim": 3}
    found: list[unweave.Run] = []

    def add(name: str, settings: dict[str, Any], **axes: Any) -> None:
        found.extend(unweave.sweep(DATA[which](), golden.made(name, **settings), **axes))

    if which == "squares":
        add("PCA", {})
        add("HessianICA", {})
        add("BetaVAE", small, seed=[0, 1], beta=[1.0, 4.0])
        add("DIPVAE", small)
        add("BetaTCVAE", small)
        add("InfoGANCR", small)
    elif which == "slice":
        for name in ("AdaMLVAE", "SwapContrast", "BetaVAE"):
            add(name, deep)
    else:
        add("GIN", {"steps": 10, "latent_dim": "auto"}, seed=[0, 1])
    return found


def failing() -> list[unweave.Run]:
    """A run that cannot be: there are no classes to learn from."""
    return unweave.sweep(DATA["squares"](), golden.made("GIN", steps=10))


def observed(which: str) -> np.ndarray:
    """What the runs are judged by: the whole finite sample, in order."""
    return DATA[which]().load().collect(10_000, torch.Generator().manual_seed(0)).x.numpy()


def command(*args: object, cwd: Path) -> str:
    """`unweave` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "unweave", *map(str, args)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def table(path: Path) -> None:
    """A user's own file."""
    x, y, _ = golden.sheet()
    lines = ["a,b,c,d,kind", *(",".join(f"{v:.6f}" for v in row) + f",{k}" for row, k in zip(x, y, strict=True))]
    path.write_text("\n".join(lines) + "\n")


def record(folder: Path) -> None:
    """Write models, runs, what they were given and what they gave."""
    x, y, _ = golden.sheet()
    arrays: golden.Arrays = {"table": x, "bytes": golden.bytes_of_grid()}
    for name in golden.EVERY:
        method = golden.made(name).fit(x, y)
        method.save(folder / "models" / f"{name}-table")
        arrays[f"models/{name}-table"] = method.transform(x)
    for name in ON_IMAGES:
        method = golden.made(name, steps=6).fit(golden.bytes_of_grid(), np.arange(60) // 15)
        method.save(folder / "models" / f"{name}-bytes")
        arrays[f"models/{name}-bytes"] = method.transform(golden.bytes_of_grid())
    for which in RUNS:
        arrays[which] = observed(which)
        place = folder / "runs" / which
        unweave.execute(runs(which) + (failing() if which == "squares" else []), place, metrics=METRICS)
        for run in runs(which):
            kept = place / run.key
            arrays[f"runs/{which}/{run.key}"] = unweave.load(kept).transform(arrays[which])
    table(folder / "my.csv")
    own = ("my.csv", "--data.factors", "kind", "--latent-dim", 2, "--seed", 3)
    command("fit", "laplacian-ica", *own, "--out", "runs/own/laplacian", cwd=folder)
    small = ("--steps", 10, "--batch-size", 16, "--layers", 8, "--device", "cpu")
    command("fit", "beta-tcvae", *own, *small, "--out", "runs/own/tc", cwd=folder)
    for name in ("laplacian", "tc"):
        arrays[f"runs/own/{name}"] = unweave.load(folder / "runs" / "own" / name).transform(own_table(folder))
    np.savez_compressed(folder / "given.npz", **arrays)  # type: ignore[arg-type]


def own_table(folder: Path) -> np.ndarray:
    """The columns of the user's own file that are observations."""
    return np.loadtxt(folder / "my.csv", delimiter=",", skiprows=1)[:, :4]


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"UNWEAVE_DATA": "", "UNWEAVE_CACHE": empty, "OMP_NUM_THREADS": "1"}
        record(Path(sys.argv[1]))
