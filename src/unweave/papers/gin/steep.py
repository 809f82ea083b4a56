"""GIN under steep mixing: labels in the loss, and good runs that are told apart without knowing the sources.

unweave paper run gin/steep                             # 10 datasets x 5 seeds
unweave paper run gin/steep --datasets 2 --seeds 2 --steps 100

Steep mixing (2 tanh(s), as the paper says) gives features with heavy tails, and the eight noise dimensions dominate the
likelihood. Three changes to "wide RealNVP" of `gin/mixings`: features are compressed by asinh (`heavy_tails`), the loss
contains the labels' cross-entropy given two of the outputs (`label_weight`, `label_dim`), and the learning rate falls
along a cosine. These settings were chosen on datasets of seeds 100 to 105.

Runs whose cross-entropy is within 0.003 nats of the smallest one of their dataset are taken to be good. They are
aligned, and their two outputs averaged. They agree if there are at least two, and each pair has an MCC above 0.95. No
rule knows the sources. The rules were chosen on datasets of seeds 0 to 4, and are judged on others. Finished runs are
not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
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
MAX_EXCESS = 0.003  # nats of cross-entropy above the smallest one of a dataset, up to which runs are averaged
AVERAGES = "averages.csv"
FIRST_SEED = 10  # of the datasets; those of 0 to 9 chose the rules
SETTINGS: dict[str, Any] = WIDE | {
    "heavy_tails": True, "standardize": False, "label_weight": 1.0, "label_dim": 2, "lr_schedule": "cosine",
    "lr_decay_after": 1.0, "batch_size": 250, "latent_dim": "all",
}  # fmt: skip


@dataclass(kw_only=True)
class Options:
    """GIN under steep mixing, with labels in the loss."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    datasets: int = 10
    """Number of random mixtures and mixings."""
    seeds: int = 5
    """Number of seeds on each dataset, trained together."""
    steps: int = 3_000
    """Gradient steps of 250 observations."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out, "steep")


def make_data(dataset: int) -> Dataset:
    """Return a dataset by its number."""
    return GaussianMixture(seed=FIRST_SEED + dataset, points=100_000, mixing="steep")


def run_dataset(dataset: int, options: Options, output: Output) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Train every seed on a dataset; return one row per run that did not fail, and a row about their average."""
    place, data = folders(options), make_data(dataset)
    runs = [Run(data, GIN(seed=seed, steps=options.steps, **SETTINGS)) for seed in range(options.seeds)]
    scores = execute(runs, place.runs, metrics=["mcc"], notify=output.progress, callback=output.training)
    recovery = scores.set_index("key")["mcc"]
    fitted = [(run, cast(GIN, load(place.runs / run.key))) for run in runs if run.key in recovery.index]
    if not fitted:
        raise InputError(f"dataset {dataset}: every run failed")
    rows = [
        {
            "dataset": dataset, "seed": method.seed, "key": run.key, "mcc": float(recovery.loc[run.key]),
            "observed": observed_mcc(data), "nats": method.log_likelihood_,
            "cross_entropy": method.label_cross_entropy_,
        }
        for run, method in fitted
    ]  # fmt: skip
    mixture = data.load()
    x, c = mixture.collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED))
    members = choose_members([method.label_cross_entropy_ for _, method in fitted])
    codes = [label_codes(fitted[i][1], x.numpy()) for i in members]
    sources = c[:, [mixture.column("z1"), mixture.column("z2")]].numpy()
    average = {"mcc": mcc(sources, average_codes(codes)), "members": len(codes), "agreement": agreement(codes)}
    return pd.DataFrame(rows), {"dataset": dataset, **average}


def label_codes(method: GIN, x: np.ndarray) -> np.ndarray:
    """Return the outputs that predict the labels, (n, label_dim)."""
    return method.outputs(method.to_tensor(x))[:, : method.label_dim].numpy()


def choose_members(cross_entropies: Sequence[float]) -> list[int]:
    """Return the runs whose cross-entropy is near the smallest one, that one first."""
    values = np.asarray(cross_entropies)
    return [int(i) for i in values.argsort() if values[i] - values.min() <= MAX_EXCESS]


def average_codes(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of standardized codes (n, d), each matched with those of the first run, with its signs."""
    standardized = [(z - z.mean(0)) / z.std(0) for z in codes]
    first = standardized[0]
    total = first.copy()
    for z in standardized[1:]:
        r = first.T @ z / len(z)
        rows, columns = linear_sum_assignment(-np.abs(r))
        total += z[:, columns] * np.sign(r[rows, columns])
    return total / len(codes)


def agreement(codes: Sequence[np.ndarray]) -> float:
    """Return the smallest MCC between the codes of two runs; zero for a single run."""
    return min((float(mcc(a, b)) for a, b in combinations(codes, 2)), default=0.0)


def stored_rows(options: Options) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of all runs, and those of the averages; empty where there are none."""
    paths = folders(options).scores, folders(options).results / AVERAGES
    if not all(path.is_file() for path in paths):
        return pd.DataFrame(), pd.DataFrame()
    runs, averages = (pd.read_csv(path) for path in paths)
    excess = runs["cross_entropy"] - runs.groupby("dataset")["cross_entropy"].transform("min")
    return runs.assign(near=excess <= MAX_EXCESS), averages.assign(accepted=averages["agreement"] > RECOVERED)


def tables(options: Options) -> list[TextTable]:
    """Return what each rule selects, and how well both scores rank the runs of a dataset."""
    rows, averages = stored_rows(options)
    if rows.empty:
        return []
    by_dataset = rows.groupby("dataset")
    rules = [
        ("every run", rows),
        ("highest likelihood of each dataset", rows.loc[by_dataset["nats"].idxmax()]),
        ("smallest cross-entropy of each dataset", rows.loc[by_dataset["cross_entropy"].idxmin()]),
        (f"average of runs within {MAX_EXCESS} nats", averages),
        ("these averages, where runs agree", averages[averages["accepted"]]),
        (f"runs within {MAX_EXCESS} nats", rows[rows["near"]]),
        ("other runs", rows[~rows["near"]]),
    ]
    columns = ("rule", "number", f"MCC > {RECOVERED}", "median MCC")
    by_rule = [describe_rule(name, some["mcc"].to_numpy()) for name, some in rules]
    by_score = [
        [name, f"{mean_rank(rows, column, sign):.2f}"]
        for name, column, sign in (("likelihood", "nats", 1), ("cross-entropy", "cross_entropy", -1))
    ]
    each = [describe_average(row) for _, row in averages.iterrows()]
    return [
        TextTable("GIN under steep mixing: which codes recover both sources", columns, by_rule),
        TextTable("Rank correlation with MCC over the seeds of a dataset", ("score", "mean"), by_score),
        TextTable("Averages of each dataset", ("seed of the data", "runs", "agreement", "MCC"), each),
    ]


def describe_average(row: Any) -> list[str]:
    """Return the cells of the average on a dataset."""
    seed, members = FIRST_SEED + int(row["dataset"]), int(row["members"])
    return [str(seed), str(members), f"{row['agreement']:.3f}", f"{row['mcc']:.3f}"]


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
    rows, averages = stored_rows(options)
    if rows.empty:
        return Findings()
    enough = bool((averages["mcc"] > RECOVERED).mean() >= GOAL)
    good, near = rows["mcc"] > RECOVERED, rows["near"]
    separated = bool(good[near].mean() >= GOAL and good[~near].mean() < 0.5)
    claims = (
        Claim(f"averages of good runs recover both sources on {GOAL:.0%} of the datasets", enough, own=True),
        Claim(
            f"of runs within {MAX_EXCESS} nats {GOAL:.0%} recover them, of others fewer than half", separated, own=True
        ),
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
    results = [run_dataset(dataset, options, output) for dataset in range(options.datasets)]
    rows, averages = pd.concat([rows for rows, _ in results]), pd.DataFrame([average for _, average in results])
    rows.to_csv(place.scores, index=False, float_format="%.6g")
    averages.to_csv(place.results / AVERAGES, index=False, float_format="%.6g")
    place.save(draw_selection(rows), "selection.png")
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
