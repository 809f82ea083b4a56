"""Self-supervised GIN on handwritten digits: spectrum, and every informative variable.

unweave paper run self-supervised-gin/figure-4                               # MNIST; about twenty minutes on an H200
unweave paper run self-supervised-gin/figure-4 --steps 60 --rates 3e-4 --seeds 1     # to see it run

Self-supervised Disentangled Representation Learning (2021), Sec. 4.3: batches of 20 times eight images, 20 epochs, the
learning rate a tenth in the last ten. 20 epochs of the 60,000 digits of MNIST are 60,000 steps. At the paper's learning
rate of 0.03 the likelihood stays poor here, so two smaller ones stand beside it. The best rate is the one with the
highest likelihood of augmented test digits at seed 0; it alone is run with more seeds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Generator

from unweave.data.core import FactorData
from unweave.methods import SelfSupervisedGIN
from unweave.methods.flows.features import sample_points
from unweave.methods.flows.knee import INTERVAL, describe_interval
from unweave.papers.consistency import read_consistency, write_consistency
from unweave.papers.flow_digits import (
    DIVERGED,
    MODEL,
    NUMBERS,
    SPECTRUM,
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
from unweave.papers.verdicts import Claim, Findings
from unweave.report.figures.flows import class_centers, draw_variable, mark_knee
from unweave.report.figures.style import make_panels
from unweave.training.loop import initialize_network
from unweave.utils.errors import plural
from unweave.utils.storage import read_json

STEPS = 60_000
DECAY_AFTER = 10 / 20
PAPER_COUNT = 20  # informative variables: "nearly 20"
N_SETS = 1_000  # augmented test digits for the likelihood
SCORE = "test nats"
# First and last variable of each figure of the paper.
SHOWN = {
    "figure-2": (1, 20), "figure-5": (1, 2), **{f"figure-{6 + k}": (4 * k + 3, 4 * k + 6) for k in range(4)},
    "figure-10": (19, 20),
}  # fmt: skip
N_VARIABLES = max(high for _, high in SHOWN.values())


@dataclass(kw_only=True)
class Options:
    """Self-supervised GIN on handwritten digits."""

    out: Path = Path("papers/self_supervised_gin")
    """Folder of the paper: results and figures go below it."""
    data: Digits = "mnist"
    """Dataset of digits."""
    steps: int = STEPS
    """Gradient steps. 60,000: 20 epochs of 60,000 images in batches of 20."""
    rates: tuple[float, ...] = (3e-4, 3e-3, 3e-2)
    """Learning rates, trained together with seed 0. The last one is the paper's."""
    seeds: int = 5
    """Number of seeds of the best rate. Figures show the first."""
    precision: Precision = "single"
    """Precision of matrix products on a GPU."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    extra_steps = 0 if options.steps == STEPS else options.steps
    return digits_folders(options.out, options.data, options.precision, extra_steps)


def rate_folder(options: Options, rate: float) -> Path:
    """Return the folder of all models with a learning rate."""
    return folders(options).results / f"lr-{rate:g}"


def make_method(options: Options, seed: int, rate: float = 3e-4) -> SelfSupervisedGIN:
    """Create the method with the paper's settings."""
    return SelfSupervisedGIN(
        steps=options.steps, batch_size=20, copies=8, lr=rate, lr_decay_after=DECAY_AFTER, seed=seed,
        precision=options.precision,
    )  # fmt: skip


def train(options: Options, lanes: list[tuple[float, int]], digits: DigitData, output: Output) -> None:
    """Train models with these rates and seeds together; score those that did not diverge."""
    places = [rate_folder(options, rate) / f"seed-{seed}" for rate, seed in lanes]
    output.progress(f"Self-supervised GIN on {options.data} ({plural(len(lanes), 'model')})")
    train_together([make_method(options, seed, rate) for rate, seed in lanes], places, digits.train, output.training)
    for place in places:
        numbers = read_json(place / NUMBERS)
        if DIVERGED not in numbers and SCORE not in numbers:
            update_numbers(place, **{SCORE: test_nats(SelfSupervisedGIN.load(place / MODEL), digits.test)})


@torch.no_grad()
def test_nats(model: SelfSupervisedGIN, test: FactorData) -> float:
    """Compute the loss of Eq. 7 for augmented test digits, in nats per image; lower is better."""
    rng = Generator().manual_seed(0)
    plan = model.plan(test, N_SETS, rng)
    views = {name: test.render(points).float() for name, points in plan.views.items()}
    return float(model.loss(model.net_, views | plan.extras | model.sample_noise(N_SETS, rng))["nats"])


def best_rate(options: Options) -> float | None:
    """Return the rate with the highest likelihood of augmented test digits at seed 0; None where all diverged."""
    numbers = {rate: read_json(rate_folder(options, rate) / "seed-0" / NUMBERS) for rate in options.rates}
    scores = {rate: entry[SCORE] for rate, entry in numbers.items() if SCORE in entry}
    return min(scores, key=lambda rate: scores[rate], default=None)


@torch.no_grad()
def untrained_spectrum(model: SelfSupervisedGIN, data: FactorData) -> np.ndarray:
    """Return the sorted standard deviations of the flow before training, (784,)."""
    start, rng = copy.copy(model), Generator().manual_seed(0)
    start.net_ = initialize_network(model).eval()
    y = start.noisy_outputs_and_log_det(data, sample_points(data, rng), rng)[:, :-1]
    return np.sort(y.std(0).numpy())[::-1]


def compare_spectra(before: np.ndarray, after: np.ndarray, n: int, interval: tuple[int, int]) -> Figure:
    """Draw Figure 4: the spectrum of the untrained flow, and that of the trained one with n informative variables."""
    figure, axes = make_panels(2, width=3.4)
    limits = min(before.min(), after.min()) / 1.5, max(before.max(), after.max()) * 1.5
    titles = "untrained flow", f"trained: {n} ({INTERVAL:.0%}: {describe_interval(interval)})"
    for axis, spectrum, title in zip(axes, (before, after), titles, strict=True):
        axis.semilogy(range(1, len(spectrum) + 1), spectrum, ".", color="black", ms=3)
        axis.set_xlabel("variable")
        axis.set_ylabel("standard deviation")
        axis.set_ylim(*limits)
        axis.set_title(title)
    mark_knee(axes[1], n, interval, len(after))
    return figure


def draw(place: Folders, model_folder: Path, digits: DigitData) -> None:
    """Draw the figures of the paper, and add the spectrum of the untrained flow to the stored one."""
    model = SelfSupervisedGIN.load(model_folder / MODEL)
    draw_training(model, place, digits.images)
    before = untrained_spectrum(model, digits.train)
    frame = pd.read_csv(model_folder / SPECTRUM)
    frame.assign(untrained=before).to_csv(model_folder / SPECTRUM, index=False, float_format="%.6g")
    knee = model.n_informative_, model.informative_interval()
    place.save(compare_spectra(before, np.asarray(model.spectrum_), *knee), "spectra.png")
    rows = class_centers(model, digits.images, digits.labels)
    for j, name in enumerate(variable_names(1, N_VARIABLES)):
        place.save(draw_variable(model, j, rows), name)


def tables(options: Options) -> list[TextTable]:
    """Return the numbers of the stored models, one row for each rate and seed."""
    rows = [
        [f"{rate:g}", str(entry["settings"]["seed"]), *knee_cells(entry, SCORE, 1)]
        for rate in options.rates
        for entry in read_numbers(rate_folder(options, rate))
    ]
    title = f"Self-supervised GIN on {options.data}, {options.steps:,} steps"
    columns = ("learning rate", "seed", "informative", "95 % interval", "test nats per image")
    names = [
        table
        for rate in options.rates
        for table in [
            *read_consistency(rate_folder(options, rate), f"Learning rate {rate:g}: variables matched between seeds"),
            *read_variables(rate_folder(options, rate), f"Variables at the learning rate {rate:g}, first seed"),
        ]
    ]
    return [TextTable(title, columns, rows, key_columns=2), *names] if rows else []


def findings(options: Options, part: str) -> Findings:
    """Return the figures of the paper, and the claims about its spectrum."""
    place = folders(options)
    if not all((rate_folder(options, rate) / "seed-0" / NUMBERS).is_file() for rate in options.rates):
        return Findings()
    rate = best_rate(options)
    if rate is None:
        return Findings(claims=(Claim("training converges", False),))
    numbers = read_numbers(rate_folder(options, rate))
    if part == "figure-4":
        return knee_findings(numbers, PAPER_COUNT)._replace(figures=place.drawn("spectra.png"))
    return figure_findings(place, variable_names(*SHOWN[part]), describe_seeds(numbers[:1]))


def main(options: Options, output: Output = SILENT) -> None:
    """Train all rates, then more seeds of the best one; draw, and report the numbers."""
    digits, place = load_digits(options.data), folders(options)
    place.create()
    train(options, [(rate, 0) for rate in options.rates], digits, output)
    rate = best_rate(options)
    if rate is not None:
        if options.seeds > 1:
            train(options, [(rate, seed) for seed in range(1, options.seeds)], digits, output)
        draw(place, rate_folder(options, rate) / "seed-0", digits)
        write_consistency(rate_folder(options, rate), digits, output)
        write_variables(rate_folder(options, rate), digits.test, output)
    for table in tables(options):
        output.table(table)
    output.text(f"Numbers are in {place.results}, figures in {place.figures}.")
