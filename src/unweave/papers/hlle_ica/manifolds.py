"""Manifolds and methods of the experiments with HLLE+ICA, and one run of a method on a manifold."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from torch import Generator

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.datasets import ContinuousSprites, Faces, Slice, SquaresXC, SquaresXY
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.run import FinishedRun, Run, read_run
from unweave.experiments.study import execute
from unweave.methods import LinearICA
from unweave.methods.base import Method
from unweave.metrics import local_isometry, mcc
from unweave.metrics.local_isometry import near_pairs
from unweave.papers.output import Output
from unweave.utils.errors import InputError

SPECTRAL = ("hessian-ica", "tangent-ica", "laplacian-ica", "linear-ica", "pca")
WIDE = 128  # codes of a bottleneck that is followed by ICA
NETWORKS = ("hessian-autoencoder", "autoencoder", "irmae", "vae", "beta-vae")
BASELINES = ("autoencoder", "irmae", "beta-vae")  # the paper's
WITH_ICA = tuple(f"{name}-{WIDE}" for name in BASELINES)
FirstRuns = dict[tuple[str, str], FinishedRun]
"""Runs of the first seed by manifold and method."""


def list_manifolds(points: int, seed: int) -> list[tuple[Dataset, int]]:
    """Return every manifold with its number of factors; faces only where their files are."""
    two: list[Dataset] = [SquaresXY(points=points, seed=seed), SquaresXC(points=points, seed=seed)]
    two += [face for m in ("01", "14", "23") if (face := Faces(manifold=m)).is_available() and points >= 3_000]
    manifolds: list[tuple[Dataset, int]] = [(data, 2) for data in two]
    for vary in (("x", "y"), ("x", "y", "scale"), ("x", "y", "scale", "angle")):
        manifolds.append((ContinuousSprites(vary=vary, points=points, seed=seed), len(vary)))
    for vary in (("x", "y"), ("x", "y", "scale")):
        manifolds.append((Slice(of="dsprites", vary=vary, points=points, seed=seed), len(vary)))
    for vary in (("scale", "orientation"), ("wall", "scale", "orientation"), ("floor", "wall", "scale", "orientation")):
        manifolds.append((Slice(of="shapes3d", vary=vary, points=points, seed=seed), len(vary)))
    return manifolds


def manifold_name(data: Dataset) -> str:
    """Return a manifold's name in tables."""
    if isinstance(data, Faces):
        return f"faces-{data.manifold}"
    return f"{data.title()} ({', '.join(data.vary)})" if isinstance(data, ContinuousSprites) else data.title()


def make_network(name: str, d: int, pixels: int, steps: int) -> Method:
    """Create an autoencoder by its name in the tables.

    The weight 0.1 of the KL term in the code of Jing et al. applies between means over pixels and over codes, of twice
    the KL. Between sums, as here, it is 0.2 pixels / codes. "vae" has beta = 1.
    """
    plain, is_wide = name.removesuffix(f"-{WIDE}"), name.endswith(f"-{WIDE}")
    width = WIDE if is_wide else d
    shared: Any = {"steps": steps, "lr": 5e-4, "latent_dim": width, "widths": (32, 64, 128, 256), "hidden": ()}
    if plain in ("vae", "beta-vae"):
        return catalog.methods()["beta-vae"](beta=1.0 if plain == "vae" else 0.2 * pixels / width, **shared)
    return catalog.methods()[plain](**shared)


def score_run(run: Run, name: str, folder: Path, first: FirstRuns, output: Output) -> dict[str, Any]:
    """Run a method and return its scores; one that fails, on a disconnected graph say, returns the reason instead."""
    try:
        execute([run], folder, notify=output.progress, callback=output.training)
        done = read_run(folder / run.key)
        if name.endswith(f"-{WIDE}"):
            done = apply_ica(done, run.data)
    except InputError as error:
        return {"mcc": None, "isometry": None, "error": str(error)}
    first.setdefault((manifold_name(run.data), name), done)
    return {"mcc": done.scores.get("mcc"), "isometry": done.scores.get("local-isometry")}


def network_input_size(data: Dataset) -> int:
    """Return the number of pixels and channels of an observation."""
    return prod(data.load().shape)


def apply_ica(done: FinishedRun, data: Dataset) -> FinishedRun:
    """Return the run with as many codes as factors, obtained by linear ICA from its many codes."""
    codes = LinearICA(latent_dim=len(done.factors)).fit_transform(done.codes)
    x = data.load().collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED)).x
    near = near_pairs(x, codes)
    scores = {"mcc": float(mcc(done.truth, codes)), "local-isometry": float(local_isometry(x, codes))}
    return done._replace(codes=codes, scores=scores, pairs=np.column_stack([near.dx, near.dz])[:3_000])
