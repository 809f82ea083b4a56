"""GIN on artificial data (Sorrenson, Rother and Köthe, 2020, Sec. 4.3): two informative variables among ten.

unweave paper run gin/figure-2                            # 10 datasets x 10 seeds; minutes on a GPU
unweave paper run gin/figure-7 --datasets 2 --seeds 2
unweave paper run gin/mixings --datasets 10               # all six settings

A run recovers the sources when its MCC with both is above 0.95. "best run" is, for every dataset, the seed with the
highest likelihood, which is what `restarts` keeps; "rank correlation" is that of likelihood and MCC over the seeds of a
dataset. "observed" is the MCC of the ten observed variables themselves. Finished runs are not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
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
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings, merge_rows, select_methods
from unweave.report.figures.flows import draw_recovery
from unweave.utils.errors import InputError, plural

RECOVERED = 0.95  # MCC above which a run has recovered both sources
FEW_POINTS = 10_000  # observations that are too few in Figure 7


@dataclass(frozen=True)
class Setting:
    """An experiment: data, steps, and changes to the method."""

    name: str
    data: dict[str, Any]
    steps: int
    """Gradient steps of 1,000 observations."""
    method: dict[str, Any] = field(default_factory=dict)
    """Differences from the paper's network."""


# The mixing does not preserve volumes, and a steep one changes them by orders of magnitude: an estimating flow that may
# change them too, on standardized observations and with wider layers, gets much further.
WIDE = {"volume": "free", "standardize": True, "width": 24}
SOFT, STEEP, SMALL_SAMPLE = "5 clusters, 100,000 points", "5 clusters, steep mixing", "5 clusters, 10,000 points"
THREE_CLUSTERS, THREE_STEEP = "3 clusters, 100,000 points", "3 clusters, steep mixing"
SEPARATED = "separated clusters"  # the paper's variances, and gaps between clusters
APART: dict[str, Any] = {"spread": "variance", "min_distance": 4.0}
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(SOFT, {"points": 100_000}, 4_000),
        Setting(SMALL_SAMPLE, {"points": 10_000}, 800),
        Setting(THREE_CLUSTERS, {"points": 100_000, "clusters": 3}, 4_000),
        Setting("5 clusters, variances uniform", {"points": 100_000, "spread": "variance"}, 4_000),
        Setting(f"{SEPARATED}, 10,000 points", {"points": 10_000, **APART}, 800),
        Setting(f"{SEPARATED}, 10,000 points, 4,000 steps", {"points": 10_000, **APART}, 4_000),
        Setting(f"{SEPARATED}, 100,000 points", {"points": 100_000, **APART}, 4_000),
        Setting(STEEP, {"points": 100_000, "mixing": "steep"}, 4_000),
        Setting(THREE_STEEP, {"points": 100_000, "clusters": 3, "mixing": "steep"}, 4_000),
        Setting(f"{STEEP}, wide RealNVP", {"points": 100_000, "mixing": "steep"}, 4_000, WIDE),
    )
}


@dataclass(kw_only=True)
class Options:
    """GIN on the artificial data of its paper."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    datasets: int = 10
    """Number of random mixtures and mixings."""
    seeds: int = 10
    """Number of seeds on each dataset, trained together."""
    only: tuple[str, ...] = ()
    """Settings with these names, or whose names contain one of these; default: all."""
    steps: int = 0
    """Gradient steps; 0: those of each setting, 4,000 or 800."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out, "artificial")


def settings(options: Options) -> list[Setting]:
    """Return the settings to run."""
    return list(select_methods(SETTINGS, options.only).values())


def observed_mcc(data: Dataset) -> float:
    """Compute the MCC of both sources with the ten observed variables, which is what no method at all achieves."""
    mixture = data.load()
    x, c = mixture.collect(EVALUATION_SIZE, Generator().manual_seed(EVALUATION_SEED))
    sources = c[:, [mixture.column("z1"), mixture.column("z2")]]
    return float(mcc(sources.numpy(), x.numpy()))


def run_setting(setting: Setting, options: Options, output: Output) -> pd.DataFrame:
    """Train every seed on every dataset, and return one row per run."""
    runs_folder = folders(options).runs
    shared: Any = {"steps": options.steps or setting.steps, "batch_size": 1_000, "latent_dim": "all"}
    runs = [
        (d, s, Run(GaussianMixture(seed=d, **setting.data), GIN(seed=s, **setting.method | shared)))
        for d in range(options.datasets)
        for s in range(options.seeds)
    ]
    scores = execute(
        [run for _, _, run in runs], runs_folder, metrics=["mcc"], notify=output.progress, callback=output.training
    )
    by_key = scores.set_index("key")
    observed = [observed_mcc(GaussianMixture(seed=d, **setting.data)) for d in range(options.datasets)]
    rows = []
    for d, s, run in runs:
        if run.key not in by_key.index:
            continue  # the run failed, and a warning has named it
        method = cast(GIN, load(runs_folder / run.key))
        row = {"mcc": float(by_key["mcc"].loc[run.key]), "informative": method.n_informative_, "observed": observed[d]}
        row["nats"] = method.log_likelihood_
        rows.append({"setting": setting.name, "dataset": d, "seed": s, "key": run.key, **row})
    if not rows:
        raise InputError(f"{setting.name}: every run failed")
    return pd.DataFrame(rows)


def summarize(rows: pd.DataFrame) -> list[str]:
    """Return the row of a setting in the table."""
    best = rows.loc[rows.groupby("dataset")["nats"].idxmax()]
    rank = np.mean([g["nats"].corr(g["mcc"], "spearman") for _, g in rows.groupby("dataset")])
    share = (rows["mcc"] > RECOVERED).mean()
    error = 1.96 * np.sqrt(share * (1 - share) / len(rows))
    return [
        str(rows["setting"].iloc[0]), f"{len(rows)}", f"{rows['observed'].median():.3f}",
        f"{share:.2f} +- {error:.2f}", f"{rows['mcc'].median():.3f}",
        f"{(rows['mcc'] > rows['observed']).mean():.2f}", f"{(rows['informative'] == 2).mean():.2f}",
        f"{(best['mcc'] > RECOVERED).mean():.2f}", f"{best['mcc'].median():.3f}", f"{rank:.2f}",
    ]  # fmt: skip


COLUMNS = (
    "setting", "runs", "observed MCC", f"MCC > {RECOVERED}", "median MCC", "above observed", "two informative",
    f"best run > {RECOVERED}", "median of best runs", "rank correlation",
)  # fmt: skip


def stored_rows(options: Options) -> pd.DataFrame:
    """Return the stored rows of the settings in the options; empty where there are none."""
    path, names = folders(options).scores, [setting.name for setting in settings(options)]
    rows = pd.read_csv(path) if path.is_file() else pd.DataFrame({"setting": []})
    return rows[rows["setting"].isin(names)]


def tables(options: Options) -> list[TextTable]:
    """Return the table of all settings that were run."""
    lines = [summarize(rows) for _, rows in stored_rows(options).groupby("setting", sort=False)]
    return [TextTable("GIN on artificial data", COLUMNS, lines)] if lines else []


def findings(options: Options, part: str) -> Findings:
    """Return the claims of Figures 2 and 6 to 8, evaluated on the stored runs."""
    rows = stored_rows(options)
    if rows.empty:
        return Findings()
    claims: list[Claim] = []
    notes = []
    for name, group in rows.groupby("setting", sort=False):
        recovered, two = float((group["mcc"] > RECOVERED).mean()), float((group["informative"] == 2).mean())
        better = float((group["mcc"] > group["observed"]).mean())
        if part == "mixings":
            continue  # the table says it all
        notes.append(f"{name}: the observed variables themselves have an MCC of {group['observed'].median():.3f}")
        if part == "figure-7":
            many = setting_points(str(name)) > FEW_POINTS
            text = "are enough: most runs recover" if many else "are too few: most runs do not recover"
            # Many points are the control: that they suffice reproduces nothing where few suffice too.
            claims.append(Claim(f"{name} {text} the sources", (recovered > 0.5) == many, own=many))
            continue
        mixed = str(name) if "steep" in str(name) else f"{name}, soft mixing"
        text = f"{mixed}: GIN recovers both sources in most runs, better than the observed variables"
        claims.append(Claim(text, min(recovered, better) > 0.5))
        claims.append(Claim(f"{mixed}: two of ten variables are informative", two > 0.5))
    figures = folders(options).drawn(*(f"recovery-{file_name(setting.name)}.png" for setting in settings(options)))
    counts = rows.groupby("setting", sort=False).size().unique()
    effort = " and ".join(plural(int(count), "run") for count in counts)
    return Findings(claims=tuple(claims), figures=figures, notes=tuple(notes), effort=effort)


def setting_points(name: str) -> int:
    """Return the number of observations of a setting."""
    return int(SETTINGS[name].data["points"])


def file_name(name: str) -> str:
    """Return a setting's name as a part of file names."""
    return name.replace(",", "").replace(" ", "-")


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw the best run of each setting, and report the table."""
    place = folders(options)
    place.create()
    for setting in settings(options):
        rows = run_setting(setting, options, output)
        best = rows.iloc[int(rows["mcc"].argmax())]
        data = GaussianMixture(seed=int(best["dataset"]), **setting.data).load()
        place.save(draw_recovery(load(place.runs / str(best["key"])), data), f"recovery-{file_name(setting.name)}.png")
        merge_rows(rows, place.scores, ["setting"])
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
