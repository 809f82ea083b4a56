"""GIN on handwritten digits: spectrum, informative variables, samples, and bits per dimension.

unweave paper run gin/figure-3                           # MNIST, the paper's network; minutes on a GPU
unweave paper run gin/figure-3 --data emnist             # the paper's data, where the files are
unweave paper run self-supervised-gin/figure-4           # augmentations instead of labels
unweave paper run gin/figure-3 --epochs 1                # to see it run

Sorrenson, Rother and Köthe (2020), Sec. 4.4: batch 240, Adam with learning rate 0.0003, noise 0.01, 95 epochs. The
learning rate falls to a tenth after five eighths of the steps, where the paper has 45 of 95 epochs. Self-supervised GIN
(2021), Sec. 4.3: batches of 20 times eight images, 20 epochs; the learning rate is GIN's, a hundredth of the paper's.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.figure import Figure

from unweave.data.containers import Table
from unweave.datasets import EMNIST, MNIST
from unweave.experiments.runner import fit_or_load
from unweave.methods import GIN, SelfSupervisedGIN
from unweave.papers.folders import Folders
from unweave.papers.output import SILENT, Output, TextTable
from unweave.papers.verdicts import Claim, Findings, Number
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.flows import MAX_VARIABLES, class_centers, draw_samples, draw_spectra, draw_variable
from unweave.report.figures.traversal import draw_grid
from unweave.utils.storage import read_json, write_json

EXTRA_VARIABLES = 2  # drawn beyond the informative ones; more where the papers show more
NUMBERS = "numbers.json"


@dataclass(kw_only=True)
class Options:
    """GIN on handwritten digits."""

    out: Path = Path("papers/gin")
    """Folder of the paper: results and figures go below it."""
    data: Literal["mnist", "emnist"] = "mnist"
    """Dataset of digits."""
    method: Literal["labels", "self-supervised"] = "labels"
    """GIN, which uses labels, or self-supervised GIN."""
    epochs: int = 0
    """Passes over the data; 0: the paper's, 95 or 20."""
    steps: int = 0
    """Gradient steps instead of epochs; 0: as many as the epochs have."""
    precision: Literal["single", "tf32", "bf16"] = "tf32"
    """Precision of matrix products on a GPU."""
    seed: int = 0
    """Seed of weights and batches."""


def folders(options: Options) -> Folders:
    """Return where everything goes."""
    return Folders(options.out, "digits" if options.data == "mnist" else options.data)


def make_method(options: Options, images: int) -> GIN | SelfSupervisedGIN:
    """Create the method with the paper's settings."""
    shared: Any = {"seed": options.seed, "precision": options.precision}
    if options.method == "labels":
        return GIN(steps=options.steps or (options.epochs or 95) * images // 240, batch_size=240, **shared)
    return SelfSupervisedGIN(
        steps=options.steps or (options.epochs or 20) * images // 20, batch_size=20, copies=8, **shared
    )


def bits_per_dimension(model: GIN, x: np.ndarray, u: np.ndarray) -> float:
    """Compute bits per dimension of digits x given their labels u, with noise, on the scale of 256 gray levels."""
    noisy = x + 0.01 * np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    return float(8 - model.log_prob(noisy, u).mean() / x[0].size / math.log(2))


def draw(model: GIN | SelfSupervisedGIN, x: np.ndarray, u: np.ndarray, place: Folders) -> None:
    """Draw the figures of both papers."""
    place.save(draw_spectra(model, x[:5_000]), "spectrum.png")
    place.save(draw_loss_curves({model.name: model.history}), "curves.png")
    rows = None if isinstance(model, GIN) else class_centers(model, x[:5_000], u[:5_000])
    shown = max(high for _, high in SHOWN["labels" if isinstance(model, GIN) else "self-supervised"].values())
    for j in range(min(max(model.n_informative_ + EXTRA_VARIABLES, shown), MAX_VARIABLES)):
        place.save(draw_variable(model, j, rows), f"variable-{j + 1:02}.png")
    if isinstance(model, GIN):
        place.save(draw_samples(model), "samples-full.png")
        place.save(draw_samples(model, temperature=0.8, informative=True), "samples-reduced.png")
        place.save(draw_transfer(model, x[:10], u[:10]), "transfer.png")


def draw_transfer(model: GIN, x: np.ndarray, u: np.ndarray) -> Figure:
    """Draw digits x with labels u as every class, in their own style."""
    every = [model.transfer(x, k, from_label=u, informative=True) for k in model.class_names_]
    rows = np.stack([x, *every], 1)  # (digits, 1 + classes, ...)
    images = [(f"digit {i + 1}", np.clip(row, 0, 1)) for i, row in enumerate(rows)]
    return draw_grid(images, "observed, then as each class")


# First and last variable of each figure, in the paper of GIN and in that of self-supervised GIN.
SHOWN = {
    "labels": {
        "figure-4": (1, 8), "figure-5": (9, 24), **{f"figure-{10 + k}": (4 * k + 1, 4 * k + 4) for k in range(6)},
    },
    "self-supervised": {
        "figure-2": (1, 20), "figure-5": (1, 2), **{f"figure-{6 + k}": (4 * k + 3, 4 * k + 6) for k in range(4)},
        "figure-10": (19, 20),
    },
}  # fmt: skip


def tables(options: Options) -> list[TextTable]:
    """Return the numbers of the stored model."""
    path = folders(options).results / NUMBERS
    if not path.is_file():
        return []
    numbers = read_json(path)
    names = ("data", "steps", "seconds", "informative", "confidence", "bits per dimension")
    rows = [[name, _format(numbers[name])] for name in names if name in numbers]
    return [TextTable(f"{numbers['method']} on {numbers['data']}", ("", "value"), rows)]


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def findings(options: Options, part: str) -> Findings:
    """Return the figures of both papers, and the claim about the number of informative variables."""
    place, is_spectrum = folders(options), part == ("figure-3" if options.method == "labels" else "figure-4")
    path = place.results / NUMBERS
    if not path.is_file():
        return Findings()
    low, high = SHOWN[options.method].get(part, (1, 0))
    names = [f"variable-{j:02}.png" for j in range(low, high + 1)]
    names += ["spectrum.png"] if is_spectrum else []
    names += ["samples-full.png", "samples-reduced.png"] if part == "figure-9" else []
    figures = place.drawn(*names)
    numbers = read_json(path)
    effort = f"1 seed, {numbers['steps']:,} steps"
    if not is_spectrum:
        missing = tuple(name for name in names if place.figures / name not in figures) if figures else ()
        return Findings(figures=figures, missing=missing, effort=effort if figures else "")
    count, paper = numbers["informative"], 22 if options.method == "labels" else 20
    knee = Claim("the spectrum falls off after about twenty of 784 variables", paper / 2 <= count <= 2 * paper)
    return Findings((Number("informative variables", [count], paper),), (knee,), figures, effort=effort)


def main(options: Options, output: Output = SILENT) -> None:
    """Train, draw, and report the numbers."""
    dataset = MNIST if options.data == "mnist" else EMNIST
    train, test = dataset(split="train").load(), dataset(split="test").load()
    assert isinstance(train, Table)
    place = folders(options)
    place.create()
    start = time.perf_counter()
    model = fit_or_load(make_method(options, len(train)), train, place.results / "model", output.training)
    seconds = time.perf_counter() - start
    x, c = test.collect(10_000, torch.Generator().manual_seed(0))
    images, labels = x.float().numpy(), c[:, 0].long().numpy()
    draw(model, images, labels, place)
    numbers: dict[str, Any] = {
        "data": options.data, "method": model.name, "steps": model.steps, "seconds": round(seconds, 1),
        "informative": model.n_informative_, "confidence": model.confidence_,
        "spectrum": [round(float(s), 6) for s in model.spectrum_], "diagnosis": model.diagnosis_,
    }  # fmt: skip
    if isinstance(model, GIN):
        numbers["bits per dimension"] = bits_per_dimension(model, images, labels)
    write_json(place.results / NUMBERS, numbers)
    for table in tables(options):
        output.table(table)
    output.text("\n".join(model.diagnosis_))
    output.text(f"Numbers are in {place.results}, figures in {place.figures}.")
