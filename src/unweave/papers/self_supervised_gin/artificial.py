"""Self-supervised GIN (2021), Sec. 4.2: sources recovered from augmentations along two of them, or along one.

unweave paper run self-supervised-gin/figure-1              # ten trials each; minutes on a GPU, an hour on two cores
unweave paper run self-supervised-gin/figure-1 --trials 2 --steps 200

Every trial has its own mixture, mixing and seed. 10,000 points, ten copies of each; 80 epochs in batches of 1,000. The
paper's claim: with one augmented source the other one is recovered too, but not always, and noise makes it stable.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from unweave.catalog import load
from unweave.datasets import GaussianMixture
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import SelfSupervisedGIN
from unweave.metrics.mcc import correlations
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings
from unweave.report.figures.flows import draw_recovery
from unweave.utils.errors import InputError

RECOVERED = 0.95  # MCC above which a trial has recovered both sources
BOTH, ONE_NOISY, ONE = "along z1 and z2, noise 0.01", "along z1, noise 0.01", "along z1, no noise"
SETTINGS: dict[str, dict[str, Any]] = {
    BOTH: {"augment": ("z1", "z2"), "noise": 0.01},
    "along z1 and z2, no noise": {"augment": ("z1", "z2"), "noise": 0.0},
    ONE_NOISY: {"augment": ("z1",), "noise": 0.01},
    ONE: {"augment": ("z1",), "noise": 0.0},
}


@dataclass(kw_only=True)
class Options:
    """Self-supervised GIN on the artificial data of its paper."""

    out: Path = Path("papers/self_supervised_gin")
    """Folder of the paper: results and figures go below it."""
    trials: int = 10
    """Number of trials, each with its own mixture and seed."""
    steps: int = 800
    """Gradient steps; 800 are the paper's 80 epochs."""
    points: int = 10_000
    """Number of observations."""
    batch_size: int = 1_000
    """Observations in a step, ten copies each."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out, "artificial")


def run_trial(name: str, seed: int, options: Options, output: Output) -> dict[str, Any]:
    """Train one trial of a setting, and return how well each source was recovered."""
    place, data = folders(options), GaussianMixture(points=options.points, seed=seed)
    shared: Any = {"steps": options.steps, "batch_size": options.batch_size, "latent_dim": "all", "seed": seed}
    run = Run(data, SelfSupervisedGIN(**SETTINGS[name], **shared))
    execute([run], place.runs, metrics=["mcc"], notify=output.progress, callback=output.training)
    done = read_run(place.runs / run.key)
    names = [factor.name for factor in done.factors]
    sources = done.truth[:, [names.index("z1"), names.index("z2")]]
    r = np.abs(correlations(sources, done.codes)).max(1)  # the best code for each source
    method = cast(SelfSupervisedGIN, load(done.folder))
    return {
        "setting": name, "trial": seed, "key": run.key, "z1": r[0], "z2": r[1],
        "mcc": done.scores["mcc"], "informative": method.n_informative_,
    }  # fmt: skip


def tables(options: Options) -> list[TextTable]:
    """Return mean and standard deviation over the stored trials of each setting."""
    path = folders(options).scores
    if not path.is_file():
        return []
    lines = []
    for name, group in pd.read_csv(path).groupby("setting", sort=False):
        cells = [f"{group[c].mean():.3f} +- {group[c].std(ddof=0):.3f}" for c in ("z1", "z2", "mcc")]
        recovered = f"{(group['mcc'] > RECOVERED).sum()} of {len(group)}"
        two = f"{(group['informative'] == 2).sum()} of {len(group)}"
        lines.append([str(name), *cells, f"{group['mcc'].min():.3f}", recovered, two])
    columns = ("augmented", "abs(r) of z1", "abs(r) of z2", "MCC", "worst MCC", f"MCC > {RECOVERED}", "two informative")
    return [TextTable("Self-supervised GIN: mean and standard deviation over trials", columns, lines)]


def findings(options: Options, part: str) -> Findings:
    """Return the claims of the paper's Figure 1."""
    path = folders(options).scores
    if not path.is_file() or part != "figure-1":
        return Findings()
    rows = pd.read_csv(path)
    share = {str(name): (group["mcc"] > RECOVERED).mean() for name, group in rows.groupby("setting")}
    if not {BOTH, ONE, ONE_NOISY} <= set(share):
        return Findings()
    both, one, noisy = (float(share[name]) for name in (BOTH, ONE, ONE_NOISY))
    claims = (
        Claim("both sources are recovered when both are augmented", both > 0.5),
        Claim("with one of them, the other is recovered too, in some trials", one > 0),
        Claim("noise in the data makes that stable", noisy > one or noisy == 1),
    )
    effort = f"{rows['trial'].nunique()} trials, {options.steps:,} steps"
    return Findings(claims=claims, figures=folders(options).drawn("*.png"), effort=effort)


def draw(rows: pd.DataFrame, options: Options) -> None:
    """Draw the best and the worst trial of each setting."""
    place = folders(options)
    for name, group in rows.groupby("setting", sort=False):
        ranked = group.sort_values("mcc").to_dict("records")
        for rank, row in (("worst", ranked[0]), ("best", ranked[-1])):
            data = GaussianMixture(points=options.points, seed=int(row["trial"])).load()
            file = str(name).replace(",", "").replace(" ", "-").replace(".", "")
            place.save(draw_recovery(load(place.runs / row["key"]), data), f"{file}-{rank}.png")


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place = folders(options)
    place.create()
    rows = []
    for name in SETTINGS:
        for seed in range(options.trials):
            with contextlib.suppress(InputError):  # a warning has named the failed trial; the others go on
                rows.append(run_trial(name, seed, options, output))
        pd.DataFrame(rows).to_csv(place.scores, index=False)
    draw(pd.DataFrame(rows), options)
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
