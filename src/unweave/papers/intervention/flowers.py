"""Unsupervised disentanglement learning by intervention (2021), Figure 5: neighbors of flowers, feature by feature.

python -m unweave.papers.intervention.flowers  # three features of 16 codes; for a GPU; wants the photographs
python -m unweave.papers.intervention.flowers --scale small   # minutes on two cores

Query photographs, and for each feature the nearest others by that feature alone, of the intervention autoencoder and of
FactorVAE. Nothing is known of these factors but the kind of flower: the share of neighbors of the query's own kind is
printed for every feature, with that of neighbors drawn at random; and the share that another feature has too: features
that say different things have few neighbors in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.neighbors import NearestNeighbors

from unweave.cli.terminal import launch, print_table, print_text
from unweave.data.containers import Table
from unweave.datasets import Flowers102
from unweave.experiments.runner import fit_or_load
from unweave.methods import FactorVAE, InterventionAutoencoder
from unweave.methods.neural import Neural
from unweave.papers.verdicts import Findings, drawn
from unweave.report.figures.style import save_figure
from unweave.report.figures.traversal import draw_grid, draw_reconstructions

NEAREST = 3
STEPS = {"full": 2_500, "small": 100}  # of the stored figures, and to see it run


@dataclass(kw_only=True)
class Options:
    """Figure 5 of disentanglement by intervention."""

    scale: Literal["small", "full"] = "full"
    """full: all photographs and the networks of Tables 8 and 9; small: some, and a small network"""
    out: Path = Path("papers/intervention/results")
    """where a folder for the figures goes"""
    steps: int = 0
    """gradient steps; 0: 2,500, or 100 at small scale"""
    lr: float = 2e-4
    """of both methods and of FactorVAE's critic; twice the paper's"""
    queries: int = 5
    """photographs to look up"""
    seed: int = 0
    """of the starts and the queries"""


def methods(options: Options) -> dict[str, Neural]:
    """Ours with the paper's weights for flowers, and FactorVAE with as many codes."""
    small = options.scale == "small"
    net: Any = (
        {"widths": (8, 8, 16, 16), "hidden": (32,)} if small else {"widths": (128, 128, 256, 256), "hidden": (512,)}
    )
    shared: Any = {"seed": options.seed, "steps": options.steps or STEPS[options.scale], **net}
    shared |= {"latent_dim": 48, "feature_dim": 16, "lr": options.lr}
    judged: Any = {"inner_steps": 2, "translator": 32, "batch_size": 16}
    if not small:
        judged = {"judges": (256, 256), "judge_widths": (64, 64, 128, 128), "judge_slope": 0.2}  # Table 9
    return {
        "intervention": InterventionAutoencoder(
            lambda_in=1.0, lambda_adv=100.0, weight_lr=options.lr / 10, **shared, **judged
        ),
        "FactorVAE": FactorVAE(gamma=10.0, critic=(200,) * 3 if small else (1000,) * 6, critic_lr=options.lr, **shared),
    }


def neighbors(z: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Rows nearest to each query, itself left out, (queries, NEAREST)."""
    return NearestNeighbors(n_neighbors=NEAREST + 1).fit(z).kneighbors(z[queries], return_distance=False)[:, 1:]


def in_common(near: list[np.ndarray], k: int) -> float:
    """The share of feature k's neighbors that another feature has too, on average over the others."""
    others = [own for j, own in enumerate(near) if j != k]
    return float(np.mean([(near[k][:, :, None] == own[:, None, :]).any(2).mean() for own in others]))


def place(options: Options) -> Path:
    """Where everything goes."""
    asked = {"small": options.scale == "small", f"lr-{options.lr:g}": options.lr != Options.lr}
    asked |= {f"{options.steps}-steps": options.steps not in (0, STEPS[options.scale])}
    return options.out / "-".join(["flowers", *(name for name, expected in asked.items() if expected)])


def findings(options: Options, part: str) -> Findings:
    """The figure, where it is drawn."""
    return Findings(figures=drawn(sorted(place(options).glob(f"{part}-*.png"))))


def main(options: Options) -> None:
    """Train, look up, draw, print."""
    out = place(options)
    out.mkdir(parents=True, exist_ok=True)
    data = Flowers102(split="train" if options.scale == "small" else "all").load()
    assert isinstance(data, Table)
    x, kind = data.x.float().div(255 if data.x.dtype == torch.uint8 else 1).numpy(), data.c[:, 0].numpy()
    queries = np.random.default_rng(options.seed).permutation(len(x))[: options.queries]
    lines = []
    for name, made in methods(options).items():
        print_text(f"{name}: {made.steps:,} steps")
        method = fit_or_load(made, data, out / f"model-{name.lower()}")
        z = method.transform(x)
        groups = method.feature_groups()
        near = [neighbors(z[:, own], np.arange(len(x))) for own in groups]  # (photographs, NEAREST) for each feature
        for k, own in enumerate(near):
            same = float((kind[own] == kind[:, None]).mean())
            lines.append([name, f"Z_{k + 1}", f"{same:.3f}", f"{in_common(near, k):.3f}"])
        rows = [
            (f"query {i + 1}", x[np.r_[q, np.concatenate([own[q] for own in near])]]) for i, q in enumerate(queries)
        ]
        heads = ["query", *(f"Z_{k + 1}" for k in range(len(groups)) for _ in range(NEAREST))]
        title = f"{name}: the query, then {NEAREST} nearest by each of {len(groups)} features"
        save_figure(draw_grid(rows, title, heads), out / f"figure-5-{name.lower()}.png")
        save_figure(draw_reconstructions(method, x[queries]), out / f"reconstructions-{name.lower()}.png")
    share = float(np.square(np.bincount(kind.astype(int)) / len(kind)).sum())
    lines.append(["at random", "", f"{share:.3f}", f"{NEAREST / len(x):.3f}"])
    head = ["method", "feature", "neighbors of the same kind", "shared with another feature"]
    pd.DataFrame(lines, columns=head).to_csv(out / "scores.csv", index=False)
    print_table(head, lines, f"{len(x):,} photographs")
    print_text(f"Figures are in {out}.")


if __name__ == "__main__":
    launch(main, Options)
