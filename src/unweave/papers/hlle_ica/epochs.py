"""The autoencoders of Figures 7 and 8 at the paper's budget: 100 epochs, and 1,000 for two of them.

Batches have 32 images and Adam's rate is 1e-4, as in the code of Jing et al. (2020) that the paper uses. An epoch is as
many steps as 3,000 images have batches; batches are drawn at random. Networks of more than 100 epochs are the Hessian
and the plain autoencoder, with one seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from torch import Generator

from unweave import catalog
from unweave.data.dataset import Dataset
from unweave.experiments.run import Run, read_run
from unweave.experiments.study import execute
from unweave.methods.base import Method
from unweave.papers.hlle_ica.manifolds import NETWORKS, make_network, manifold_name, network_input_size
from unweave.papers.output import Output, TextTable
from unweave.papers.verdicts import Claim, Findings, merge_rows
from unweave.utils.errors import plural

if TYPE_CHECKING:
    from unweave.papers.folders import Folders

BATCH_SIZE = 32
RATE = 1e-4
USUAL_EPOCHS = 100
LONG_EPOCHS = 1_000
LONG_NETWORKS = ("hessian-autoencoder", "autoencoder")
IMAGES = 3_000
TABLE_FILE = "epochs.csv"
KEYS = ("manifold", "method", "epochs", "seed")
PAIRS = 100  # of images, between which codes are interpolated
LINE_STEPS = 20
MIN_LENGTH = 1e-3  # root mean square of a change that can be seen
MAX_ERROR_RATIO = 1.1  # of squared errors that count as equal


def list_runs(data: Dataset, d: int, epochs: int, seeds: int) -> Iterator[tuple[str, list[Run]]]:
    """Yield the name of each network and its runs, one per seed."""
    is_long = epochs > USUAL_EPOCHS
    pixels, steps = network_input_size(data), epochs * ceil(IMAGES / BATCH_SIZE)
    for name in LONG_NETWORKS if is_long else NETWORKS:
        runs = []
        for seed in range(1 if is_long else seeds):
            method = make_network(name, d, pixels, steps)
            runs.append(Run(data, method.set_params(batch_size=BATCH_SIZE, lr=RATE, seed=seed)))
        yield name, runs


def run_epochs(
    manifolds: Sequence[tuple[Dataset, int]], epochs: Sequence[int], seeds: int, results: Path, output: Output
) -> pd.DataFrame:
    """Train what is missing, store a row for each network, and return all rows of the table."""
    for number in epochs:
        for data, d in manifolds:
            for name, runs in list_runs(data, d, number, seeds):
                execute(runs, results / "runs", notify=output.progress, callback=output.training)
                head = {"manifold": manifold_name(data), "method": name, "epochs": number}
                rows = [head | score_network(run, results / "runs" / run.key) for run in runs]
                merge_rows(pd.DataFrame(rows), results / TABLE_FILE, KEYS)
    return read_rows(results)


def score_network(run: Run, folder: Path) -> dict[str, Any]:
    """Return scores of a finished run, the squared error of its reconstructions per value, and its largest jump."""
    method, scores = catalog.load(folder), read_run(folder).scores
    x = run.data.load().collect(IMAGES, Generator().manual_seed(0)).x.numpy()
    z = method.transform(x)
    error = float(np.square(method.inverse_transform(z) - x).mean())
    row = {"seed": method.seed, "mcc": scores.get("mcc"), "isometry": scores.get("local-isometry")}
    return row | {"error": error, "jump": largest_jump(method, z)}


def largest_jump(method: Method, z: np.ndarray) -> float:
    """Decode straight lines between random pairs of codes; return the largest step over the mean one.

    Steps are Euclidean distances between consecutive images. 1 means even steps. The median over pairs is returned, NaN
    if most lines decode to a single image.
    """
    ends = np.random.default_rng(0).choice(len(z), (PAIRS, 2))
    t = np.linspace(0, 1, LINE_STEPS + 1)[:, None]
    lines = [method.inverse_transform((1 - t) * z[i] + t * z[j]) for i, j in ends]
    steps = np.stack([np.sqrt(np.square(np.diff(line, axis=0)).reshape(LINE_STEPS, -1).sum(1)) for line in lines])
    if np.median(steps.sum(1)) < MIN_LENGTH * np.sqrt(np.prod(method.inverse_transform(z[:1]).shape)):
        return float("nan")
    return float(np.median(steps.max(1) / np.maximum(steps.mean(1), 1e-12)))


def read_rows(results: Path) -> pd.DataFrame:
    """Return the stored table; empty where there is none."""
    path = results / TABLE_FILE
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def make_table(results: Path) -> list[TextTable]:
    """Return MCC, error and jump of every network, means over seeds."""
    rows = read_rows(results)
    if rows.empty:
        return []
    lines = []
    for (manifold, method, epochs), group in rows.groupby(["manifold", "method", "epochs"], sort=False):
        mean = group[["mcc", "error", "jump"]].mean()
        jump = "-" if np.isnan(mean["jump"]) else f"{mean['jump']:.2f}"
        cells = [f"{mean['mcc']:.3f}", f"{1e3 * mean['error']:.2f}", jump]
        lines.append([str(manifold), str(method), f"{epochs:,}", str(len(group)), *cells])
    columns = ["manifold", "network", "epochs", "seeds", "MCC", "1,000 x squared error", "largest jump"]
    return [TextTable("networks at the paper's budget, means over seeds; -: collapsed", columns, lines, 3)]


Key = tuple[str, int]
"""Method and epochs."""


def findings(place: Folders, part: str) -> Findings:
    """Return the claims about Figure 7 or 8, evaluated on the manifolds that have all networks of the figure."""
    rows, figures = read_rows(place.results), place.drawn(f"{part}*.png")
    keys: list[Key] = [("hessian-autoencoder", LONG_EPOCHS), ("autoencoder", USUAL_EPOCHS)]
    if part == "figure-8":
        keys = [(name, USUAL_EPOCHS) for name in NETWORKS]
    trained = {} if rows.empty else rows.groupby(["method", "epochs"])["manifold"].agg(set).to_dict()
    manifolds = set.intersection(*(trained.get(key, set()) for key in keys))
    if not manifolds:
        return Findings(figures=figures)
    rows = rows[rows["manifold"].isin(manifolds)]
    tables = dict(list(rows.groupby(["method", "epochs"])))
    means = {key: tables[key].groupby("manifold")[["mcc", "error", "jump"]].mean() for key in keys}
    seeds = {epochs: tables[name, epochs]["seed"].nunique() for name, epochs in keys}
    effort = "; ".join(f"{plural(int(n), 'seed')}, {epochs:,} epochs" for epochs, n in seeds.items())
    claims = _claims_on_jumps(means) if part == "figure-8" else _claims_on_factors(means)
    note = f"judged on {', '.join(sorted(manifolds))}; the paper prints no numbers"
    missing = () if len(manifolds) > 1 else ("other manifolds",)  # the paper shows at least two
    return Findings(claims=claims, figures=figures, missing=missing, notes=(note,), effort=effort)


def _claims_on_factors(means: dict[Key, pd.DataFrame]) -> tuple[Claim, ...]:
    taught, plain = means["hessian-autoencoder", LONG_EPOCHS], means["autoencoder", USUAL_EPOCHS]
    has_factors, lacks_factors = bool((taught["mcc"] > 0.9).all()), bool((plain["mcc"] < 0.9).all())
    is_as_good = float(taught["error"].mean()) <= MAX_ERROR_RATIO * float(plain["error"].mean())
    return (
        Claim(f"after {LONG_EPOCHS:,} epochs the Hessian autoencoder has both factors (MCC above 0.9)", has_factors),
        Claim(f"after {USUAL_EPOCHS} epochs the plain autoencoder does not (below 0.9)", lacks_factors),
        Claim(
            f"the former reconstructs as well as the latter (squared error at most {MAX_ERROR_RATIO} times)", is_as_good
        ),
    )


def _claims_on_jumps(means: dict[Key, pd.DataFrame]) -> tuple[Claim, ...]:
    jumps = {name: float(table["jump"].mean()) for (name, _), table in means.items()}
    others = [jump for name, jump in jumps.items() if name != "hessian-autoencoder" and not np.isnan(jump)]  # collapsed
    is_smallest = jumps["hessian-autoencoder"] < min(others)
    return (Claim("the Hessian autoencoder interpolates with smaller jumps than the others", is_smallest),)


def draw(manifolds: Sequence[tuple[Dataset, int]], place: Folders, output: Output) -> None:
    """Draw Figure 7 (Hessian autoencoder after 1,000 epochs, plain one after 100) and Figure 8 (all after 100)."""
    from unweave.papers.hlle_ica import drawings

    for data, d in manifolds:
        output.progress(f"figures 7 and 8, {manifold_name(data)}")
        usual = {name: place.runs / runs[0].key for name, runs in list_runs(data, d, USUAL_EPOCHS, 1)}
        long = {name: place.runs / runs[0].key for name, runs in list_runs(data, d, LONG_EPOCHS, 1)}
        shown = {"hessian-autoencoder": long["hessian-autoencoder"], "autoencoder": usual["autoencoder"]}
        around = {name: catalog.load(folder) for name, folder in shown.items() if folder.is_dir()}
        for name, figure in drawings.draw_neighborhoods(data, around).items():
            place.save(figure, f"figure-7-{manifold_name(data)}-{name}.png")
        networks = {name: catalog.load(folder) for name, folder in usual.items() if folder.is_dir()}
        if networks:
            place.save(drawings.draw_interpolations(data, networks), f"figure-8-{manifold_name(data)}.png")
