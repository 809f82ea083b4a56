"""Unsupervised disentanglement learning by intervention (2021), Tables 1 to 3 and Figure 4: correlated factors.

unweave paper run intervention/table-1                              # dSprites; for a GPU
unweave paper run intervention/table-2                              # 3DShapes, and Figure 4
unweave paper run intervention/table-3                              # colored MNIST; needs the files of MNIST
unweave paper run intervention/table-1 --scale small                # minutes on two cores: to see it run
unweave paper run intervention/ablation-dsprites                    # each loss of ours left out in turn
unweave paper run intervention/table-1 --converged --seeds 5        # at the paper's learning rates
unweave paper run intervention/table-1 --strength 0.1               # a stronger correlation

Two training sets of the same size, one with correlated factors, one with independent ones; scores on held-out images
whose factors are independent. FactorVAE and its critic have the learning rate of ours. IRS is by the 99 % quantile, as
in the reference library. SAP is by logistic regression of every factor; `sap[mixed]` takes it for the shape only, and
squared correlation for the others; `sap[r2]` is squared correlation for all. With six seeds or more, the table also has
of every three seeds the run that translates best, which needs no labels. `curves.csv` has the losses over the steps.

Of colored MNIST, SAP alone cannot tell both factors in one feature from one factor in each: read it beside DCI.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import FactorVAE, InterventionAutoencoder
from unweave.metrics import dci, irs, sap, translation_difficulty
from unweave.metrics.explain import explain
from unweave.metrics.translation import Translation
from unweave.papers.curves import save_curves
from unweave.papers.intervention.claims import (
    OURS,
    PAPER_LAMBDA_ADV,
    RIDGE,
    add_selected,
    compute_losses,
    judge_table,
    make_table,
)
from unweave.papers.intervention.settings import (
    Options,
    folders,
    make_data,
    methods,
    seed_range,
    training_sets,
    usual_steps,
)
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings, describe_effort, merge_rows
from unweave.report.figures.matrices import draw_matrices
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import InputError

DEPTHS: dict[str, Any] = {"dsprites": (4, 2, 4, 2, 2), "shapes3d": "cv"}  # of the random forests, Appendix D
KEYS = ["method", "part", "seed"]


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


def list_runs(options: Options) -> dict[tuple[Any, ...], Run]:
    """Return every run by method, training set and seed."""
    return {
        (name, part, seed): Run(make_data(options, part), method)
        for part in training_sets(options)
        for seed in seed_range(options)
        for name, method in methods(options, seed).items()
    }


def run_all(options: Options, output: Output) -> tuple[pd.DataFrame, dict[tuple[Any, ...], Path]]:
    """Train and score every method; return one row per run, and the folders by method, training set and seed."""
    place, runs = folders(options), list_runs(options)
    execute(runs.values(), place.runs, metrics=[], notify=output.progress, callback=output.training)
    done = {head: place.runs / run.key for head, run in runs.items() if (place.runs / run.key).is_dir()}
    if not done:  # warnings have named the runs that failed
        raise no_finished_runs(place.runs, runs.values())
    output.progress(f"scoring {len(done)} runs")
    scores = Parallel(n_jobs=-1)(delayed(score_run)(folder, options) for folder in done.values())
    rows = [dict(zip(KEYS, head, strict=True)) | each for head, each in zip(done, scores, strict=True)]
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


def tables(options: Options) -> list[TextTable]:
    """Return the stored table, the paper's numbers in brackets."""
    place = folders(options)
    if not place.scores.is_file():
        return []
    data, steps = make_data(options, "test"), options.steps or usual_steps(options)
    title = f"{place.name} ({data.title()}); {steps:,} steps; mean and 95 % interval"
    return [make_table(read_scores(options), options.table, title)]


def read_scores(options: Options) -> pd.DataFrame:
    """Return the stored rows, with selected seeds; with --converged, SAP is the variant that the paper has."""
    rows = add_selected(pd.read_csv(folders(options).scores))
    if not options.converged or options.table == "cmnist":
        return rows
    return rows.rename(columns={"sap": "sap[logistic]", "sap[mixed]": "sap"})


def findings(options: Options, part: str) -> Findings:
    """Return the numbers of a table, and its claim: correlated factors cost the baselines more."""
    place = folders(options)
    if not place.scores.is_file():
        return Findings(missing=(f"{options.table}, lambda_adv {options.lambda_adv:g}",))
    rows = read_scores(options)
    figures = place.drawn("figure-4-*.png")
    effort = describe_effort(rows, ["method", "part"], options.steps or usual_steps(options))
    if part == "figure-4" or options.ablate:
        return Findings(figures=figures, effort=effort)
    is_usual = options.lambda_adv == PAPER_LAMBDA_ADV
    results = judge_table(rows, options.table, "" if is_usual else f", lambda_adv {options.lambda_adv:g}")
    return results._replace(figures=figures, effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, draw, and report the table."""
    place = folders(options)
    place.create()
    new, run_folders = run_all(options, output)
    merge_rows(new, place.scores, KEYS)
    save_curves(run_folders, KEYS, place)
    for name, short in {OURS: OURS, RIDGE: "ridge", "FactorVAE, gamma = 40": "factorvae"}.items():
        correlated = new.query("method == @name and part == 'correlated'").sort_values("dci").to_dict("records")
        if correlated and options.table != "cmnist":
            draw_figure_4(run_folders[name, "correlated", correlated[-1]["seed"]], options, short)
    for table in tables(options):
        output.table(table)
    losses = compute_losses(read_scores(options), "sap" if options.table == "cmnist" else "dci")
    if losses:
        text = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
        output.text(f"Lost from independent to correlated factors: {text}")
    output.text(f"Scores are in {place.results}, figures in {place.figures}.")
