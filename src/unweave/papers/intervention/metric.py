"""Unsupervised disentanglement learning by intervention (2021), Figure 3: is translation difficulty a good score?

unweave paper run intervention/figure-3                          # FactorVAE, 6 strengths x 2 seeds x 2 sets; for a GPU
unweave paper run intervention/figure-3 --scale small            # minutes on two cores
unweave paper run intervention/figure-3 --seeds 5 --steps 30000  # 60 runs of each dataset

FactorVAE runs on independent and on correlated factors; Spearman correlation between all scores over the runs. Scores
of the translation task, which needs no labels, have their signs changed, since small is good there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.datasets import Resampled
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods import FactorVAE
from unweave.metrics import dci, irs, mig, sap
from unweave.papers.folders import Folders
from unweave.papers.intervention.tables import DEPTHS, measure_translation
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings, folder_name, merge_rows
from unweave.report.figures.matrices import draw_matrix
from unweave.report.figures.style import make_panels

STEPS = {"full": 8_000, "small": 150}  # of the stored runs; enough to see it run
DCI = ("dci[rf]", "dci[trees]")  # by the random forests of the paper's Appendix D; the catalog's
KEYS = ["part", "gamma", "seed"]
MIN_CORRELATION = 0.3  # with DCI, for a score that ranks runs as DCI does
MIN_RUNS = 3  # that can be ranked
STRENGTHS = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)
POINTS = {"dsprites": 200_000, "shapes3d": 100_000}  # the paper's
Part = Literal["independent", "correlated"]


@dataclass(kw_only=True)
class Options:
    """Figure 3 of disentanglement by intervention."""

    data: Literal["dsprites", "shapes3d"] = "dsprites"
    """Dataset of images."""
    scale: Literal["small", "full"] = "full"
    """full: the paper's sizes; small: few images, a small network, few steps."""
    out: Path = Path("papers/intervention")
    """Folder of the paper: results and figures go below it."""
    seeds: int = 2
    """Number of repetitions of each strength."""
    steps: int = 0
    """Gradient steps; 0: 8,000, or 150 at small scale."""
    part: Literal["both", "independent", "correlated"] = "both"
    """Training sets: a set of its own is a pack of its own, so that two processes may take one each."""


def list_runs(options: Options) -> dict[tuple[Any, ...], Run]:
    """Return runs by training set, strength and seed; the paper varies them too."""
    small = options.scale == "small"
    sizes: Any = {"points": 2_000, "held_out": 1_000} if small else {"points": POINTS[options.data]}
    net: Any = {"widths": (8, 8, 16, 16), "critic": (200,) * 3, "batch_size": 16} if small else {}
    net |= {"steps": options.steps or STEPS[options.scale], "hidden": (128,)}
    parts: tuple[Part, ...] = get_args(Part) if options.part == "both" else (options.part,)
    return {
        (part, g, s): Run(
            Resampled(of=options.data, part=part, **sizes), FactorVAE(gamma=g, critic_lr=FactorVAE.lr, seed=s, **net)
        )
        for part in parts
        for g in (STRENGTHS[::2] if small else STRENGTHS)
        for s in range(options.seeds)
    }


def score_run(folder: Path, options: Options) -> dict[str, float]:
    """Compute every score of a run; larger is better."""
    done, method = read_run(folder), load(folder)
    c, z = done.truth[:5_000], done.codes[:5_000]
    task: Any = {"steps": 20, "observations": 64} if options.scale == "small" else {}
    network, linear = (measure_translation(method, z, translator=t, **task) for t in ("network", "linear"))
    forests = dci(c, z, estimator="rf", depth=DEPTHS[options.data])
    return {
        "translation": -network.difficulty, "translation, excess": -network.excess,
        "translation, relative": -network.relative, "translation, linear, relative": -linear.relative,
        DCI[0]: forests.disentanglement, DCI[1]: dci(c, z).disentanglement,
        "sap": sap(c, z, predictor="logistic"), "sap[r2]": sap(c, z, predictor="r2"),
        "irs": float(irs(c, z)), "mig": mig(c, z),
    }  # fmt: skip


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    parts = {"small": options.scale == "small"}
    parts |= {f"{options.steps}-steps": options.steps not in (0, STEPS[options.scale])}
    return Folders(options.out, folder_name(f"figure-3-{options.data}", parts))


def findings(options: Options, part: str) -> Findings:
    """Return whether the translation task ranks runs as scores by labels do."""
    place = folders(options)
    if not place.scores.is_file():
        return Findings(missing=(options.data,))
    rows, where = pd.read_csv(place.scores), f"on {options.data}"
    texts = {
        "translation": f"the translation loss ranks runs {where} as DCI does (correlation above {MIN_CORRELATION})",
        "translation, relative": f"relative to what exchanges change, it does so {where}",
        "translation, linear, relative": f"relative, and with a linear translator, it does so {where}",
    }
    claims = []
    for name, text in texts.items():
        value, low, _ = correlate_with_dci(rows, name)
        holds = False if value <= MIN_CORRELATION else True if low > MIN_CORRELATION else None
        claims.append(Claim(text, holds, own=name != "translation" or part != "figure-3"))
    effort = f"{options.data}: {len(rows)} runs, {options.steps or STEPS[options.scale]:,} steps"
    return Findings(claims=tuple(claims), figures=place.drawn("figure-3.png"), effort=effort)


def tables(options: Options) -> list[TextTable]:
    """Return the rank correlation of every score with every other, and with DCI with its interval."""
    path = folders(options).scores
    if not path.is_file():
        return []
    rows = pd.read_csv(path)
    rank = correlate(rows)
    translation = [str(name) for name in rank if str(name).startswith("translation")]
    by_labels = [str(name) for name in rank if str(name) not in translation]
    lines = [[name, *(f"{float(rank[column][name]):.2f}" for column in by_labels)] for name in translation]
    compared = {"DCI": next(column for column in DCI if column in rows), "SAP": "sap", "IRS": "irs"}  # as in the paper
    agreement = []
    for name in translation:
        intervals = [correlate_pair(rows[name].to_numpy(), rows[column].to_numpy()) for column in compared.values()]
        agreement.append([name, *(f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in intervals)])
    return [
        TextTable(figure_title(rows, options), ["score without labels", *by_labels], lines),
        TextTable(
            f"{options.data}: agreement with the scores of the paper; 95 % intervals by resampled runs",
            ("score without labels", *compared),
            agreement,
        ),
    ]


def figure_title(rows: pd.DataFrame, options: Options) -> str:
    """Return the title of figure and table."""
    return f"{options.data}: Spearman correlation over {len(rows)} FactorVAE runs"


def correlate(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute the Spearman correlation between all scores over runs."""
    return rows.drop(columns=KEYS).corr("spearman")


def correlate_with_dci(rows: pd.DataFrame, name: str) -> tuple[float, float, float]:
    """Compute the Spearman correlation of a score with DCI over runs, and its 95 % bootstrap interval."""
    return correlate_pair(rows[name].to_numpy(), rows[next(column for column in DCI if column in rows)].to_numpy())


def correlate_pair(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """Compute the Spearman correlation of two scores over runs, (n,) each, and its 95 % interval by resampled runs."""
    is_known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[is_known], b[is_known]
    if len(a) < MIN_RUNS or min(np.ptp(a), np.ptp(b)) == 0:
        return np.nan, np.nan, np.nan  # all alike: nothing to rank
    samples = np.random.default_rng(0).integers(len(a), size=(1_000, len(a)))
    with np.errstate(invalid="ignore"):  # a constant sample has no correlation: NaN
        low, high = np.nanquantile(_rank_correlations(a[samples], b[samples]), [0.025, 0.975])
        return float(_rank_correlations(a[None], b[None])[0]), float(low), float(high)


def _rank_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Spearman correlation of every row, (m, n) each -> (m,)."""
    a, b = (rankdata(values, axis=1) - (values.shape[1] + 1) / 2 for values in (a, b))
    return (a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1))


def draw_figure_3(rank: pd.DataFrame, title: str) -> Figure:
    """Draw the correlation of every score with every other."""
    figure, (axis,) = make_panels(1, width=8, height=5.5)
    draw_matrix(axis, rank.to_numpy(), list(rank.columns), minimum=-1.0, color_map="RdBu")
    axis.set_xticks(range(len(rank)), list(rank.columns), rotation=40, ha="right")
    axis.set_xlabel("")
    axis.set_title(title)
    return figure


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, correlate, draw, and report the tables."""
    place = folders(options)
    place.create()
    runs = list_runs(options)
    execute(runs.values(), place.runs, metrics=[], notify=output.progress, callback=output.training)
    done = {head: place.runs / run.key for head, run in runs.items() if (place.runs / run.key).is_dir()}
    if not done:  # warnings have named the runs that failed
        raise no_finished_runs(place.runs, runs.values())
    output.progress(f"scoring {len(done)} runs")
    scores = Parallel(n_jobs=-1)(delayed(score_run)(folder, options) for folder in done.values())
    rows = pd.DataFrame([dict(zip(KEYS, head, strict=True)) | each for head, each in zip(done, scores, strict=True)])
    rows = merge_rows(rows, place.scores, KEYS)
    place.save(draw_figure_3(correlate(rows), figure_title(rows, options)), "figure-3.png")
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}, the figure in {place.figures}.")
