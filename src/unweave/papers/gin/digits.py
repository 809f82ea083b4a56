"""GIN on handwritten digits: spectrum, informative variables, samples, and bits per dimension.

unweave paper run gin/figure-3                           # MNIST, five seeds; about twenty minutes on an H200
unweave paper run gin/figure-3 --data emnist             # the paper's data, where the files are
unweave paper run gin/figure-3 --steps 60 --seeds 1      # to see it run

Sorrenson, Rother and Köthe (2020), Sec. 4.4: batch 240, Adam with learning rate 0.0003, noise 0.01, 95 epochs, the
learning rate a tenth after 45 of them. 95 epochs of the 240,000 digits of EMNIST are 95,000 steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from unweave.methods import GIN
from unweave.papers.consistency import read_consistency, write_consistency
from unweave.papers.flow_digits import (
    DIVERGED,
    MODEL,
    DigitData,
    Digits,
    Precision,
    describe_seeds,
    digits_folders,
    draw_training,
    figure_findings,
    knee_cells,
    knee_findings,
    load_digits,
    read_numbers,
    train_together,
    update_numbers,
    variable_names,
)
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.variables import read_variables, write_variables
from unweave.papers.verdicts import Findings
from unweave.report.figures.flows import draw_samples, draw_variable
from unweave.report.figures.traversal import draw_grid
from unweave.utils.errors import plural

STEPS = 95_000
DECAY_AFTER = 45 / 95
PAPER_COUNT = 22  # informative variables
SCORE = "bits per dimension"
# First and last variable of each figure of the paper.
SHOWN = {"figure-4": (1, 8), "figure-5": (9, 24), **{f"figure-{10 + k}": (4 * k + 1, 4 * k + 4) for k in range(6)}}
N_VARIABLES = max(high for _, high in SHOWN.values())


@dataclass(kw_only=True)
class Options:
    """GIN on handwritten digits."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    data: Digits = "mnist"
    """Dataset of digits."""
    steps: int = STEPS
    """Gradient steps. 95,000: 95 epochs of 240,000 images in batches of 240."""
    seeds: int = 5
    """Number of models, trained together. Figures show the first."""
    precision: Precision = "single"
    """Precision of matrix products on a GPU."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    extra_steps = 0 if options.steps == STEPS else options.steps
    return digits_folders(options.out, options.data, options.precision, extra_steps)


def make_method(options: Options, seed: int) -> GIN:
    """Create the method with the paper's settings."""
    return GIN(
        steps=options.steps, batch_size=240, lr=3e-4, lr_decay_after=DECAY_AFTER, seed=seed, precision=options.precision
    )


def bits_per_dimension(model: GIN, x: np.ndarray, u: np.ndarray) -> float:
    """Compute bits per dimension of digits x given their labels u, with noise, on the scale of 256 gray levels."""
    noisy = x + 0.01 * np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    return float(8 - model.log_prob(noisy, u).mean() / x[0].size / math.log(2))


def draw(model: GIN, place: Folders, digits: DigitData) -> None:
    """Draw the figures of the paper."""
    draw_training(model, place, digits.images)
    for j, name in enumerate(variable_names(1, N_VARIABLES)):
        place.save(draw_variable(model, j), name)
    place.save(draw_samples(model), "samples-full.png")
    place.save(draw_samples(model, temperature=0.8, informative=True), "samples-reduced.png")
    place.save(draw_transfer(model, digits.images[:10], digits.labels[:10]), "transfer.png")


def draw_transfer(model: GIN, x: np.ndarray, u: np.ndarray) -> Figure:
    """Draw digits x with labels u as every class, in their own style."""
    every = [model.transfer(x, k, from_label=u, informative=True) for k in model.class_names_]
    rows = np.stack([x, *every], 1)  # (digits, 1 + classes, ...)
    images = [(f"digit {i + 1}", np.clip(row, 0, 1)) for i, row in enumerate(rows)]
    return draw_grid(images, "observed, then as each class")


def tables(options: Options) -> list[TextTable]:
    """Return the numbers of the stored models, one row for each seed."""
    numbers = read_numbers(folders(options).results)
    if not numbers:
        return []
    rows = [[str(entry["settings"]["seed"]), *knee_cells(entry, SCORE, 3)] for entry in numbers]
    title = f"GIN on {options.data}, {describe_seeds(numbers)}"
    table = TextTable(title, ("seed", "informative", "95 % interval", SCORE), rows)
    place = folders(options).results
    names = read_variables(place, f"Variables of GIN on {options.data}, first seed")
    return [table, *read_consistency(place, "Informative variables of each seed, matched with those of others"), *names]


def findings(options: Options, part: str) -> Findings:
    """Return the figures of the paper, and the claims about its spectrum."""
    place = folders(options)
    numbers = read_numbers(place.results)
    if not numbers:
        return Findings()
    if part == "figure-3":
        return knee_findings(numbers, PAPER_COUNT)._replace(figures=place.drawn("spectrum.png"))
    names = ["samples-full.png", "samples-reduced.png"] if part == "figure-9" else variable_names(*SHOWN[part])
    return figure_findings(place, names, describe_seeds(numbers[:1]))


def main(options: Options, output: Output = SILENT) -> None:
    """Train, draw, and report the numbers."""
    digits, place = load_digits(options.data), folders(options)
    place.create()
    seeds = range(options.seeds)
    places = [place.results / f"seed-{seed}" for seed in seeds]
    output.progress(f"GIN on {options.data} ({plural(options.seeds, 'seed')})")
    train_together([make_method(options, seed) for seed in seeds], places, digits.train, output.training)
    for seed in seeds:
        if DIVERGED in update_numbers(places[seed]):
            continue
        model = GIN.load(places[seed] / MODEL)
        bits = bits_per_dimension(model, digits.images, digits.labels)
        update_numbers(places[seed], **{SCORE: round(bits, 5)})
        if seed == 0:
            draw(model, place, digits)
    write_consistency(place.results, digits, output)
    write_variables(place.results, digits.test, output)
    for table in tables(options):
        output.table(table)
    output.text(f"Numbers are in {place.results}, figures in {place.figures}.")
