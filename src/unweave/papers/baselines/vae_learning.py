"""Does learning happen? The variational family on dSprites with three factors: x, y and scale.

python -m unweave.papers.baselines.vae_learning  # 5,000 steps, three seeds; minutes on a GPU, hours on two cores
python -m unweave.papers.baselines.vae_learning --steps 500 --seeds 1

All 6,144 images of one ellipse at one angle. Runs are kept under OUT/runs and not repeated; models that differ in seed
and strength alone are trained together. Wanted: a beta-VAE reconstructs within 60 nats an image and reaches a MIG above
0.2; FactorVAE and beta-TCVAE do no worse than beta = 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.catalog import load
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.datasets import Slice
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import DIPVAE, AdaGVAE, AdaMLVAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.methods.neural import Neural
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.style import save_figure
from unweave.report.figures.traversal import draw_kl_per_code, draw_reconstructions, draw_traversals

COLUMNS = ("mig", "dci[trees].disentanglement", "mcc", "factor-vae-score.accuracy")


@dataclass(kw_only=True)
class Options:
    """The variational family on dSprites with three factors."""

    out: Path = Path("papers/baselines/results")
    """where runs, figures and tables go"""
    steps: int = 5_000
    """gradient steps"""
    seeds: int = 3
    """repetitions"""
    latent_dim: int = 10
    """codes"""
    precision: str = "tf32"
    """of products on a GPU"""


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Every contestant with its setting in words."""
    shared: Any = {
        "steps": options.steps, "seed": seed, "latent_dim": options.latent_dim, "precision": options.precision,
    }  # fmt: skip
    return {
        "VAE (beta = 1)": BetaVAE(beta=1.0, **shared),
        "beta-VAE, beta = 4": BetaVAE(beta=4.0, **shared),
        "beta-VAE, beta = 8": BetaVAE(beta=8.0, **shared),
        "beta-VAE, beta = 16, batch 256": BetaVAE(beta=16.0, **shared | {"batch_size": 256, "lr": 1e-3}),
        "annealed VAE, C = 10": AnnealedVAE(capacity=10.0, **shared),
        "annealed VAE, gamma = 100, C = 10": AnnealedVAE(gamma=100.0, capacity=10.0, **shared),
        "FactorVAE, gamma = 10": FactorVAE(gamma=10.0, **shared),
        "beta-TCVAE, beta = 6": BetaTCVAE(beta=6.0, **shared),
        "beta-TCVAE, beta = 6, stratified": BetaTCVAE(beta=6.0, estimator="stratified", **shared),
        "DIP-VAE-I": DIPVAE(variant="i", off_diagonal=10.0, diagonal=100.0, **shared),
        "DIP-VAE-II": DIPVAE(variant="ii", **shared),
        "Ada-GVAE": AdaGVAE(**shared),
        "Ada-ML-VAE": AdaMLVAE(**shared),
    }


def table(options: Options, notify: Any) -> tuple[pd.DataFrame, dict[str, Path]]:
    """One row per run, and the folder of the first seed of every contestant."""
    data = Slice(of="dsprites", vary=("x", "y", "scale"), points=6_144)
    runs = [(name, seed, Run(data, m)) for seed in range(options.seeds) for name, m in methods(options, seed).items()]
    folder = options.out / "runs"
    metrics = [column.partition(".")[0] for column in COLUMNS]
    scores = execute([run for _, _, run in runs], folder, metrics=metrics, notify=notify).set_index("key")
    rows: list[dict[str, Any]] = []
    first: dict[str, Path] = {}
    for name, seed, run in runs:
        if run.key not in scores.index:
            continue
        history = pd.read_parquet(folder / run.key / "history.parquet")
        last = history.iloc[-max(1, len(history) // 20) :].mean()  # the last twentieth of the steps
        found = {c: float(scores[c].loc[run.key]) for c in COLUMNS}
        rows.append({"method": name, "seed": seed, "rec": last["rec"], "kl": last["kl"], **found})
        first.setdefault(name, folder / run.key)
    return pd.DataFrame(rows), first


def figures(first: dict[str, Path], out: Path) -> None:
    """Traversals, reconstructions, KL and curves of the first seed of every contestant."""
    x = Slice(of="dsprites", vary=("x", "y", "scale"), points=6_144).load().x.numpy()
    chosen = x[np.random.default_rng(0).permutation(len(x))]
    for name, folder in first.items():
        method, file = load(folder), re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        save_figure(draw_traversals(method, chosen[:2_000]), out / f"traversal-{file}.png")
        if name.startswith("beta-VAE, beta = 4"):
            save_figure(draw_reconstructions(method, chosen[:10]), out / "reconstructions.png")
            save_figure(draw_kl_per_code(method, chosen[:2_000]), out / "kl.png")
            save_figure(draw_loss_curves({name: method.history}), out / "curves.png")


def main(options: Options) -> None:
    """Run what is missing, draw, print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    with progress() as notify:
        rows, first = table(options, notify)
        rows.to_csv(options.out / "scores.csv", index=False)
        notify("figures")
        figures(first, options.out)
    columns = [c for c in rows.columns if c not in ("method", "seed")]
    lines = []
    for name, group in rows.groupby("method", sort=False):
        cells = [f"{group[c].mean():.1f}" for c in ("rec", "kl")]
        cells += [f"{group[c].mean():.3f} +- {group[c].std(ddof=0):.3f}" for c in columns if c not in ("rec", "kl")]
        lines.append([str(name), *cells])
    title = f"{options.steps:,} steps, {rows['seed'].nunique()} seeds: mean +- deviation"
    print_table(["method", *columns], lines, title)
    print_text(f"Figures and scores.csv are in {options.out}.")


if __name__ == "__main__":
    launch(main, Options)
