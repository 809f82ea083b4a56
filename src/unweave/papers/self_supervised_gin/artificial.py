"""Self-supervised GIN, Sec. 4.2: which sources are found by augmenting along two, along one, along one with noise?

python -m unweave.papers.self_supervised_gin.artificial  # ten trials each; minutes on a GPU, an hour on two cores
python -m unweave.papers.self_supervised_gin.artificial --trials 2 --steps 200

A trial is a mixture, a mixing and a start of its own. 10,000 points, ten copies of each; 80 epochs of 1,000 points. The
paper's claim: with one augmented dimension the other one is found too, but not always, and noise makes it stable.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from unweave.catalog import load
from unweave.cli.terminal import launch, print_table, print_text, progress
from unweave.datasets import GaussianMixture
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import SelfSupervisedGIN
from unweave.metrics.mcc import correlations
from unweave.papers.verdicts import Claim, Findings, drawn
from unweave.report.figures.flows import draw_recovery
from unweave.report.figures.style import save_figure
from unweave.utils.errors import InputError

FOUND = 0.95  # MCC from which on a trial has found both sources
BOTH, NOISY, ALONE = "along z1 and z2, noise 0.01", "along z1, noise 0.01", "along z1, no noise"
SETTINGS: dict[str, dict[str, Any]] = {
    BOTH: {"augment": ("z1", "z2"), "noise": 0.01},
    "along z1 and z2, no noise": {"augment": ("z1", "z2"), "noise": 0.0},
    NOISY: {"augment": ("z1",), "noise": 0.01},
    ALONE: {"augment": ("z1",), "noise": 0.0},
}


@dataclass(kw_only=True)
class Options:
    """Self-supervised GIN on the artificial data of its paper."""

    out: Path = Path("papers/self_supervised_gin/results/artificial")
    """where runs, figures and tables go"""
    trials: int = 10
    """mixtures, each with a start of its own"""
    steps: int = 800
    """gradient steps; the paper's 80 epochs"""
    points: int = 10_000
    """observations"""
    batch_size: int = 1_000
    """observations in a step, ten copies each"""


def trial(name: str, setting: dict[str, Any], seed: int, options: Options, notify: Any) -> dict[str, Any]:
    """How well each source was found in one trial."""
    data = GaussianMixture(points=options.points, seed=seed)
    shared: Any = {"steps": options.steps, "batch_size": options.batch_size, "latent_dim": "all", "seed": seed}
    run = Run(data, SelfSupervisedGIN(**setting, **shared))
    execute([run], options.out / "runs", metrics=["mcc"], notify=notify)
    done = read_run(options.out / "runs" / run.key)
    names = [factor.name for factor in done.factors]
    truth = done.truth[:, [names.index("z1"), names.index("z2")]]
    r = np.abs(correlations(truth, done.codes)).max(1)  # the best code for each source
    method = cast(SelfSupervisedGIN, load(done.folder))
    return {
        "setting": name, "trial": seed, "key": run.key, "z1": r[0], "z2": r[1],
        "mcc": done.scores["mcc"], "informative": method.n_informative_,
    }  # fmt: skip


def findings(options: Options, part: str) -> Findings:
    """The claims of the paper's Figure 1."""
    path = options.out / "scores.csv"
    if not path.is_file() or part != "figure-1":
        return Findings()
    rows = pd.read_csv(path)
    share = {str(name): (group["mcc"] > FOUND).mean() for name, group in rows.groupby("setting")}
    if not {BOTH, ALONE, NOISY} <= set(share):
        return Findings()
    both, one, noisy = (float(share[name]) for name in (BOTH, ALONE, NOISY))
    claims = (
        Claim("both sources are found when both are augmented", both > 0.5),
        Claim("with one of them, the other is found too, in some trials", one > 0),
        Claim("noise in the data makes that stable", noisy > one or noisy == 1),
    )
    return Findings(claims=claims, figures=drawn(sorted(options.out.glob("*.png"))))


def main(options: Options) -> None:
    """Run what is missing, draw, print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    with progress() as notify:
        for name, setting in SETTINGS.items():
            for seed in range(options.trials):
                with contextlib.suppress(InputError):  # a trial that failed was named, and costs no other
                    rows.append(trial(name, setting, seed, options, notify))
            pd.DataFrame(rows).to_csv(options.out / "scores.csv", index=False)
    frame = pd.DataFrame(rows)
    lines = []
    for called, group in frame.groupby("setting", sort=False):
        ranked = group.sort_values("mcc").to_dict("records")
        for which, row in (("worst", ranked[0]), ("best", ranked[-1])):
            data = GaussianMixture(points=options.points, seed=int(row["trial"])).load()
            method = load(options.out / "runs" / row["key"])
            place = str(called).replace(",", "").replace(" ", "-").replace(".", "")
            save_figure(draw_recovery(method, data), options.out / f"{place}-{which}.png")
        cells = [f"{group[c].mean():.3f} +- {group[c].std(ddof=0):.3f}" for c in ("z1", "z2", "mcc")]
        lines.append([str(called), *cells, f"{group['mcc'].min():.3f}", f"{(group['mcc'] > FOUND).mean():.1f}"])
    head = ["augmented", "|r| of z1", "|r| of z2", "MCC", "worst MCC", f"MCC > {FOUND}"]
    print_table(head, lines, f"Self-supervised GIN, {options.trials} trials: mean +- deviation")
    print_text(f"Figures and scores.csv are in {options.out}.")


if __name__ == "__main__":
    launch(main, Options)
