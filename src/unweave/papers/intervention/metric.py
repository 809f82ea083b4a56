"""Unsupervised disentanglement learning by intervention (2021), Figure 3: does translation difficulty tell good codes?

python -m unweave.papers.intervention.metric  # FactorVAE, 6 strengths x 2 seeds x 2 sets; for a GPU
python -m unweave.papers.intervention.metric --scale small         # minutes on two cores
python -m unweave.papers.intervention.metric --data shapes3d

A spread of FactorVAE runs on independent and on correlated factors; Spearman's correlation between all scores over the
runs, those of the translation task (which looks at no labels) with their signs turned, since small is good there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.datasets import Resampled
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import FactorVAE
from unweave.metrics import dci, irs, mig, sap
from unweave.papers.intervention.tables import DEPTHS, translated
from unweave.papers.verdicts import Claim, Findings, drawn, kept
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import make_panels, save_figure

STEPS = {"full": 8_000, "small": 150}  # of the stored runs, and to see it run
DCI = ("dci[rf]", "dci[trees]")  # the paper's, by the forests of its Appendix D, and the catalog's
STRENGTHS = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)
POINTS = {"dsprites": 200_000, "shapes3d": 100_000}  # the paper's
PARTS: tuple[Literal["independent", "correlated"], ...] = ("independent", "correlated")


@dataclass(kw_only=True)
class Options:
    """Figure 3 of disentanglement by intervention."""

    data: Literal["dsprites", "shapes3d"] = "dsprites"
    """which images"""
    scale: Literal["small", "full"] = "full"
    """full: the paper's sizes; small: few images, a small network, few steps"""
    out: Path = Path("papers/intervention/results")
    """where runs, the figure and the table go"""
    seeds: int = 2
    """repetitions of each strength"""
    steps: int = 0
    """gradient steps; 0: 8,000, or 150 at small scale"""


def runs(options: Options) -> list[Run]:
    """Strengths, seeds, sets; the paper varies the same three."""
    small = options.scale == "small"
    sizes: Any = {"points": 2_000, "held_out": 1_000} if small else {"points": POINTS[options.data]}
    net: Any = {"widths": (8, 8, 16, 16), "critic": (200,) * 3, "batch_size": 16} if small else {}
    net |= {"steps": options.steps or STEPS[options.scale], "hidden": (128,)}
    return [
        Run(Resampled(of=options.data, part=part, **sizes), FactorVAE(gamma=g, critic_lr=FactorVAE.lr, seed=s, **net))
        for part in PARTS
        for g in (STRENGTHS[::2] if small else STRENGTHS)
        for s in range(options.seeds)
    ]  # fmt: skip


def scored(folder: Path, options: Options) -> dict[str, float]:
    """Every score of a run, larger always better."""
    done, method = read_run(folder), load(folder)
    c, z = done.truth[:5_000], done.codes[:5_000]
    task: Any = {"steps": 20, "observations": 64} if options.scale == "small" else {}
    network, linear = (translated(method, z, translator=t, **task) for t in ("network", "linear"))
    forests = dci(c, z, estimator="rf", depth=DEPTHS[options.data])
    return {
        "translation": -network.difficulty, "translation, excess": -network.excess,
        "translation, relative": -network.relative, "translation, linear, relative": -linear.relative,
        DCI[0]: forests.disentanglement, DCI[1]: dci(c, z).disentanglement,
        "sap": sap(c, z, predictor="logistic"), "sap[r2]": sap(c, z, predictor="r2"),
        "irs": float(irs(c, z)), "mig": mig(c, z),
    }  # fmt: skip


def place(options: Options) -> Path:
    """Where everything goes."""
    other = f"-{options.steps}-steps" * (options.steps not in (0, STEPS[options.scale]))
    return options.out / f"figure-3-{options.data}{'-small' * (options.scale == 'small')}{other}"


def findings(options: Options, part: str) -> Findings:
    """Whether the translation task ranks runs as scores by labels do."""
    path = place(options) / "scores.csv"
    if not path.is_file():
        return Findings(missing=(options.data,))
    rows, of = pd.read_csv(path), f"on {options.data}"
    told = {"translation": f"the translation loss ranks runs {of} as DCI does (above 0.3)"}
    told |= {"translation, relative": f"as a share of what exchanges change it does so {of}"}
    told |= {"translation, linear, relative": f"so it does as a share, by a linear translator, {of}"}
    claims = []
    for name, text in told.items():
        value, low, _ = like_dci(rows, name)
        holds = False if value <= 0.3 else True if low > 0.3 else None
        claims.append(Claim(text, holds, own=name != "translation"))
    return Findings(claims=tuple(claims), figures=drawn([place(options) / "figure-3.png"]))


def like_dci(rows: pd.DataFrame, name: str) -> tuple[float, float, float]:
    """Spearman's correlation of a score with DCI over runs, and its 95 % interval by resampled runs."""
    by = next(column for column in DCI if column in rows)
    some = np.random.default_rng(0).integers(len(rows), size=(1_000, len(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # runs that are all alike have no order: it is unknown
        resampled = [rows[name].iloc[i].corr(rows[by].iloc[i], "spearman") for i in some]
        low, high = np.nanquantile(resampled, [0.025, 0.975])
        return float(rows[name].corr(rows[by], "spearman")), float(low), float(high)


def figure_3(rank: pd.DataFrame, title: str, out: Path) -> None:
    """Every score with every other."""
    figure, (axis,) = make_panels(1, width=8, height=5.5)
    draw_matrix(axis, rank.to_numpy(), list(rank.columns), least=-1.0, palette="RdBu")
    axis.set_xticks(range(len(rank)), list(rank.columns), rotation=40, ha="right")
    axis.set_xlabel("")
    axis.set_title(title)
    save_figure(figure, out)


def main(options: Options) -> None:
    """Run what is missing, correlate, draw, print."""
    out = place(options)
    out.mkdir(parents=True, exist_ok=True)
    with progress() as notify:
        every = runs(options)
        execute(every, out / "runs", metrics=[], notify=notify)
        done = [run.recipe() | {"folder": out / "runs" / run.key} for run in every]
        done = [recipe for recipe in done if recipe["folder"].is_dir()]  # others failed, and were named
        if not done:
            raise no_finished_runs(out / "runs", every)
        notify(f"scoring {len(done)} runs")
        found = Parallel(n_jobs=-1)(delayed(scored)(recipe["folder"], options) for recipe in done)
    heads = [{"part": r["data"]["part"], "gamma": r["method"]["gamma"], "seed": r["method"]["seed"]} for r in done]
    rows = pd.DataFrame([head | each for head, each in zip(heads, found, strict=True)])
    rows = kept(rows, out / "scores.csv", ["part", "gamma", "seed"])
    table = rows.drop(columns=["part", "gamma", "seed"])
    rank = table.corr("spearman")
    figure_3(rank, f"{options.data}: Spearman correlation over {len(table)} FactorVAE runs", out / "figure-3.png")
    lines = [[str(name), *(f"{v:.2f}" for v in row)] for name, row in zip(rank.index, rank.to_numpy(), strict=True)]
    print_table(["", *rank.columns], lines, f"Spearman correlation over {len(table)} FactorVAE runs")
    for name in (str(name) for name in table if str(name).startswith("translation")):
        value, low, high = like_dci(rows, name)
        print_text(f"{name} and DCI: {value:.2f}, 95 % interval from {low:.2f} to {high:.2f} (runs resampled)")
    print_text(f"The figure and scores.csv are in {out}.")


if __name__ == "__main__":
    launch(main, Options)
