"""GIN under steep mixing: labels in the loss, and runs that are accepted without knowing the sources.

unweave paper run gin/steep                             # 20 datasets x 5 seeds
unweave paper run gin/steep --datasets 2 --seeds 2 --steps 100

Steep mixing (2 tanh(s), as the paper says) gives features with heavy tails, and the eight noise dimensions dominate the
likelihood. Three changes to "wide RealNVP" of `gin/mixings`: features are compressed by asinh (`heavy_tails`), the loss
contains the labels' cross-entropy given two of the outputs (`label_weight`, `label_dim`), and the learning rate falls
along a cosine. The settings were chosen on datasets 100 to 105, which are not among those of the table.

The run with the smallest cross-entropy is selected on each dataset. It is accepted if both outputs agree with those of
another seed: an MCC above 0.95 between the runs. Neither rule knows the sources. Finished runs are not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Generator

from unweave.catalog import load
from unweave.data.dataset import Dataset
from unweave.datasets import GaussianMixture
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import GIN
from unweave.metrics import mcc
from unweave.papers.folders import Folders
from unweave.papers.gin.artificial import RECOVERED, WIDE, observed_mcc
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings
from unweave.report.figures.style import make_panels
from unweave.utils.errors import InputError

GOAL = 0.8  # share of datasets
SETTINGS: dict[str, Any] = WIDE | {
    "heavy_tails": True, "standardize": False, "label_weight": 1.0, "label_dim": 2, "lr_schedule": "cosine",
    "lr_decay_after": 1.0, "batch_size": 250, "latent_dim": "all",
}  # fmt: skip


@dataclass(kw_only=True)
class Options:
    """GIN under steep mixing, with labels in the loss."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    datasets: int = 20
    """Number of random mixtures and mixings."""
    seeds: int = 5
    """Number of seeds on each dataset, trained together."""
    steps: int = 1_200
    """Gradient steps of 250 observations."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out, "steep")


def make_data(dataset: int) -> Dataset:
    """Return a dataset by its number."""
    return GaussianMixture(seed=dataset, points=100_000, mixing="steep")


def run_dataset(dataset: int, options: Options, output: Output) -> pd.DataFrame:
    """Train every seed on a dataset, and return one row per run that did not fail."""
    place, data = folders(options), make_data(dataset)
    runs = [Run(data, GIN(seed=seed, steps=options.steps, **SETTINGS)) for seed in range(options.seeds)]
    scores = execute(runs, place.runs, metrics=["mcc"], notify=output.progress, callback=output.training)
    recovery = scores.set_index("key")["mcc"]
    fitted = [(run, cast(GIN, load(place.runs / run.key))) for run in runs if run.key in recovery.index]
    if not fitted:
        raise InputError(f"dataset {dataset}: every run failed")
    x = data.load().collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED)).x.numpy()
    agreements = agreement([label_codes(method, x) for _, method in fitted])
    return pd.DataFrame([
        {
            "dataset": dataset, "seed": method.seed, "key": run.key, "mcc": float(recovery.loc[run.key]),
            "observed": observed_mcc(data), "nats": method.log_likelihood_,
            "cross_entropy": method.label_cross_entropy_, "agreement": agreements[i],
        }
        for i, (run, method) in enumerate(fitted)
    ])  # fmt: skip


def label_codes(method: GIN, x: np.ndarray) -> np.ndarray:
    """Return the outputs that predict the labels, (n, label_dim)."""
    return method.outputs(method.to_tensor(x))[:, : method.label_dim].numpy()


def agreement(codes: list[np.ndarray]) -> list[float]:
    """Return the largest MCC of the codes of each run with those of another run; zero for a single run."""
    values = np.zeros((len(codes), len(codes)))
    for i, j in combinations(range(len(codes)), 2):
        values[i, j] = values[j, i] = mcc(codes[i], codes[j])
    return [float(row.max()) for row in values]


def select_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the run with the smallest cross-entropy of each dataset, and whether it is accepted."""
    selected = rows.loc[rows.groupby("dataset")["cross_entropy"].idxmin()]
    return selected.assign(accepted=selected["agreement"] > RECOVERED)


def stored_rows(options: Options) -> pd.DataFrame:
    """Return the rows of all runs; empty where there are none."""
    path = folders(options).scores
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def tables(options: Options) -> list[TextTable]:
    """Return what each rule selects, and a row for each dataset."""
    rows = stored_rows(options)
    if rows.empty:
        return []
    selected = select_runs(rows)
    likeliest = rows.loc[rows.groupby("dataset")["nats"].idxmax()]
    rules = [
        ("every run", rows),
        ("highest likelihood of each dataset", likeliest),
        ("smallest cross-entropy of each dataset", selected),
        ("the same, accepted", selected[selected["accepted"]]),
        ("the same, not accepted", selected[~selected["accepted"]]),
    ]
    columns = ("runs", "number", f"MCC > {RECOVERED}", "median MCC")
    by_rule = [describe_rule(name, some["mcc"].to_numpy()) for name, some in rules]
    by_score = [
        [name, f"{mean_rank(rows, column, sign):.2f}"]
        for name, column, sign in (("likelihood", "nats", 1), ("cross-entropy", "cross_entropy", -1))
    ]
    return [
        TextTable("GIN under steep mixing: which runs recover both sources", columns, by_rule),
        TextTable("Rank correlation with MCC over the seeds of a dataset", ("score", "mean"), by_score),
    ]


def describe_rule(name: str, scores: np.ndarray) -> list[str]:
    """Return the cells of a rule: its runs, how many recovered the sources, and their median MCC."""
    if not len(scores):
        return [name, "0", "", ""]
    return [name, str(len(scores)), f"{(scores > RECOVERED).sum()} of {len(scores)}", f"{np.median(scores):.3f}"]


def mean_rank(rows: pd.DataFrame, column: str, sign: int) -> float:
    """Return the rank correlation of a column with MCC within a dataset, averaged over datasets."""
    return float(np.mean([sign * g[column].corr(g["mcc"], "spearman") for _, g in rows.groupby("dataset")]))


def findings(options: Options, part: str) -> Findings:
    """Return our claims about the selected runs."""
    rows = stored_rows(options)
    if rows.empty:
        return Findings()
    selected = select_runs(rows)
    recovered, accepted = selected["mcc"] > RECOVERED, selected["accepted"]
    enough = bool(recovered.mean() >= GOAL)
    separated = bool(accepted.any() and recovered[accepted].mean() >= GOAL and recovered[~accepted].mean() < 0.5)
    claims = (
        Claim(f"selected runs recover both sources on {GOAL:.0%} of the datasets", enough, own=True),
        Claim(f"accepted ones recover them in {GOAL:.0%}, others in fewer than half", separated, own=True),
    )
    effort = f"{rows['dataset'].nunique()} datasets, {rows.groupby('dataset').size().max()} seeds"
    return Findings(claims=claims, figures=folders(options).drawn("selection.png"), effort=effort)


def draw_selection(rows: pd.DataFrame) -> Figure:
    """Draw MCC over the cross-entropy in excess of the best run of each dataset, beside the same for likelihood."""
    figure, axes = make_panels(2, width=3.4)
    lowest = rows.groupby("dataset")["cross_entropy"].transform("min")
    highest = rows.groupby("dataset")["nats"].transform("max")
    excesses = rows["cross_entropy"] - lowest, highest - rows["nats"]
    labels = "cross-entropy above the best run", "nats below the best run"
    for axis, excess, label in zip(axes, excesses, labels, strict=True):
        axis.plot(excess + 1e-4, rows["mcc"], ".", color="black", ms=4)
        axis.axhline(RECOVERED, color="gray", lw=0.8)
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.set_ylabel("MCC")
    return figure


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw how well each score selects, and report the tables."""
    place = folders(options)
    place.create()
    rows = pd.concat([run_dataset(dataset, options, output) for dataset in range(options.datasets)])
    rows.to_csv(place.scores, index=False, float_format="%.6g")
    place.save(draw_selection(rows), "selection.png")
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
