"""Unsupervised disentanglement learning by intervention (2021), Tables 1 to 3 and Figure 4: correlated factors.

unweave paper run intervention/table-1                              # dSprites; for a GPU
unweave paper run intervention/table-2                              # 3DShapes, and Figure 4
unweave paper run intervention/table-3                              # colored MNIST; needs the files of MNIST
unweave paper run intervention/table-1 --scale small                # minutes on two cores: to see it run
unweave paper run intervention/ablation-dsprites                    # each loss of ours left out in turn

Two training sets of the same size, one with correlated factors, one with independent ones; scores on held-out images
whose factors are independent. FactorVAE and its critic have the learning rate of ours. IRS is by the 99 % quantile, as
in the reference library. SAP is by logistic regression of every factor; `sap[mixed]` takes it for the shape only, and
squared correlation for the others; `sap[r2]` is squared correlation for all. With six seeds or more, the table also has
of every three seeds the run that translates best, which needs no labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.datasets import Resampled
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import BetaTCVAE, FactorVAE, InfoGANCR, InterventionAutoencoder
from unweave.methods.neural import Neural
from unweave.metrics import dci, irs, sap, translation_difficulty
from unweave.metrics.explain import explain
from unweave.metrics.translation import Translation
from unweave.papers.folders import Folders
from unweave.papers.intervention.claims import (
    OURS,
    PAPER_LAMBDA_ADV,
    RIDGE,
    WITHOUT_DIFF,
    add_selected,
    compute_losses,
    judge_table,
    make_table,
)
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings, describe_effort, folder_name, merge_rows, select_methods
from unweave.report.figures.matrices import draw_matrices
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import InputError

Part = Literal["correlated", "independent", "test"]
RATES = {"small": 2e-3, "full": 5e-4}
STEPS = {"dsprites": 11_000, "shapes3d": 4_000, "cmnist": 2_500}  # of the stored tables; the paper does not say
DEPTHS: dict[str, Any] = {"dsprites": (4, 2, 4, 2, 2), "shapes3d": "cv"}  # of the random forests, Appendix D


@dataclass(kw_only=True)
class Options:
    """Tables 1, 2 and 3 of disentanglement by intervention."""

    table: Literal["dsprites", "shapes3d", "cmnist"] = "dsprites"
    """Table of the paper."""
    scale: Literal["small", "full"] = "full"
    """full: the paper's sizes; small: few images, small networks, few steps, FactorVAE as the only baseline."""
    out: Path = Path("papers/intervention")
    """Folder of the paper: results and figures go below it."""
    seeds: int = 3
    """Number of repetitions; the paper has ten."""
    steps: int = 0
    """Gradient steps; 0: 11,000 for dSprites, 4,000 for 3DShapes, 2,500 for CMNIST, or 500 at small scale."""
    lr: float = 0.0
    """Learning rate of ours and FactorVAE; 0: 5e-4, or 2e-3 at small scale. The paper's 1e-4 needs many more steps."""
    lambda_adv: float = PAPER_LAMBDA_ADV
    """Weight of L_adv of our method."""
    only: tuple[str, ...] = ()
    """Methods with these names, or whose names contain one of these."""
    ablate: bool = False
    """Run only our method, with each of its losses left out in turn, on correlated factors."""


def make_data(options: Options, part: Part) -> Resampled:
    """Return the recipe of a training set; the paper has 200,000 images of dSprites and 100,000 of 3DShapes."""
    if options.scale == "small":
        points, held_out = 2_000, 1_000
    else:
        points, held_out = 100_000 if options.table == "shapes3d" else 200_000, 50_000
    source: Literal["dsprites", "shapes3d", "colored-mnist"] = (
        "colored-mnist" if options.table == "cmnist" else options.table
    )
    return Resampled(of=source, part=part, points=points, held_out=held_out)


def usual_steps(options: Options) -> int:
    """Return the steps of the stored tables, or enough to see it run."""
    return 500 if options.scale == "small" else STEPS[options.table]


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by their names in the tables."""
    small = options.scale == "small"
    shared: Any = {"seed": seed, "steps": options.steps or usual_steps(options)}
    net: Any = {"hidden": (128,)}
    if options.table == "cmnist":
        # Tables 6 and 7, but for the decoder, which starts from 7 x 7 x 128 and not 4 x 4 x 64.
        net = {"widths": (64, 128, 128), "hidden": ()}
    if small:
        shared |= {"batch_size": 16}
        net |= {"widths": (8, 8, 16, 16)}
    groups: Any = {"latent_dim": 32, "feature_dim": 16} if options.table == "cmnist" else {"latent_dim": 10}
    lr = options.lr or RATES[options.scale]
    ours: Any = {**shared, **net, **groups, "lr": lr, "weight_lr": lr / 10}
    ours |= {"lambda_in": 1.0 if options.table == "cmnist" else 0.25, "lambda_adv": options.lambda_adv}
    if small:
        ours |= {"inner_steps": 2, "translator": 32}
    if options.ablate:
        return select_methods(make_ablations(ours), options.only)
    variants = {OURS: {}, RIDGE: {"diff_mode": "ridge"}, WITHOUT_DIFF: {"diff_mode": "off"}}
    every = make_baselines(options, shared, net, groups | {"lr": lr})
    every |= {name: InterventionAutoencoder(**ours | variant) for name, variant in variants.items()}
    return select_methods(every, options.only)


def make_baselines(options: Options, shared: Any, net: Any, more: Any) -> dict[str, Neural]:
    """Create the paper's baselines; at small scale FactorVAE only."""
    small = options.scale == "small"
    critic = (200,) * 3 if small else (1000,) * 6
    baselines: dict[str, Neural] = {
        f"FactorVAE, gamma = {g}": FactorVAE(
            gamma=float(g), critic=critic, critic_lr=more["lr"], **shared, **net, **more
        )
        for g in (10, 40)
    }
    if options.table != "cmnist" and not small:
        flat: Any = {"network": "mlp", "layers": (1200, 1200)} if options.table == "dsprites" else net
        baselines["beta-TCVAE"] = BetaTCVAE(**shared | {"batch_size": 2048}, **flat, **more | {"lr": 1e-3})
        baselines["InfoGAN-CR"] = InfoGANCR(**shared, **net, latent_dim=5 if options.table == "dsprites" else 6)
    return baselines


def make_ablations(ours: dict[str, Any]) -> dict[str, Neural]:
    """Create our method with one loss left out or changed at a time."""
    changes: dict[str, Any] = {
        "all": {}, "without L_in": {"lambda_in": 0.0}, "without L_adv": {"lambda_adv": 0.0},
        "L_adv x 3": {"lambda_adv": 3 * ours["lambda_adv"]}, "without L_diff": {"lambda_diff": 0.0},
        "without weights": {"reweight": False}, "minimax": {"adversary": "minimax"},
        "through the steps": {"diff_mode": "steps"}, "L_diff by ridge": {"diff_mode": "ridge"},
    }  # fmt: skip
    return {f"{OURS}: {name}": InterventionAutoencoder(**ours | change) for name, change in changes.items()}


def score_run(folder: Path, options: Options) -> dict[str, float]:
    """Compute DCI, SAP and IRS of a run; a feature of several codes counts as one."""
    done, method = read_run(folder), load(folder)
    grouped = options.table == "cmnist" and isinstance(method, FactorVAE | InterventionAutoencoder)
    groups = method.feature_groups() if grouped else None
    scored = [j for j, f in enumerate(done.factors) if not f.noise]
    c, z = done.truth[:, scored], done.codes
    scores = {"sap": sap(c, z, predictor="logistic", features=groups)}
    if groups is None:
        scores["dci"] = dci(c[:5_000], z[:5_000], estimator="rf", depth=DEPTHS[options.table]).disentanglement
        mixed: Any = ["logistic" if done.factors[j].kind == "nominal" else "r2" for j in scored]
        scores |= {
            "irs": float(irs(c, z)),
            "sap[mixed]": sap(c, z, predictor=mixed),
            "sap[r2]": sap(c, z, predictor="r2"),
        }
    else:
        scores["dci"] = dci(c, z, features=groups).disentanglement
    scores["translation"] = measure_translation(method, z, translator="linear").relative
    return {k: float(v) for k, v in scores.items()}


def measure_translation(method: Any, z: np.ndarray, **settings: Any) -> Translation:
    """Compute the difficulty of translation; NaN for a collapsed run, which must not stop the table."""
    try:
        return translation_difficulty(method, z, **settings)
    except InputError:  # no code varies
        return Translation(np.nan, np.nan, np.nan)


def run_all(options: Options, output: Output) -> tuple[pd.DataFrame, dict[tuple[str, Part, int], Path]]:
    """Train and score every method; return one row per run, and the folders by method, training set and seed."""
    place = folders(options)
    parts: list[Part] = ["correlated"] if options.ablate else ["independent", "correlated"]
    runs = {
        (name, part, seed): Run(make_data(options, part), method)
        for part in parts
        for seed in range(options.seeds)
        for name, method in methods(options, seed).items()
    }
    execute(runs.values(), place.runs, metrics=[], notify=output.progress, callback=output.training)
    done = {head: place.runs / run.key for head, run in runs.items() if (place.runs / run.key).is_dir()}
    if not done:  # warnings have named the runs that failed
        raise no_finished_runs(place.runs, runs.values())
    output.progress(f"scoring {len(done)} runs")
    scores = Parallel(n_jobs=-1)(delayed(score_run)(folder, options) for folder in done.values())
    rows = [
        {"method": name, "part": part, "seed": seed, **each}
        for (name, part, seed), each in zip(done, scores, strict=True)
    ]
    return pd.DataFrame(rows), done


def draw_figure_4(folder: Path, options: Options, name: str) -> None:
    """Draw how important each code is for each factor, and traversals from its 10 % to its 90 % quantile."""
    place, done, method = folders(options), read_run(folder), load(folder)
    names = [f.name for f in done.factors]
    place.save(draw_matrices(explain(done.truth, done.codes, names=names)), f"figure-4-{name}-importance.png")
    test = make_data(options, "correlated")
    held_out = test.evaluation_data(test.load())
    x = held_out.collect(EVALUATION_SIZE, torch.Generator().manual_seed(EVALUATION_SEED)).x.numpy()
    z = done.codes
    lines = []
    for j in np.argsort(-z.std(0))[:8]:
        line = np.repeat(z[:1], 8, 0)
        low, high = np.quantile(z[:, j], [0.1, 0.9])
        line[:, j] = np.linspace(low, high, 8)
        lines.append((f"code {j + 1}", np.concatenate([x[:1], method.inverse_transform(line)])))
    title = f"{name}: observed, then one code from its 10 % to its 90 % quantile"
    place.save(draw_grid(lines, title), f"figure-4-{name}.png")


def folders(options: Options) -> Folders:
    """Return where everything goes; other settings than the usual ones have folders of their own."""
    parts = {f"adv-{options.lambda_adv:g}": options.lambda_adv != PAPER_LAMBDA_ADV, "ablation": options.ablate}
    parts |= {"small": options.scale == "small", f"lr-{options.lr:g}": options.lr not in (0, RATES[options.scale])}
    parts |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return Folders(options.out, folder_name(options.table, parts))


def tables(options: Options) -> list[TextTable]:
    """Return the stored table, the paper's numbers in brackets."""
    place = folders(options)
    if not place.scores.is_file():
        return []
    data, steps = make_data(options, "test"), options.steps or usual_steps(options)
    title = f"{place.name} ({data.title()}); {steps:,} steps; mean and 95 % interval"
    return [make_table(add_selected(pd.read_csv(place.scores)), options.table, title)]


def findings(options: Options, part: str) -> Findings:
    """Return the numbers of a table, and its claim: correlated factors cost the baselines more."""
    place = folders(options)
    if not place.scores.is_file():
        return Findings(missing=(f"{options.table}, lambda_adv {options.lambda_adv:g}",))
    rows = pd.read_csv(place.scores)
    figures = place.drawn("figure-4-*.png")
    effort = describe_effort(rows, ["method", "part"], options.steps or usual_steps(options))
    if part == "figure-4" or options.ablate:
        return Findings(figures=figures, effort=effort)
    is_usual = options.lambda_adv == PAPER_LAMBDA_ADV
    results = judge_table(add_selected(rows), options.table, "" if is_usual else f", lambda_adv {options.lambda_adv:g}")
    return results._replace(figures=figures, effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place = folders(options)
    place.create()
    new, run_folders = run_all(options, output)
    rows = merge_rows(new, place.scores, ["method", "part", "seed"])
    for name, short in {OURS: OURS, RIDGE: "ridge", "FactorVAE, gamma = 40": "factorvae"}.items():
        correlated = new.query("method == @name and part == 'correlated'").sort_values("dci").to_dict("records")
        if correlated and options.table != "cmnist":
            draw_figure_4(run_folders[name, "correlated", correlated[-1]["seed"]], options, short)
    for table in tables(options):
        output.table(table)
    losses = compute_losses(add_selected(rows), "sap" if options.table == "cmnist" else "dci")
    if losses:
        text = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
        output.text(f"Lost from independent to correlated factors: {text}")
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
