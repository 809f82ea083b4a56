"""Figures of Horan, Richardson and Weiss (2021), on every manifold that is available here.

unweave paper run hlle-ica/figure-6                               # spectral methods, then autoencoders; for a GPU
unweave paper run hlle-ica/figure-1                               # the spectral methods only: three seeds
unweave paper run hlle-ica/figure-7 --only faces squares          # the autoencoders on some manifolds, one seed
unweave paper run hlle-ica/figure-1 --quick                       # one seed, 1,000 images a manifold
unweave paper run hlle-ica/figure-7 --epochs 100 1000 --only faces    # Figures 7 and 8 at the paper's budget

Figures 7 and 8 belong to the networks; Figure 6 shows what both parts have stored so far. The networks are those of
Jing et al. (2020), as in the paper, trained for fewer steps; their bottleneck has one code per factor, or 128 codes
followed by ICA. Finished runs are not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.datasets import Faces, SquaresXC, SquaresXY
from unweave.experiments.run import Run
from unweave.papers.folders import Folders
from unweave.papers.hlle_ica import drawings, epochs
from unweave.papers.hlle_ica.manifolds import (
    BASELINES,
    NETWORKS,
    SPECTRAL,
    WITH_ICA,
    FirstRuns,
    list_manifolds,
    make_network,
    manifold_name,
    network_input_size,
    score_run,
)
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import TOLERANCE, Claim, Findings
from unweave.utils.errors import plural


@dataclass(kw_only=True)
class Options:
    """Figures 1, 3, 5, 6, 7 and 8 of Horan, Richardson and Weiss (2021), and the sensitivity of the method."""

    out: Path = Path("papers/hlle_ica")
    """Folder of the paper: results and figures go below it."""
    seeds: int = 3
    """Number of repetitions on every manifold."""
    quick: bool = False
    """One seed, and 1,000 images a manifold."""
    part: Literal["spectral", "networks"] = "spectral"
    """Methods to run."""
    steps: int = 3_000
    """Gradient steps of the networks; the paper's 100 epochs of 3,000 images are 9,400 steps of half the batch."""
    epochs: tuple[int, ...] = ()
    """Train the networks of Figures 7 and 8 for these numbers of epochs instead, as in the paper (see epochs.py)."""
    hours: float = 12.0
    """Start no network after this time."""
    only: tuple[str, ...] = ()
    """Manifolds whose names contain one of these, so that several processes can share the work; include squares."""

    @property
    def points(self) -> int:
        """Images of a manifold."""
        return 1_000 if self.quick else 3_000


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out)


def select_manifolds(manifolds: list[tuple[Dataset, int]], options: Options) -> list[tuple[Dataset, int]]:
    """Return the manifolds that the options ask for."""
    only = options.only
    return [pair for pair in manifolds if not only or any(part in manifold_name(pair[0]) for part in only)]


def run_spectral(options: Options, output: Output) -> tuple[pd.DataFrame, FirstRuns]:
    """Compute MCC and isometry of the spectral methods on every manifold; return them, and runs of the first seed."""
    rows: list[dict[str, Any]] = []
    first: FirstRuns = {}
    for seed in range(1 if options.quick else options.seeds):
        for data, d in select_manifolds(list_manifolds(options.points, seed), options):
            for name in SPECTRAL:
                head = {"manifold": manifold_name(data), "factors": d, "method": name, "seed": seed}
                run = Run(data, catalog.methods()[name](latent_dim=d, seed=seed))
                rows.append(head | score_run(run, name, folders(options).runs, first, output))
    return pd.DataFrame(rows), first


def run_networks(options: Options, output: Output) -> tuple[pd.DataFrame, FirstRuns]:
    """Do the same for the autoencoders, with the first seed only, and the manifolds of the paper first."""
    rows: list[dict[str, Any]] = []
    first: FirstRuns = {}
    start = time.monotonic()
    manifolds = list_manifolds(options.points, 0)
    manifolds.sort(key=lambda pair: (not isinstance(pair[0], Faces), not isinstance(pair[0], SquaresXY | SquaresXC)))
    for data, d in select_manifolds(manifolds, options):
        for name in (*NETWORKS, *WITH_ICA):
            if time.monotonic() - start > 3600 * options.hours:
                return pd.DataFrame(rows), first
            head = {"manifold": manifold_name(data), "factors": d, "method": name, "seed": 0}
            method = make_network(name, d, network_input_size(data), options.steps)
            rows.append(head | score_run(Run(data, method), name, folders(options).runs, first, output))
    return pd.DataFrame(rows), first


# Claims ---------------------------------------------------------------------------------------------------------

Scores = dict[str, list[float]]
"""MCC by method, over manifolds."""


def median(scores: Scores, names: tuple[str, ...]) -> float:
    """Return the largest median of some methods over manifolds."""
    return max(float(np.median(scores[name])) for name in names)


# Figure -> claims: their text, the methods that must have been run, and the test on MCC over manifolds, the first of
# which is the one that Figures 1 and 5 show.
Test = Callable[[Scores], bool]
CLAIMS: dict[str, list[tuple[str, tuple[str, ...], Test]]] = {
    "figure-1": [("HLLE + ICA recovers both factors (MCC above 0.95)", SPECTRAL, lambda s: s["hessian-ica"][0] > 0.95)],
    "figure-5": [
        ("HLLE + ICA recovers both factors (MCC above 0.95)", SPECTRAL, lambda s: s["hessian-ica"][0] > 0.95),
        ("LEM + ICA does so too (above 0.9)", SPECTRAL, lambda s: s["laplacian-ica"][0] > 0.9),
        (
            "AE, IRMAE and beta-VAE do not (below 0.9), also with 128 codes and ICA",
            (*BASELINES, *WITH_ICA),
            lambda s: max(s[name][0] for name in (*BASELINES, *WITH_ICA)) < 0.9,
        ),
    ],
    "figure-6": [
        ("HLLE + ICA succeeds on all manifolds (above 0.9)", SPECTRAL, lambda s: min(s["hessian-ica"]) > 0.9),
        (
            "HLLE + ICA has a higher median than LEM + ICA",
            SPECTRAL,
            lambda s: median(s, ("hessian-ica",)) > median(s, ("laplacian-ica",)),
        ),
        (
            "the Hessian autoencoder succeeds on all manifolds (above 0.9)",
            NETWORKS,
            lambda s: min(s["hessian-autoencoder"]) > 0.9,
        ),
        (
            "AE, IRMAE and beta-VAE are no better than PCA, also with 128 codes and ICA",
            ("pca", *BASELINES, *WITH_ICA),
            lambda s: median(s, (*BASELINES, *WITH_ICA)) < median(s, ("pca",)) + TOLERANCE,
        ),
    ],
}  # fmt: skip


def stored_rows(options: Options, part: str = "*") -> pd.DataFrame:
    """Return the stored rows of one part, or of both; empty where there are none."""
    paths = sorted(folders(options).results.glob(f"scores-{part}.csv"))
    return pd.concat([pd.read_csv(path) for path in paths]) if paths else pd.DataFrame()


def findings(options: Options, part: str) -> Findings:
    """Return the claims of the paper, evaluated on two factors: photographs where there are some, else squares."""
    rows = stored_rows(options)
    if rows.empty or options.part != ("networks" if part in ("figure-7", "figure-8") else "spectral"):
        return Findings()  # a figure of both parts is reported once
    if part in ("figure-7", "figure-8"):
        return epochs.findings(folders(options), part)
    rows = rows.query("factors == 2")
    kind = "faces" if rows["manifold"].str.startswith("faces").any() else "squares"
    mean = rows[rows["manifold"].str.startswith(kind)].groupby(["method", "manifold"])["mcc"].mean()
    scores: Scores = {str(name): group.tolist() for name, group in mean.groupby("method")}
    claims = [
        Claim(text, bool(test(scores))) for text, needed, test in CLAIMS.get(part, ()) if {*needed} <= set(scores)
    ]
    if part == "figure-3":
        squares = rows.query("manifold == 'squares-xy' and method == 'hessian-ica'")["mcc"].mean()
        claims.append(Claim("HLLE + ICA recovers the position of the square (MCC above 0.99)", bool(squares > 0.99)))
    used = ", ".join(sorted(set(mean.index.get_level_values("manifold")))) if part != "figure-3" else "squares-xy"
    notes = (f"judged on {used}; the paper prints box plots, no numbers",) if claims else ()
    seeds = rows.groupby("method")["seed"].nunique()
    spectral, networks = plural(int(seeds.max()), "seed"), plural(int(seeds.min()), "seed")
    effort = f"{spectral}; networks {networks}, {options.steps:,} steps"
    if part in ("figure-1", "figure-3"):
        effort = f"{seeds.max()} seeds"
    return Findings(claims=tuple(claims), figures=folders(options).drawn(f"{part}*.png"), notes=notes, effort=effort)


def tables(options: Options) -> list[TextTable]:
    """Return the MCC of every method on every manifold, mean over the stored seeds."""
    rows = stored_rows(options, options.part)
    if rows.empty:
        return []
    wide = rows.pivot_table(index="manifold", columns="method", values="mcc", aggfunc="mean", sort=False)
    wide = wide[[name for name in (*SPECTRAL, *NETWORKS, *WITH_ICA) if name in wide]]
    lines = [
        [short_name(str(name)), *("-" if np.isnan(value) else f"{value:.3f}" for value in row)]
        for name, row in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    lines.append(["median", *(f"{value:.3f}" for value in wide.median())])
    seeds = rows["seed"].nunique()
    title = f"MCC, {f'mean of {seeds} seeds' if seeds > 1 else '1 seed'}; -: the method failed"
    return [TextTable(title, ["manifold", *(SHORT_NAMES[str(name)] for name in wide.columns)], lines)]


SHORT_NAMES = {
    "hessian-ica": "HLLE+ICA", "tangent-ica": "LTSA+ICA", "laplacian-ica": "LEM+ICA", "linear-ica": "ICA", "pca": "PCA",
    "hessian-autoencoder": "HLLE-AE", "autoencoder": "AE", "irmae": "IRMAE", "vae": "VAE", "beta-vae": "beta-VAE",
    "autoencoder-128": "AE-128", "irmae-128": "IRMAE-128", "beta-vae-128": "beta-VAE-128",
}  # fmt: skip


def short_name(manifold: str) -> str:
    """Return a manifold's name for a narrow column, e.g. "dSprites: x, y"."""
    for prefix, short in {"slice of dsprites": "dSprites", "slice of shapes3d": "3DShapes"}.items():
        if manifold.startswith(prefix):
            return f"{short}: {manifold.rpartition('(')[2].rstrip(')')}"
    return manifold.replace("continuous-sprites (", "sprites: ").rstrip(")")


def draw(first: FirstRuns, options: Options, output: Output) -> None:
    """Draw the figures of the part that was run."""
    place = folders(options)
    shown = next((manifold for manifold, _ in first if manifold == "faces-01"), "squares-xc")
    for (manifold, name), done in first.items():
        if manifold == shown:
            place.save(drawings.draw_maps(done, name), f"figure-5-{name}.png")
    place.save(drawings.draw_boxes(stored_rows(options)), "figure-6.png")
    if options.part == "spectral":
        place.save(drawings.draw_maps(first[shown, "hessian-ica"], "hessian-ica"), "figure-1.png")
        output.progress("figure 3")
        place.save(drawings.draw_embedding(options.points), "figure-3.png")
        output.progress("sensitivity")
        place.save(drawings.draw_sensitivity(options.points), "sensitivity.png")
        return
    output.progress("figures 7 and 8")
    data = Faces() if shown == "faces-01" else replace(SquaresXC(), points=options.points)
    networks = {name: catalog.load(first[shown, name].folder) for name in NETWORKS if (shown, name) in first}
    place.save(drawings.draw_interpolations(data, networks), "figure-8.png")
    for name, figure in drawings.draw_neighborhoods(data, networks).items():
        place.save(figure, f"figure-7-{name}.png")


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place = folders(options)
    place.create()
    if options.epochs:
        manifolds = [pair for pair in select_manifolds(list_manifolds(options.points, 0), options) if pair[1] == 2]
        epochs.run_epochs(manifolds, options.epochs, options.seeds, place.results, output)
        epochs.draw(manifolds, place, output)
        for table in epochs.make_table(place.results):
            output.table(table)
        return
    scores, first = (run_spectral if options.part == "spectral" else run_networks)(options, output)
    scores.to_csv(place.results / f"scores-{options.part}.csv", index=False)
    draw(first, options, output)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
