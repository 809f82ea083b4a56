"""Swap and contrast (2022), Tables 3 and 4: how well 3DShapes and MPI3D are taken apart, and what the warm-ups do.

python -m unweave.papers.swap_contrast.disentangled                       # 3DShapes, all methods; for a GPU
python -m unweave.papers.swap_contrast.disentangled --data mpi3d          # where the file is found
python -m unweave.papers.swap_contrast.disentangled --warm-ups            # Table 4: ours without, with one, with both
python -m unweave.papers.swap_contrast.disentangled --scale small --only swap Ada-GVAE   # minutes on two cores

Ten codes everywhere; ours predicts the shape from one of them, and pairs share it. MIG, SAP, IRS, the FactorVAE score
and DCI as the reference library has them, of all factors. The paper's numbers stand beside ours. Runs are kept under
OUT/runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.data.dataset import Dataset
from unweave.datasets import MPI3D, Shapes3D
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import DIPVAE, AdaGVAE, AdaMLVAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE, SwapContrast
from unweave.methods.neural import Neural
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.verdicts import Findings, Number, ahead, contestants, kept

OURS = "swap and contrast"
STEPS = {"full": 10_000, "small": 300}  # of the stored tables, and to see it run
METRICS = ("mig", "sap[svm]", "irs[q99]", "factor-vae-score", "dci[gbt]")
COLUMNS = (*METRICS[:3], "factor-vae-score.accuracy", "dci[gbt].disentanglement")
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
    """which images"""
    scale: Literal["small", "full"] = "full"
    """full: the networks of the other studies; small: narrow ones, and few steps"""
    out: Path = Path("papers/swap_contrast/results")
    """where a folder for the table goes"""
    seeds: int = 3
    """repetitions"""
    steps: int = 0
    """gradient steps; 0: 10,000, or 300 at small scale"""
    only: tuple[str, ...] = ()
    """methods of these names, or whose names contain one of these"""
    warm_ups: bool = False
    """ours without its warm-ups, with one and with both, and nothing else"""


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """The contestants by their names in the tables, with the strengths of their papers."""
    small = options.scale == "small"
    shared: Any = {"seed": seed, "steps": options.steps or STEPS[options.scale], "latent_dim": 10}
    shared |= {"widths": (8, 8, 16, 16), "hidden": (64,), "batch_size": 16} if small else {}
    ours: Any = shared | {"predictive_dim": 1, "label": "shape"}
    if options.warm_ups:
        found: dict[str, Neural] = {
            f"{OURS}, no warm-up": SwapContrast(**ours, warm_amount=0.0, warm_difficulty=0.0),
            f"{OURS}, amount": SwapContrast(**ours, warm_difficulty=0.0),
            f"{OURS}, amount and difficulty": SwapContrast(**ours),
        }
    else:
        found = {
            "beta-VAE": BetaVAE(**shared), "annealed VAE": AnnealedVAE(**shared),
            "FactorVAE": FactorVAE(**shared, critic_lr=FactorVAE.lr),
            "DIP-VAE-I": DIPVAE(**shared, variant="i"), "DIP-VAE-II": DIPVAE(**shared, variant="ii"),
            "beta-TCVAE": BetaTCVAE(**shared),
            "Ada-ML-VAE": AdaMLVAE(**shared), "Ada-GVAE": AdaGVAE(**shared),
            OURS: SwapContrast(**ours), f"{OURS}, JS": SwapContrast(**ours, divergence="js"),
        }  # fmt: skip
    return contestants(found, options.only)


def lines_of(rows: pd.DataFrame, options: Options) -> list[list[str]]:
    """Method, and for each score ours with its interval and the paper's."""
    lines = []
    for name, group in rows.groupby("name", sort=False):
        paper = PAPER[options.data].get(str(name))
        cells = [
            plus_minus(group[column]) + (f" ({paper[i]:.3f})" if paper else "") for i, column in enumerate(COLUMNS)
        ]
        lines.append([str(name), f"{len(group)}", *cells])
    return lines


def place(options: Options) -> Path:
    """Where everything goes."""
    table = "warm-ups" if options.warm_ups else "disentangled"
    other = f"-{options.steps}-steps" * (options.steps not in (0, STEPS[options.scale]))
    return options.out / f"{table}-{options.data}{'-small' * (options.scale == 'small')}{other}"


def findings(options: Options, part: str) -> Findings:
    """The numbers of Tables 3 and 4, and who has the best MIG."""
    path = place(options) / "scores.csv"
    if not path.is_file():
        return Findings()
    rows = pd.read_csv(path)
    numbers = [
        Number(f"{name}, {column.partition('.')[0]}", group[column].tolist(), theirs)
        for name, group in rows.groupby("name", sort=False)
        for column, theirs in zip(COLUMNS, PAPER[options.data].get(str(name), ()), strict=False)
    ]
    mig = {str(name): group["mig"].tolist() for name, group in rows.groupby("name")}
    if part == "table-4":
        none, one, both = (f"{OURS}, {name}" for name in ("no warm-up", "amount", "amount and difficulty"))
        claims = ahead("warming up by amount helps", mig, one, [none]) + ahead(
            "by difficulty too, more", mig, both, [one]
        )
        expected = [none, one, both]
    else:
        expected = [name for name in PAPER[options.data] if not name.startswith(f"{OURS}, ")]
        rivals = [name for name in expected if name != OURS]
        claims = tuple(c for name in rivals for c in ahead(f"ours has a better MIG than {name}", mig, OURS, [name]))
    return Findings(tuple(numbers), claims, missing=tuple(name for name in expected if name not in mig))


def main(options: Options) -> None:
    """Run what is missing, print the table."""
    out = place(options)
    out.mkdir(parents=True, exist_ok=True)
    data: Dataset = Shapes3D() if options.data == "shapes3d" else MPI3D(variant="real")
    runs = {Run(data, m): name for seed in range(options.seeds) for name, m in methods(options, seed).items()}
    with progress() as notify:
        found = execute(runs, out / "runs", metrics=METRICS, notify=notify)
    if found.empty:
        raise no_finished_runs(out / "runs", runs)
    rows = pd.DataFrame(found[["key", "seed", *COLUMNS]])
    rows.insert(0, "name", rows.pop("key").map({run.key: name for run, name in runs.items()}))
    rows = kept(rows, out / "scores.csv", ["name", "seed"])
    head = ["method", "runs", *(f"{name} (paper)" for name in ("MIG", "SAP", "IRS", "FactorVAE score", "DCI"))]
    steps = next(iter(methods(options, 0).values())).steps
    print_table(head, lines_of(rows, options), f"{data.title()}; {steps:,} steps; mean and 95 % interval")
    print_text(f"scores.csv is in {out}.")


if __name__ == "__main__":
    launch(main, Options)
