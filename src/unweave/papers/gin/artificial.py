"""Sorrenson, Rother and Koethe (2020), Sec. 4.3: does GIN find two informative variables among ten?

python -m unweave.papers.gin.artificial  # 10 datasets x 10 seeds, six settings; minutes on a GPU
python -m unweave.papers.gin.artificial --datasets 2 --seeds 2 --only "10,000 points"
python -m unweave.papers.gin.artificial --only steep --datasets 10 --seeds 10

A run has found the truth when its MCC with both sources is above 0.95. "best of all" keeps, for every dataset, the
likeliest of its seeds, as `restarts` does; "rank correlation" is that of likelihood and MCC over the seeds of a
dataset. "observed" is the MCC that the ten observed numbers have without any method: soft mixing mixes little, and only
the steep one asks much. Runs are kept under OUT/runs and not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from torch import Generator

from unweave.catalog import load
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.data.dataset import Dataset
from unweave.datasets import GaussianMixture
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import GIN
from unweave.metrics import mcc
from unweave.papers.verdicts import Claim, Findings, drawn
from unweave.report.figures.flows import draw_recovery
from unweave.report.figures.style import save_figure
from unweave.utils.errors import InputError

FOUND = 0.95  # MCC from which on a run has found both sources


@dataclass(frozen=True)
class Setting:
    """One of the paper's experiments."""

    name: str
    data: dict[str, Any]
    steps: int
    """of a thousand observations each"""
    method: dict[str, Any] = field(default_factory=dict)
    """what differs from the paper's network"""


# The mixing does not keep volumes, and a steep one changes them by orders of magnitude: an estimating flow that may
# change them too, on standardized observations and with wider layers, gets much further.
WIDE = {"volume": "free", "standardize": True, "width": 24}
SETTINGS = (
    Setting("5 clusters, 100,000 points", {"points": 100_000}, 4_000),
    Setting("5 clusters, 10,000 points", {"points": 10_000}, 800),
    Setting("3 clusters, 100,000 points", {"points": 100_000, "clusters": 3}, 4_000),
    Setting("5 clusters, variances uniform", {"points": 100_000, "spread": "variance"}, 4_000),
    Setting("5 clusters, steep mixing", {"points": 100_000, "mixing": "steep"}, 4_000),
    Setting("5 clusters, steep mixing, wide RealNVP", {"points": 100_000, "mixing": "steep"}, 4_000, WIDE),
)


@dataclass(kw_only=True)
class Options:
    """GIN on the artificial data of its paper."""

    out: Path = Path("papers/gin/results/artificial")
    """where runs, figures and tables go"""
    datasets: int = 10
    """random mixtures and mixings"""
    seeds: int = 10
    """starts on each of them, trained together"""
    only: tuple[str, ...] = ()
    """settings whose names contain one of these; all unless you say which"""
    steps: int = 0
    """gradient steps; 0: those of each setting, 4,000 or 800"""


def observed(data: Dataset) -> float:
    """MCC of both sources with the observed numbers themselves, two of the ten being chosen as of ten codes."""
    made = data.load()
    x, c = made.collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED))
    sources = c[:, [made.column("z1"), made.column("z2")]]
    return float(mcc(sources.numpy(), x.numpy()))


def table(setting: Setting, options: Options, notify: Any) -> tuple[pd.DataFrame, dict[Any, Any]]:
    """One row per run, and the row of the best score."""
    folder = options.out / "runs"
    shared: Any = {"steps": options.steps or setting.steps, "batch_size": 1_000, "latent_dim": "all"}
    runs = [
        (d, s, Run(GaussianMixture(seed=d, **setting.data), GIN(seed=s, **setting.method | shared)))
        for d in range(options.datasets)
        for s in range(options.seeds)
    ]
    scores = execute([run for _, _, run in runs], folder, metrics=["mcc"], notify=notify).set_index("key")
    raw = [observed(GaussianMixture(seed=d, **setting.data)) for d in range(options.datasets)]
    rows = []
    for d, s, run in runs:
        if run.key not in scores.index:
            continue  # it failed, and was named
        method = cast(GIN, load(folder / run.key))
        found = {"mcc": float(scores["mcc"].loc[run.key]), "informative": method.n_informative_, "observed": raw[d]}
        rows.append({"setting": setting.name, "dataset": d, "seed": s, "key": run.key, **found, "nats": method.merit_})
    if not rows:
        raise InputError(f"{setting.name}: every run failed")
    frame = pd.DataFrame(rows)
    return frame, frame.iloc[int(frame["mcc"].argmax())].to_dict()


def summary(rows: pd.DataFrame) -> list[str]:
    """A line of the table."""
    best = rows.loc[rows.groupby("dataset")["nats"].idxmax()]
    ranked = np.mean([g["nats"].corr(g["mcc"], "spearman") for _, g in rows.groupby("dataset")])
    share = (rows["mcc"] > FOUND).mean()
    error = 1.96 * np.sqrt(share * (1 - share) / len(rows))
    return [
        str(rows["setting"].iloc[0]), f"{len(rows)}", f"{rows['observed'].median():.3f}",
        f"{share:.2f} +- {error:.2f}", f"{rows['mcc'].median():.3f}",
        f"{(rows['mcc'] > rows['observed']).mean():.2f}", f"{(rows['informative'] == 2).mean():.2f}",
        f"{(best['mcc'] > FOUND).mean():.2f}",
        f"{best['mcc'].median():.3f}", f"{ranked:.2f}",
    ]  # fmt: skip


def chosen(options: Options) -> list[Setting]:
    """The settings to run."""
    return [s for s in SETTINGS if not options.only or any(part in s.name for part in options.only)]


def findings(options: Options, part: str) -> Findings:
    """What the paper shows in Figures 2 and 6 to 8, and what was found."""
    path, names = options.out / "scores.csv", [setting.name for setting in chosen(options)]
    rows = pd.read_csv(path) if path.is_file() else pd.DataFrame({"setting": []})
    rows = rows[rows["setting"].isin(names)]
    if rows.empty:
        return Findings()
    figures = drawn(options.out / f"recovery-{file(name)}.png" for name in names)
    found, two = float((rows["mcc"] > FOUND).mean()), float((rows["informative"] == 2).mean())
    better, before = float((rows["mcc"] > rows["observed"]).mean()), rows["observed"].median()
    notes = (f"the observed numbers themselves, without any method, have an MCC of {before:.3f} with the sources",)
    if part == "figure-7":
        claims = [Claim("10,000 points are too few: most runs do not find the sources", found < 0.5)]
    else:
        sources = "GIN finds both sources in most runs, better than the observed numbers show them"
        claims = [Claim(sources, min(found, better) > 0.5), Claim("two of ten variables are informative", two > 0.5)]
    return Findings(claims=tuple(claims), figures=figures, notes=notes)


def file(name: str) -> str:
    """A setting's name in those of files."""
    return name.replace(",", "").replace(" ", "-")


def keep(rows: pd.DataFrame, path: Path) -> None:
    """Write them; rows of other settings, from before, stay."""
    before = pd.read_csv(path) if path.is_file() else rows.iloc[:0]
    others = before[~before["setting"].isin(rows["setting"])]
    (pd.concat([others, rows]) if len(others) else rows).to_csv(path, index=False)


def main(options: Options) -> None:
    """Run what is missing, draw, print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    lines, frames = [], []
    for setting in chosen(options):
        with progress() as notify:
            rows, best = table(setting, options, notify)
            frames.append(rows)
            data = GaussianMixture(seed=int(best["dataset"]), **setting.data).load()
            save_figure(
                draw_recovery(load(options.out / "runs" / best["key"]), data),
                options.out / f"recovery-{file(setting.name)}.png",
            )
        lines.append(summary(rows))
        keep(pd.concat(frames), options.out / "scores.csv")
    head = [
        "setting",
        "runs",
        "observed",
        f"MCC > {FOUND}",
        "median MCC",
        "above observed",
        "two found",
        "best of all > 0.95",
        "median of best",
        "rank correlation",
    ]
    print_table(head, lines, f"GIN, {options.datasets} datasets x {options.seeds} seeds")
    print_text(f"Figures and scores.csv are in {options.out}.")


if __name__ == "__main__":
    launch(main, Options)
