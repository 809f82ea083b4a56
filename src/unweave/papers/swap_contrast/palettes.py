"""Swap and contrast (2022): which colors make the test as hard as the paper's? Chosen with a plain CNN alone.

unweave paper run swap-contrast/palette-screening             # five minutes on a GPU; needs the files of MNIST
unweave paper run swap-contrast/palettes                      # those that are left, or all of them; ten minutes

The paper does not name its colors. A palette has six backgrounds, with hues between those of the six digit colors:
three to train and three to test, alternating or adjacent, in two saturations and five brightnesses. A CNN is trained on
digits and on rotated digits. The chosen palette is the one whose ten numbers are nearest to those of the paper's CNN in
the mean absolute difference: average and worst group on colored digits, and both at -75, -65, 65 and 75 degrees. No
other method takes part in the choice.

The rule may have two stages, both with the CNN of the tables at the common rate, three seeds and all test digits.
Screening: 6,000 steps; it drops the eight farthest palettes, and counts only when all of them are there. Final: those
that are left, 40,000 steps, as in the tables. The nearest of these is chosen, once all of them are there. Training
matters: on the palette that the screening puts first, the CNN of the table, with these steps and twice the rate, is
five points better in the worst group.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.parallel import Parallel, delayed

from unweave.catalog import load
from unweave.data.core import split_rows
from unweave.datasets import Unseen
from unweave.datasets.colored import PALETTES, Painted
from unweave.experiments.failures import no_finished_runs
from unweave.experiments.run import Run
from unweave.experiments.study import execute
from unweave.methods import CNNClassifier
from unweave.metrics import average_accuracy, worst_group_accuracy
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.scripts import stored_results
from unweave.papers.swap_contrast.settings import CONVERGED, CONVERGED_STEPS, PAPER, PAPER_BY_ANGLE
from unweave.papers.verdicts import Findings, describe_effort, folder_name, merge_rows
from unweave.utils.errors import InputError

SETS = ("colored-mnist", "rotation-colored-mnist")
FINALISTS = 12  # left by the screening: more than the nearest, since accuracies rise from its steps to the final ones
SCREENING_STEPS = 6_000
MAX_TEST_DIGITS = sys.maxsize  # of the test set
KEYS = ["palette", "data", "seed", "angle"]


@dataclass(kw_only=True)
class Options:
    """A plain CNN on every palette of backgrounds."""

    palettes: tuple[str, ...] = ()
    """Palettes: arrangement of hues, saturation and value in percent; by default all that may be chosen."""
    first: int = 0
    """Leave out so many of them at the start, and"""
    every: int = 1
    """take every so-and-so-many-th of the rest, to share the work."""
    screen: bool = False
    """Screen the palettes with fewer steps."""
    seeds: int = 3
    """Number of repetitions."""
    steps: int = 0
    """Gradient steps; 0: 40,000, or 6,000 to screen. The learning rate falls to zero along half a cosine."""
    out: Path = Path("papers/swap_contrast")
    """Folder of the paper: results go below it."""


def usual_steps(options: Options) -> int:
    """Return the steps of the stored table."""
    return SCREENING_STEPS if options.screen else CONVERGED_STEPS["mnist"]


def folders(options: Options) -> Folders:
    """Return where everything goes; other steps have a folder of their own."""
    parts = {f"{options.steps}-steps": options.steps not in (0, usual_steps(options))}
    return Folders(options.out, folder_name("palette-screening" if options.screen else "palettes", parts))


def select_palettes(options: Options) -> tuple[str, ...]:
    """Return the palettes to train on."""
    return (options.palettes or (tuple(PALETTES) if options.screen else candidates()))[options.first :: options.every]


def make_run(palette: str, data: str, seed: int, options: Options) -> Run:
    """Return the training of one CNN; positive angles are clockwise, as probably in the paper."""
    steps, rates = options.steps or usual_steps(options), dict[str, Any](CONVERGED)
    method = CNNClassifier(widths=(32, 64, 128), steps=steps, seed=seed, **rates)
    return Run(Unseen(of=data, palette=palette, clockwise=data == "rotation-colored-mnist"), method)  # type: ignore[arg-type]


def list_runs(options: Options) -> dict[tuple[str, str, int], Run]:
    """Return every run by palette, dataset and seed."""
    seeds = range(options.seeds)
    return {(p, d, s): make_run(p, d, s, options) for p in select_palettes(options) for d in SETS for s in seeds}


def all_test_points(data: Painted, seed: int = 0) -> torch.Tensor:
    """Return every test digit on every new background, at every angle, each in a random color."""
    rows = torch.arange(0, len(data.gray), -(-len(data.gray) // MAX_TEST_DIGITS))
    points = torch.cartesian_prod(rows, *data.allowed[1:])
    rng = torch.Generator().manual_seed(seed)
    color = data.allowed[0][torch.randint(len(data.allowed[0]), (len(points), 1), generator=rng)]
    return torch.cat([points[:, :1], color, points[:, 1:]], 1)


def score_run(folder: Path, run: Run) -> list[dict[str, float]]:
    """Return average and worst accuracy of a CNN; for rotated digits at every angle that training lacks."""
    data = run.data.evaluation_data(run.data.load())
    if not isinstance(data, Painted):
        raise InputError(f"{run.data.title()} is not painted: expected colored digits")
    method, points = load(folder), all_test_points(data)
    c = data.labels(points).numpy()  # digit, color, background, angle?
    predicted = np.concatenate([method.predict(data.render(part).numpy()) for part in split_rows(points, 10_000)])
    predicted = predicted.astype(float)
    if c.shape[1] == 3:
        return [score_rows(predicted, c, np.nan)]
    angles = np.array(data.factors[3].values)[c[:, 3].astype(int)]
    unseen = [angle for angle in np.unique(angles) if angle != 0]
    return [score_rows(predicted[angles == angle], c[angles == angle], angle) for angle in unseen]


def score_rows(predicted: np.ndarray, c: np.ndarray, angle: float) -> dict[str, float]:
    """Return accuracies, of all rows and of the worst group; `c` has the digit, its color and its background."""
    y, groups = c[:, 0], c[:, 1:3]
    worst = worst_group_accuracy(y, predicted, groups)
    return {"angle": angle, "average": average_accuracy(y, predicted), "worst": worst}


def paper_numbers() -> dict[str, float]:
    """Return the ten numbers of the paper's CNN by name: of digits that are not rotated, and at every angle."""
    accuracies = {np.nan: PAPER["colored-mnist"]["CNN"]} | PAPER_BY_ANGLE["CNN"]
    return {
        number_name(name, angle): value
        for angle, pair in accuracies.items()
        for name, value in zip(("average", "worst"), pair, strict=True)
    }


def number_name(name: str, angle: float) -> str:
    """Return the name of an accuracy at an angle; NaN for digits that are not rotated."""
    return name if np.isnan(angle) else f"{name} {angle:+g}"


def compare_palettes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds by palette, and their distance from the paper's numbers, nearest palette first."""
    long = rows.melt(["palette", "angle"], ["average", "worst"])
    long["name"] = [number_name(name, angle) for name, angle in zip(long["variable"], long["angle"], strict=True)]
    table = long.pivot_table(index="palette", columns="name", values="value").reindex(columns=list(paper_numbers()))
    distance = (table - pd.Series(paper_numbers())).abs().mean(axis=1, skipna=False)
    return table.assign(distance=distance).sort_values("distance")


def stored_distances(*, screen: bool) -> pd.Series:
    """Return the distance of every palette that has all numbers in the stored results, nearest first."""
    path = folders(Options(out=stored_results() / "swap_contrast", screen=screen)).scores
    return compare_palettes(pd.read_csv(path))["distance"].dropna() if path.is_file() else pd.Series(dtype=float)


def candidates() -> tuple[str, ...]:
    """Return the palettes that may be chosen: the nearest ones where all were screened, else all."""
    distance = stored_distances(screen=True)
    is_screened = {*distance.index} == {*PALETTES}
    return tuple(map(str, distance.index[:FINALISTS])) if is_screened else tuple(PALETTES)


def chosen_palette() -> str:
    """Return the candidate that is nearest to the paper's numbers in the stored results.

    Raises:
        InputError: If a candidate was not trained yet.
    """
    distance, names = stored_distances(screen=False), candidates()
    if not {*names} <= {*distance.index}:
        raise InputError("no palette was chosen yet: run `unweave paper run swap-contrast/palettes` first")
    return str(distance[[*names]].idxmin())


def tables(options: Options) -> list[TextTable]:
    """Return the palettes with the accuracies of the CNN, nearest to the paper first."""
    path = folders(options).scores
    if not path.is_file():
        return []
    table = compare_palettes(pd.read_csv(path))
    numbers = paper_numbers()
    heads = ["palette", "distance", *numbers]
    lines = [["paper", "", *(f"{value:.3f}" for value in numbers.values())]]
    for palette, row in table.iterrows():
        lines.append([str(palette), f"{row['distance']:.3f}", *(f"{row[key]:.3f}" for key in numbers)])
    return [TextTable("A plain CNN on every palette: mean accuracies on unseen nuisances", heads, lines)]


def findings(options: Options, part: str) -> Findings:
    """Return how much was run."""
    path = folders(options).scores
    if not path.is_file():
        return Findings(missing=(folders(options).name,))
    return Findings(effort=describe_effort(pd.read_csv(path), ["palette"], options.steps or usual_steps(options)))


def main(options: Options, output: Output = SILENT) -> None:
    """Run what is missing, and report the palettes."""
    place = folders(options)
    place.create()
    finished, every = 0, list_runs(options)
    for palette in select_palettes(options):
        runs = {head: run for head, run in every.items() if head[0] == palette}
        execute(runs.values(), place.runs, metrics=[], notify=output.progress, callback=output.training)
        done = {key: run for key, run in runs.items() if (place.runs / run.key).is_dir()}
        output.progress(f"{palette}: scoring {len(done)} runs")
        score = delayed(score_run)
        scores = Parallel(n_jobs=-1, prefer="threads")(score(place.runs / run.key, run) for run in done.values())
        rows = [dict(zip(KEYS, key, strict=False)) | s for key, part in zip(done, scores, strict=True) for s in part]
        if rows:
            merge_rows(pd.DataFrame(rows), place.scores, KEYS[:3])
        finished += len(done)
    if not finished:
        raise no_finished_runs(place.runs, every.values())
    for table in tables(options):
        output.table(table)
    output.text(f"Scores are in {place.results}.")
