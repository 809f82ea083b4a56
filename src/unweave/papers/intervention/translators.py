"""Unsupervised disentanglement learning by intervention (2021), ours: which translator, and what makes seeds agree?

unweave paper run intervention/ablation-diff                  # colored digits and a small dSprites; for a GPU
unweave paper run intervention/ablation-seeds                    # the same of what steadies the adversaries
unweave paper run intervention/ablation-diff --scale small    # minutes on two cores

Translators are compared at equal compute: each has as many steps as it can take with the floating-point operations of
`--steps` steps of the ridge. Half of the seeds choose, by the translation score on held-out images, which needs no
labels; the other half judge by labels. The deviation of scores over seeds shows how far seeds agree. What steadies the
adversaries is added to the ridge translator, and has equal steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from torch.utils.flop_counter import FlopCounterMode

from unweave.datasets import Resampled
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run
from unweave.experiments.study import execute, packs
from unweave.methods.neural import Neural
from unweave.metrics.uncertainty import plus_minus
from unweave.papers.curves import save_curves
from unweave.papers.folders import Folders
from unweave.papers.intervention import settings
from unweave.papers.intervention.claims import OURS
from unweave.papers.intervention.tables import KEYS, score_run
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Findings, compare_means, describe_effort, folder_name, merge_rows, select_methods
from unweave.utils.errors import plural

REFERENCE, WITHOUT, PAPER = "ridge", "no L_diff", "3 inner steps"
TRANSLATORS: dict[str, dict[str, Any]] = {
    WITHOUT: {"diff_mode": "off"},
    PAPER: {},
    "20 inner steps": {"inner_steps": 20},
    "persistent": {"diff_mode": "persistent"},
    REFERENCE: {"diff_mode": "ridge"},
    "random features": {"diff_mode": "random-features"},
}
STABILITY: dict[str, dict[str, Any]] = {
    "ridge, spectral norm": {"discriminator_norm": "spectral"},
    "ridge, R1 = 1": {"gradient_penalty": 1.0},
    "ridge, R1 = 10": {"gradient_penalty": 10.0},
    "ridge, averaged weights": {"weight_average": 0.999},
    "ridge, falling rate": {"lr_schedule": "cosine"},
}
STEPS = {"cmnist": 25_000, "dsprites": 30_000, "small": 60}  # of the ridge
POINTS, HELD_OUT = 20_000, 10_000  # of the small dSprites
SHAPES = {"cmnist": (3, 28, 28), "dsprites": (1, 64, 64)}


@dataclass(kw_only=True)
class Options:
    """Translators of L_diff, or what steadies the adversaries."""

    data: Literal["cmnist", "dsprites"] = "cmnist"
    """Dataset of images: colored digits, or 20,000 images of dSprites."""
    scale: Literal["small", "full"] = "full"
    """full: the networks of the tables; small: narrow ones, and few steps."""
    out: Path = Path("papers/intervention")
    """Folder of the paper: results go below it."""
    seeds: int = 10
    """Number of repetitions, of which the first half choose."""
    steps: int = 0
    """Gradient steps of the ridge; 0: 25,000 for colored digits, 30,000 for dSprites, or 60 at small scale."""
    part: Literal["correlated", "independent"] = "correlated"
    """Training set."""
    stability: bool = False
    """Compare what steadies the adversaries, beside the ridge."""
    only: tuple[str, ...] = ()
    """Rows with these names, or whose names contain one of these."""


def usual_steps(options: Options) -> int:
    """Return the steps of the ridge in the stored tables."""
    return STEPS["small" if options.scale == "small" else options.data]


def table_options(options: Options) -> settings.Options:
    """Return the options of the paper's tables with the same data and networks."""
    steps = options.steps or usual_steps(options)
    converged = options.scale == "full"
    return settings.Options(table=options.data, scale=options.scale, converged=converged, steps=steps, only=(OURS,))


def make_data(options: Options) -> Resampled:
    """Return the recipe of the training set."""
    data = settings.make_data(table_options(options), options.part)
    return replace(data, points=min(POINTS, data.points), held_out=min(HELD_OUT, data.held_out))


def methods(options: Options, seed: int) -> dict[str, Neural]:
    """Return the methods by the names of their rows."""
    base: Any = settings.methods(table_options(options), seed)[OURS]
    every: dict[str, Neural]
    if options.stability:
        base.set_params(**TRANSLATORS[REFERENCE])
        every = {name: clone(base).set_params(**change) for name, change in {REFERENCE: {}, **STABILITY}.items()}
    else:
        every = {name: clone(base).set_params(**change) for name, change in TRANSLATORS.items()}
        for name, method in every.items():
            method.set_params(steps=equal_steps(base.steps, relative_cost(name, options.data, options.scale)))
    return select_methods(every, options.only)


def equal_steps(steps: int, cost: float) -> int:
    """Return how many steps of a relative cost can be taken instead of `steps`, in hundreds where they are many."""
    return max(1, round(steps / cost / 100) * 100 if steps > 1_000 else round(steps / cost))


@cache
def relative_cost(name: str, data: Literal["cmnist", "dsprites"], scale: Literal["small", "full"]) -> float:
    """Return the operations of a step with a translator, divided by those with the ridge."""
    base = settings.methods(table_options(Options(data=data, scale=scale)), 0)[OURS]
    one, ridge = (
        count_operations(clone(base).set_params(**TRANSLATORS[row]), SHAPES[data]) for row in (name, REFERENCE)
    )
    return one / ridge


def count_operations(method: Any, shape: tuple[int, ...]) -> float:
    """Return floating-point operations of loss and gradients for images of this shape, without computing them."""
    method = clone(method)
    method.shape_, n = shape, method.batch_size
    with torch.device("meta"):
        net = method.build(shape)
        batch = {"x": torch.zeros(n, *shape), "x_r": torch.zeros(n, *shape)}
        batch |= {"k": torch.zeros(n, dtype=torch.int64), "progress": torch.ones(())}
        with FlopCounterMode(display=False) as counter:
            method.loss(net, batch)["loss"].backward()
    return float(counter.get_total_flops())


def list_runs(options: Options) -> dict[tuple[Any, ...], Run]:
    """Return every run by row, training set and seed."""
    data = make_data(options)
    return {
        (name, options.part, seed): Run(data, method)
        for seed in range(options.seeds)
        for name, method in methods(options, seed).items()
    }


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    parts = {"small": options.scale == "small", "independent": options.part == "independent"}
    parts |= {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    name = "stability" if options.stability else "translators"
    return Folders(options.out, folder_name(f"{name}-{options.data}", parts))


# Choice and judgment --------------------------------------------------------------------------------------------------


def split_seeds(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of the seeds that choose, and of those that judge: the first half, and the others."""
    first = -(-(int(rows["seed"].max()) + 1) // 2)
    return rows[rows["seed"] < first], rows[rows["seed"] >= first]


def choose(rows: pd.DataFrame) -> str:
    """Return the row with L_diff that translates best in the mean; a run that collapsed translates worst of all.

    Without rows with L_diff there is no choice, and an empty name.
    """
    candidates = rows[rows["method"] != WITHOUT]
    if candidates.empty:
        return ""
    return str(candidates["translation"].fillna(1.0).groupby(candidates["method"]).mean().idxmin())


def tables(options: Options) -> list[TextTable]:
    """Return the stored table: the translation score that chooses, and scores by labels that judge."""
    path = folders(options).scores
    if not path.is_file():
        return []
    rows = pd.read_csv(path)
    choosing, judging = split_seeds(rows)
    chosen, lines = choose(choosing), []
    for name in dict.fromkeys(rows["method"]):
        first, other = (part[part["method"] == name] for part in (choosing, judging))
        spread = [f"{rows.loc[rows['method'] == name, column].std():.3f}" for column in ("dci", "sap")]
        cells = [plus_minus(other[column]) for column in ("translation", "dci", "sap")]
        steps = f"{int(rows.loc[rows['method'] == name, 'steps'].max()):,}"
        label = f"{name} (chosen)" if name == chosen else name
        lines.append([label, steps, plus_minus(first["translation"]), *cells, *spread])
    title = f"{folders(options).name} ({make_data(options).title()}); mean and 95 % interval, "
    title += f"{choosing['seed'].nunique()} seeds choose, {judging['seed'].nunique()} judge"
    heads = ["row", "steps", "translation, choosing", "translation", "DCI", "SAP", "deviation of DCI", "of SAP"]
    return [TextTable(title, heads, lines)]


def findings(options: Options, part: str) -> Findings:
    """Return whether the chosen row makes translation easier, and scores better by labels."""
    path = folders(options).scores
    if not path.is_file():
        return Findings(missing=(f"{part}, {options.data}",))
    rows = pd.read_csv(path)
    choosing, judging = split_seeds(rows)
    chosen, base = choose(choosing), REFERENCE if options.stability else PAPER
    effort = f"{options.data}: {describe_effort(rows, ['method', 'part'], options.steps or usual_steps(options))}"
    if not chosen:
        return Findings(effort=effort)
    by_row = judging.groupby("method")
    easy = {str(name): (-group["translation"].fillna(1.0)).tolist() for name, group in by_row}
    disentangled = {str(name): group["dci"].tolist() for name, group in by_row}
    where = f"on {options.data}, by seeds that did not choose"
    claims = compare_means(f"{chosen} makes translation easier than no L_diff {where}", easy, chosen, [WITHOUT])
    if chosen != base:
        claims += compare_means(f"{chosen} has a better DCI than {base} {where}", disentangled, chosen, [base])
    return Findings(claims=tuple(claim._replace(own=True) for claim in claims), effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, and report the table; the scores of a pack are stored as soon as it is trained."""
    place = folders(options)
    place.create()
    runs, finished = list_runs(options), 0
    for pack in packs(runs.values()):
        execute(pack, place.runs, metrics=[], notify=output.progress, callback=output.training)
        done = {head: run for head, run in runs.items() if run in pack and (place.runs / run.key).is_dir()}
        if done:  # else warnings have named the runs that failed
            output.progress(f"scoring {plural(len(done), 'run')} of {next(iter(done))[0]}")
            store_scores(done, place, options)
            finished += len(done)
    if not finished:
        raise no_finished_runs(place.runs, runs.values())
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}.")


def store_scores(done: Mapping[tuple[Any, ...], Run], place: Folders, options: Options) -> None:
    """Score finished runs as the tables of the paper do, and add them to the table."""
    jobs = [delayed(score_run)(place.runs / run.key, table_options(options)) for run in done.values()]
    scores = Parallel(n_jobs=-1)(jobs)
    steps: list[Any] = [run.method for run in done.values()]
    rows = [
        dict(zip(KEYS, head, strict=True)) | {"steps": method.steps} | each
        for head, method, each in zip(done, steps, scores, strict=True)
    ]
    merge_rows(pd.DataFrame(rows), place.scores, KEYS)
    save_curves({head: place.runs / run.key for head, run in done.items()}, KEYS, place)
