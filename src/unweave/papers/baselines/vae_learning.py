"""Does training converge? Variational autoencoders on dSprites with three factors: x, y and scale.

unweave paper run baselines/vae-learning              # 5,000 steps, three seeds; minutes on a GPU, hours on two cores
unweave paper run baselines/vae-learning --steps 500 --seeds 1

All 6,144 images of one ellipse at one angle. Models that differ only in seed and loss weights are trained together, and
finished runs are not repeated. Expected: a beta-VAE reconstructs within 60 nats an image and reaches a MIG above 0.2;
FactorVAE and beta-TCVAE do no worse than beta = 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unweave.catalog import load
from unweave.data.containers import Table
from unweave.datasets import Slice
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import DIPVAE, AdaGVAE, AdaMLVAE, AnnealedVAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.methods.neural import Neural
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings, describe_effort
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.traversal import draw_kl_per_code, draw_reconstructions, draw_traversals

COLUMNS = ("mig", "dci[trees].disentanglement", "mcc", "factor-vae-score.accuracy")


@dataclass(kw_only=True)
class Options:
    """The variational family on dSprites with three factors."""

    out: Path = Path("papers/baselines")
    """Folder of the experiment: results and figures go below it."""
    steps: int = 5_000
    """Gradient steps."""
    seeds: int = 3
    """Number of repetitions."""
    latent_dim: int = 10
    """Number of codes."""
    precision: Literal["single", "tf32", "bf16"] = "tf32"
    """Precision of matrix products on a GPU."""


DATA = Slice(of="dsprites", vary=("x", "y", "scale"), points=6_144)


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out)


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by their names in the table."""
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


def run_all(options: Options, output: Output) -> tuple[pd.DataFrame, dict[str, Path]]:
    """Train every method, and return one row per run and the folder of the first seed of every method."""
    runs = [(name, seed, Run(DATA, m)) for seed in range(options.seeds) for name, m in methods(options, seed).items()]
    folder = folders(options).runs
    metrics = [column.partition(".")[0] for column in COLUMNS]
    scores = execute(
        [run for _, _, run in runs], folder, metrics=metrics, notify=output.progress, callback=output.training
    ).set_index("key")
    rows: list[dict[str, Any]] = []
    first: dict[str, Path] = {}
    for name, seed, run in runs:
        if run.key not in scores.index:
            continue
        history = pd.read_parquet(folder / run.key / "history.parquet")
        last = history.iloc[-max(1, len(history) // 20) :].mean()  # the last twentieth of the steps
        row = {column: float(scores[column].loc[run.key]) for column in COLUMNS}
        rows.append({"method": name, "seed": seed, "rec": last["rec"], "kl": last["kl"], **row})
        first.setdefault(name, folder / run.key)
    return pd.DataFrame(rows), first


def draw(first: dict[str, Path], place: Folders) -> None:
    """Draw traversals, reconstructions, KL and learning curves of the first seed."""
    data = DATA.load()
    assert isinstance(data, Table)
    x = data.x.numpy()
    shown = x[np.random.default_rng(0).permutation(len(x))]
    for name, folder in first.items():
        method, file = load(folder), re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        assert isinstance(method, Neural)
        place.save(draw_traversals(method, shown[:2_000]), f"traversal-{file}.png")
        if name.startswith("beta-VAE, beta = 4"):
            place.save(draw_reconstructions(method, shown[:10]), "reconstructions.png")
            place.save(draw_kl_per_code(method, shown[:2_000]), "kl.png")
            place.save(draw_loss_curves({name: method.history}), "curves.png")


def tables(options: Options) -> list[TextTable]:
    """Return mean and standard deviation over the stored seeds."""
    path = folders(options).scores
    if not path.is_file():
        return []
    lines = []
    for name, group in pd.read_csv(path).groupby("method", sort=False):
        cells = [f"{group[column].mean():.1f}" for column in ("rec", "kl")]
        cells += [f"{group[column].mean():.3f} +- {group[column].std(ddof=0):.3f}" for column in COLUMNS]
        lines.append([str(name), *cells])
    columns = ("method", "rec", "KL", "MIG", "DCI disentanglement", "MCC", "FactorVAE score")
    return [TextTable("Mean and standard deviation over seeds; rec and KL in nats an image", columns, lines)]


def findings(options: Options, part: str) -> Findings:
    """Return the claims that we made beforehand, evaluated on the stored runs."""
    path = folders(options).scores
    if not path.is_file():
        return Findings()
    rows = pd.read_csv(path)
    groups = {str(name): group for name, group in rows.groupby("method")}
    mig = {name: float(group["mig"].mean()) for name, group in groups.items()}
    rec = {name: float(group["rec"].mean()) for name, group in groups.items()}
    good = any(rec[name] < 60 and mig[name] > 0.2 for name in groups if name.startswith("beta-VAE"))
    claims = [Claim("a beta-VAE reconstructs within 60 nats an image and has a MIG above 0.2", good, own=True)]
    for name in ("FactorVAE, gamma = 10", "beta-TCVAE, beta = 6"):
        if name in mig:
            better = mig[name] >= mig["VAE (beta = 1)"]
            claims.append(Claim(f"{name} has no lower MIG than beta = 1", better, own=True))
    effort = describe_effort(rows, ["method"], options.steps)
    return Findings(claims=tuple(claims), figures=folders(options).drawn("*.png"), effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place = folders(options)
    place.create()
    rows, first = run_all(options, output)
    rows.to_csv(place.scores, index=False)
    output.progress("drawing")
    draw(first, place)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
