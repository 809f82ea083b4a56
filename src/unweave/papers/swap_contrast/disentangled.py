"""Swap and contrast (2022), Tables 3 and 4: disentanglement of 3DShapes and MPI3D, and the effect of the warm-ups.

unweave paper run swap-contrast/table-3                       # 3DShapes, all methods; for a GPU
unweave paper run swap-contrast/table-3 --data mpi3d          # where the file is
unweave paper run swap-contrast/table-4                       # ours without warm-up, with one, with both
unweave paper run swap-contrast/table-3 --converged --seeds 5 # at the budget of the reference library
unweave paper run swap-contrast/table-3 --scale small --only swap Ada-GVAE    # minutes on two cores

Ten codes everywhere; ours predicts the shape from one of them, and pairs share it. MIG, SAP, IRS, the FactorVAE score
and DCI are those of the reference library, over all factors. Finished runs are not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from unweave.data.dataset import Dataset
from unweave.datasets import MPI3D, Shapes3D
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import DIPVAE, AdaGVAE, AdaMLVAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, SwapContrast
from unweave.methods.neural import Neural
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.curves import save_curves
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.swap_contrast.settings import OURS
from unweave.papers.verdicts import (
    Findings,
    Number,
    compare_means,
    describe_effort,
    folder_name,
    merge_rows,
    select_methods,
)

STEPS = {"full": 10_000, "small": 300}  # of the stored tables; enough to see it run
CONVERGED_STEPS, CONVERGED_RATE = 300_000, 1e-4  # of the reference library
KEYS = ["name", "seed"]
WARMED = f"{OURS}, amount and difficulty"
# MIG, SAP, IRS, FactorVAE score, DCI.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "shapes3d": {
        "beta-VAE": (0.194, 0.063, 0.473, 0.847, 0.246),
        "annealed VAE": (0.233, 0.087, 0.545, 0.864, 0.341),
        "FactorVAE": (0.224, 0.044, 0.630, 0.792, 0.304),
        "DIP-VAE-I": (0.143, 0.026, 0.491, 0.761, 0.137),
        "DIP-VAE-II": (0.137, 0.020, 0.424, 0.742, 0.083),
        "beta-TCVAE": (0.364, 0.096, 0.594, 0.970, 0.601),
        "Ada-ML-VAE": (0.509, 0.127, 0.620, 0.996, 0.940),
        "Ada-GVAE": (0.569, 0.150, 0.708, 0.996, 0.946),
        OURS: (0.716, 0.156, 0.784, 0.996, 0.919),
        f"{OURS}, no warm-up": (0.492, 0.096, 0.661, 0.902, 0.697),
        f"{OURS}, amount": (0.512, 0.126, 0.674, 0.944, 0.781),
        f"{OURS}, amount and difficulty": (0.716, 0.156, 0.784, 0.996, 0.919),
    },
    "mpi3d": {
        "beta-VAE": (0.135, 0.071, 0.579, 0.369, 0.317),
        "annealed VAE": (0.098, 0.038, 0.490, 0.397, 0.228),
        "FactorVAE": (0.092, 0.031, 0.529, 0.379, 0.164),
        "DIP-VAE-I": (0.104, 0.073, 0.476, 0.491, 0.223),
        "DIP-VAE-II": (0.131, 0.075, 0.509, 0.544, 0.244),
        "beta-TCVAE": (0.189, 0.146, 0.636, 0.430, 0.322),
        "Ada-ML-VAE": (0.240, 0.074, 0.576, 0.476, 0.285),
        "Ada-GVAE": (0.269, 0.215, 0.604, 0.589, 0.401),
        OURS: (0.486, 0.225, 0.615, 0.565, 0.560),
    },
}


@dataclass(kw_only=True)
class Options:
    """Tables 3 and 4 of swap and contrast."""

    data: Literal["shapes3d", "mpi3d"] = "shapes3d"
    """Dataset of images."""
    scale: Literal["small", "full"] = "full"
    """full: the networks of the other experiments; small: narrow ones, and few steps."""
    out: Path = Path("papers/swap_contrast")
    """Folder of the paper: results go below it."""
    seeds: int = 3
    """Number of repetitions."""
    first_seed: int = 0
    """First seed: further seeds may be added to a stored table."""
    steps: int = 0
    """Gradient steps; 0: 10,000, or 300 at small scale."""
    only: tuple[str, ...] = ()
    """Methods with these names, or whose names contain one of these."""
    warm_ups: bool = False
    """Run only our method: without its warm-ups, with one and with both."""
    converged: bool = False
    """Train as the reference library does: 300,000 steps at a rate of 1e-4, its DIP-VAE-I, its SAP on raw codes."""


def usual_steps(options: Options) -> int:
    """Return the steps of the stored tables."""
    return CONVERGED_STEPS if options.converged and options.scale == "full" else STEPS[options.scale]


def metrics(options: Options) -> tuple[str, ...]:
    """Return the names of the metrics, in the order of the paper."""
    return "mig", "sap[svm-raw]" if options.converged else "sap[svm]", "irs[q99]", "factor-vae-score", "dci[gbt]"


def columns(options: Options) -> tuple[str, ...]:
    """Return the scores of the tables."""
    return (*metrics(options)[:3], "factor-vae-score.accuracy", "dci[gbt].disentanglement")


def make_data(options: Options) -> Dataset:
    """Return the recipe of the images."""
    return Shapes3D() if options.data == "shapes3d" else MPI3D(variant="real")


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by their names in the tables, with the weights of their papers."""
    small = options.scale == "small"
    shared: Any = {"seed": seed, "steps": options.steps or usual_steps(options), "latent_dim": 10}
    shared |= {"lr": CONVERGED_RATE} if options.converged else {}
    shared |= {"widths": (8, 8, 16, 16), "hidden": (64,), "batch_size": 16} if small else {}
    ours: Any = shared | {"predictive_dim": 1, "label": "shape"}
    diagonal = 100.0 if options.converged else DIPVAE.diagonal  # of variant i: ten times the weight off the diagonal
    if options.warm_ups:
        every: dict[str, Neural] = {
            f"{OURS}, no warm-up": SwapContrast(**ours, swap_warmup=0.0, difficulty_warmup=0.0),
            f"{OURS}, amount": SwapContrast(**ours, difficulty_warmup=0.0),
            WARMED: SwapContrast(**ours),
        }
    else:
        every = {
            "beta-VAE": BetaVAE(**shared), "annealed VAE": AnnealedVAE(**shared),
            "FactorVAE": FactorVAE(**shared, critic_lr=CONVERGED_RATE if options.converged else FactorVAE.lr),
            "DIP-VAE-I": DIPVAE(**shared, variant="i", diagonal=diagonal), "DIP-VAE-II": DIPVAE(**shared, variant="ii"),
            "beta-TCVAE": BetaTCVAE(**shared),
            "Ada-ML-VAE": AdaMLVAE(**shared), "Ada-GVAE": AdaGVAE(**shared),
            OURS: SwapContrast(**ours), f"{OURS}, JS": SwapContrast(**ours, divergence="js"),
        }  # fmt: skip
    return select_methods(every, options.only)


def list_runs(options: Options) -> dict[tuple[str, int], Run]:
    """Return every run by method and seed."""
    data, seeds = make_data(options), range(options.first_seed, options.first_seed + options.seeds)
    return {(name, seed): Run(data, m) for seed in seeds for name, m in methods(options, seed).items()}


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    parts = {"converged": options.converged, "small": options.scale == "small"}
    parts |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return Folders(
        options.out, folder_name(f"{'warm-ups' if options.warm_ups else 'disentangled'}-{options.data}", parts)
    )


def tables(options: Options) -> list[TextTable]:
    """Return the stored table: ours with 95 % intervals, the paper's numbers in brackets."""
    path = folders(options).scores
    if not path.is_file():
        return []
    lines = []
    for name, group in pd.read_csv(path).groupby("name", sort=False):
        paper = PAPER[options.data].get(str(name))
        cells = [
            plus_minus(group[column]) + (f" ({paper[i]:.3f})" if paper else "")
            for i, column in enumerate(columns(options))
        ]
        lines.append([str(name), f"{len(group)}", *cells])
    heads = ["method", "runs", *(f"{name} (paper)" for name in ("MIG", "SAP", "IRS", "FactorVAE score", "DCI"))]
    title = f"{make_data(options).title()}; {options.steps or usual_steps(options):,} steps; mean and 95 % interval"
    return [TextTable(title, heads, lines)]


def findings(options: Options, part: str) -> Findings:
    """Return the numbers of Tables 3 and 4, and who has the best MIG."""
    path = folders(options).scores
    if not path.is_file():
        return Findings()
    rows = pd.read_csv(path)
    numbers = [
        Number(f"{name}, {column.partition('.')[0]}", group[column].tolist(), paper)
        for name, group in rows.groupby("name", sort=False)
        for column, paper in zip(columns(options), PAPER[options.data].get(str(name), ()), strict=False)
    ]
    mig = {str(name): group["mig"].tolist() for name, group in rows.groupby("name")}
    if part == "table-4":
        none, one, both = f"{OURS}, no warm-up", f"{OURS}, amount", WARMED
        claims = compare_means("the warm-up of the amount improves MIG", mig, one, [none])
        claims += compare_means("the warm-up of the difficulty improves it further", mig, both, [one])
        in_paper = [none, one, both]
    else:
        in_paper = [name for name in PAPER[options.data] if not name.startswith(f"{OURS}, ")]
        rivals = [name for name in in_paper if name != OURS]
        claims = tuple(
            claim._replace(subject=name)
            for name in rivals
            for claim in compare_means(f"ours has a better MIG than {name}", mig, OURS, [name])
        )
    missing = tuple(name for name in in_paper if name not in mig)
    effort = describe_effort(rows, ["name"], options.steps or usual_steps(options))
    return Findings(tuple(numbers), claims, missing=missing, effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, and report the table."""
    place = folders(options)
    place.create()
    runs = list_runs(options)
    notify, callback = output.progress, output.training
    scores = execute(runs.values(), place.runs, metrics=metrics(options), notify=notify, callback=callback)
    if scores.empty:
        raise no_finished_runs(place.runs, runs.values())
    names = {run.key: name for (name, _), run in runs.items()}
    rows = pd.DataFrame(scores[["key", "seed", *columns(options)]])
    rows.insert(0, "name", rows.pop("key").map(names))
    merge_rows(rows, place.scores, KEYS)
    own = rows[rows["name"] == OURS]
    if not own.empty:  # with both warm-ups, ours is a row of Table 4, too
        other = folders(replace(options, warm_ups=True))
        other.create()
        merge_rows(own.assign(name=WARMED), other.scores, KEYS)
    done = {head: place.runs / run.key for head, run in runs.items() if (place.runs / run.key).is_dir()}
    save_curves(done, KEYS, place)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}.")
