"""Does the precision of matrix products change results? The same seeds in float32, TF32 and bf16.

python benchmarks/precision.py                     # beta-VAE on dSprites, for a GPU
python benchmarks/precision.py --device cpu --steps 100 --seeds 2   # only shows that it runs

MIG on 10,000 images, and the reconstruction loss over the last tenth of the steps. The rows below have the difference
of each precision from float32 over seeds: mean and 95 % interval. Runs are stored under OUT.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from unweave.cli.progress import show_progress
from unweave.cli.terminal import print_table
from unweave.datasets import DSprites
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import BetaVAE
from unweave.metrics.uncertainty import plus_minus

Precision = Literal["single", "tf32", "bf16"]
REFERENCE: Precision = "single"
PRECISIONS: tuple[Precision, ...] = (REFERENCE, "tf32", "bf16")
SCORES = {"mig": "MIG", "rec": "reconstruction"}


@dataclass(kw_only=True)
class Options:
    """The same seeds in every precision."""

    steps: int = 30_000
    """Gradient steps."""
    seeds: int = 5
    """Seeds of every precision."""
    beta: float = 4.0
    """Weight of the KL term."""
    device: str = "cuda"
    """Device to train on."""
    precisions: tuple[Precision, ...] = PRECISIONS
    """Precisions to compare."""
    out: Path = Path("runs/precision")
    """Folder of the runs."""
    table: Path = Path("benchmarks/results/precision.csv")
    """Path of the table."""


def score(folder: Path) -> float:
    """Return the reconstruction loss over the last tenth of the steps."""
    history = pd.read_parquet(folder / "history.parquet")
    return float(history["rec"].tail(max(1, len(history) // 10)).mean())


def lines_of(rows: pd.DataFrame) -> list[list[str]]:
    """Return means of every precision, and differences from the reference over seeds."""
    lines = []
    wide = rows.pivot(index="seed", columns="precision")
    for precision in rows["precision"].unique():
        cells = [plus_minus(wide[s][precision].dropna()) for s in SCORES]
        lines.append([precision, f"{len(wide[next(iter(SCORES))][precision].dropna())}", *cells])
    for precision in rows["precision"].unique():
        if precision != REFERENCE and REFERENCE in set(rows["precision"]):
            cells = [plus_minus((wide[s][precision] - wide[s][REFERENCE]).dropna()) for s in SCORES]
            lines.append([f"{precision} - {REFERENCE}", "", *cells])
    return lines


def main(options: Options) -> None:
    """Train what is missing, and print the table."""
    runs = {
        Run(
            DSprites(),
            BetaVAE(beta=options.beta, steps=options.steps, seed=seed, precision=precision, device=options.device),
        ): precision
        for precision in options.precisions
        for seed in range(options.seeds)
    }
    with show_progress() as line:
        scores = execute(runs, options.out, metrics=["mig"], notify=line.message, callback=line.training)
    named = {run.key: precision for run, precision in runs.items()}
    rows = pd.DataFrame(
        {
            "precision": scores["key"].map(named),
            "seed": scores["seed"],
            "mig": scores["mig"],
            "rec": [score(options.out / key) for key in scores["key"]],
        }
    )
    options.table.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(options.table, index=False)
    title = f"beta-VAE, beta {options.beta:g}, dSprites, {options.steps:,} steps: mean and 95 % interval"
    print_table(["precision", "seeds", *SCORES.values()], lines_of(rows), title)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
