"""Whether the precision of products changes what is found: the same seeds in float32, tf32 and bf16, side by side.

python benchmarks/precision.py                     # beta-VAE on dSprites, for a GPU
python benchmarks/precision.py --device cpu --steps 100 --seeds 2   # only shows that it runs

MIG of 10,000 images, and the reconstruction loss of the last tenth of the steps. Below, the difference of each
precision to float32, seed by seed: its mean with a 95 % interval. Runs are kept under OUT.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from unweave.cli.terminal import print_table, progress
from unweave.datasets import DSprites
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import BetaVAE
from unweave.metrics.uncertainty import plus_minus

FIRST = "single"
PRECISIONS = (FIRST, "tf32", "bf16")
SCORES = {"mig": "MIG", "rec": "reconstruction"}


@dataclass(kw_only=True)
class Options:
    """The same seeds in every precision."""

    steps: int = 30_000
    """gradient steps"""
    seeds: int = 5
    """of every precision"""
    beta: float = 4.0
    """of the beta-VAE"""
    device: str = "cuda"
    """where"""
    precisions: tuple[str, ...] = PRECISIONS
    """which of them"""
    out: Path = Path("runs/precision")
    """where the runs go"""
    table: Path = Path("benchmarks/results/precision.csv")
    """where the numbers go"""


def score(folder: Path) -> float:
    """The reconstruction loss at the end."""
    history = pd.read_parquet(folder / "history.parquet")
    return float(history["rec"].tail(max(1, len(history) // 10)).mean())


def lines_of(rows: pd.DataFrame) -> list[list[str]]:
    """Every precision's means, and their differences to the first one, seed by seed."""
    lines = []
    wide = rows.pivot(index="seed", columns="precision")
    for precision in rows["precision"].unique():
        cells = [plus_minus(wide[s][precision].dropna()) for s in SCORES]
        lines.append([precision, f"{len(wide[next(iter(SCORES))][precision].dropna())}", *cells])
    for precision in rows["precision"].unique():
        if precision != FIRST and FIRST in set(rows["precision"]):
            cells = [plus_minus((wide[s][precision] - wide[s][FIRST]).dropna()) for s in SCORES]
            lines.append([f"{precision} - {FIRST}", "", *cells])
    return lines


def main(options: Options) -> None:
    """Train what is missing, print both."""
    runs = {
        Run(
            DSprites(),
            BetaVAE(beta=options.beta, steps=options.steps, seed=seed, precision=precision, device=options.device),
        ): precision
        for precision in options.precisions
        for seed in range(options.seeds)
    }
    with progress() as notify:
        found = execute(runs, options.out, metrics=["mig"], notify=notify)
    named = {run.key: precision for run, precision in runs.items()}
    rows = pd.DataFrame(
        {
            "precision": found["key"].map(named),
            "seed": found["seed"],
            "mig": found["mig"],
            "rec": [score(options.out / key) for key in found["key"]],
        }
    )
    options.table.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(options.table, index=False)
    title = f"beta-VAE, beta {options.beta:g}, dSprites, {options.steps:,} steps: mean and 95 % interval"
    print_table(["precision", "seeds", *SCORES.values()], lines_of(rows), title)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
