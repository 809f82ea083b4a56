"""GIN on handwritten digits: the spectrum, the informative variables one by one, samples, and bits per dimension.

python -m unweave.papers.gin.digits  # MNIST, the paper's network and settings; minutes on a GPU
python -m unweave.papers.gin.digits --data emnist                 # the paper's data, where the files are
python -m unweave.papers.gin.digits --method self-supervised      # augmentations instead of labels
python -m unweave.papers.gin.digits --epochs 1                    # to see it run

Sorrenson, Rother and Koethe (2020), Sec. 4.4: batch 240, Adam 0.0003, noise 0.01, 95 epochs; the learning rate falls
to a tenth after five eighths of them, where the paper has 45 of 95. Self-supervised GIN (2021), Sec. 4.3: batch 20 of
eight images each, 20 epochs; of its learning rate of 0.03 we take a hundredth, GIN's own.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from unweave.cli.terminal import launch, print_text
from unweave.datasets import EMNIST, MNIST
from unweave.experiments.runner import fit_or_load
from unweave.methods import GIN, SelfSupervisedGIN
from unweave.papers.verdicts import Claim, Findings, Number, drawn
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.flows import MAX_VARIABLES, class_centers, draw_samples, draw_spectra, draw_variable
from unweave.report.figures.style import save_figure
from unweave.utils.storage import read_json, write_json

EXTRA = 2  # variables behind the knee that are drawn too, and more where the papers show more


@dataclass(kw_only=True)
class Options:
    """GIN on handwritten digits."""

    out: Path = Path("papers")
    """where a folder for the model, the figures and the numbers goes"""
    data: Literal["mnist", "emnist"] = "mnist"
    """which digits"""
    method: Literal["labels", "self-supervised"] = "labels"
    """GIN, or self-supervised GIN"""
    epochs: int = 0
    """passes over the data; 0: the paper's, 95 or 20"""
    steps: int = 0
    """gradient steps in their place"""
    precision: Literal["single", "tf32", "bf16"] = "tf32"
    """of products on a GPU"""
    seed: int = 0
    """of the start"""


def method(options: Options, images: int) -> Any:
    """The paper's settings."""
    shared: Any = {"seed": options.seed, "precision": options.precision}
    if options.method == "labels":
        return GIN(steps=options.steps or (options.epochs or 95) * images // 240, batch_size=240, **shared)
    return SelfSupervisedGIN(
        steps=options.steps or (options.epochs or 20) * images // 20, batch_size=20, copies=8, **shared
    )


def bits(model: GIN, x: np.ndarray, u: np.ndarray) -> float:
    """Bits per dimension of test digits given their labels, on the scale of 256 gray levels, noise added."""
    noisy = x + 0.01 * np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    return float(8 - model.log_prob(noisy, u).mean() / x[0].size / math.log(2))


def figures(model: Any, x: np.ndarray, u: np.ndarray, out: Path) -> None:
    """Those of both papers."""
    save_figure(draw_spectra(model, x[:5_000]), out / "spectrum.png")
    save_figure(draw_loss_curves({model.name: model.history}), out / "curves.png")
    rows = None if isinstance(model, GIN) else class_centers(model, x[:5_000], u[:5_000])
    shown = max(high for _, high in SHOWN["labels" if isinstance(model, GIN) else "self-supervised"].values())
    for j in range(min(max(model.n_informative_ + EXTRA, shown), MAX_VARIABLES)):
        save_figure(draw_variable(model, j, rows), out / f"variable-{j + 1:02}.png")
    if isinstance(model, GIN):
        save_figure(draw_samples(model), out / "samples-full.png")
        save_figure(draw_samples(model, temperature=0.8, informative=True), out / "samples-reduced.png")
        transfers(model, x[:10], u[:10], out)


def transfers(model: GIN, x: np.ndarray, u: np.ndarray, out: Path) -> None:
    """Ten digits in the styles that they have, as every class."""
    from unweave.report.figures.traversal import draw_grid

    every = [model.transfer(x, k, from_label=u, informative=True) for k in model.names_]
    rows = np.stack([x, *every], 1)  # (digits, 1 + classes, ...)
    save_figure(
        draw_grid([(f"digit {i + 1}", np.clip(r, 0, 1)) for i, r in enumerate(rows)], "observed, then as each class"),
        out / "transfer.png",
    )


def place(options: Options) -> Path:
    """Where everything goes."""
    paper = "gin" if options.method == "labels" else "self_supervised_gin"
    return options.out / paper / "results" / ("digits" if options.data == "mnist" else options.data)


# Which variables a figure shows, in GIN's paper and in that of self-supervised GIN; the spectrum is another figure.
SHOWN = {
    "labels": {
        "figure-4": (1, 8), "figure-5": (9, 24), **{f"figure-{10 + k}": (4 * k + 1, 4 * k + 4) for k in range(6)},
    },
    "self-supervised": {
        "figure-2": (1, 20), "figure-5": (1, 2), **{f"figure-{6 + k}": (4 * k + 3, 4 * k + 6) for k in range(4)},
        "figure-10": (19, 20),
    },
}  # fmt: skip


def findings(options: Options, part: str) -> Findings:
    """The figures of both papers, and how many variables are informative."""
    out, spectrum = place(options), part == ("figure-3" if options.method == "labels" else "figure-4")
    if not (out / "numbers.json").is_file():
        return Findings()
    low, high = SHOWN[options.method].get(part, (1, 0))
    names = [f"variable-{j:02}.png" for j in range(low, high + 1)]
    names += ["spectrum.png"] * spectrum + ["samples-full.png", "samples-reduced.png"] * (part == "figure-9")
    figures = drawn(out / name for name in names)
    if not spectrum:
        missing = tuple(name for name in names if not (out / name).is_file()) if figures else ()
        return Findings(figures=figures, missing=missing)
    count, expected = read_json(out / "numbers.json")["informative"], 22 if options.method == "labels" else 20
    knee = Claim("the spectrum falls off after about twenty of 784 variables", expected / 2 <= count <= 2 * expected)
    return Findings((Number("informative variables", [count], expected),), (knee,), figures)


def main(options: Options) -> None:
    """Train, draw, print."""
    kind = MNIST if options.data == "mnist" else EMNIST
    train, test = kind(split="train").load(), kind(split="test").load()
    out = place(options)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    model = fit_or_load(method(options, len(train)), train, out / "model")
    seconds = time.perf_counter() - start
    x, c = test.collect(10_000, torch.Generator().manual_seed(0))
    images, labels = x.float().numpy(), c[:, 0].long().numpy()
    figures(model, images, labels, out)
    numbers = {
        "data": options.data, "method": model.name, "steps": model.steps, "seconds": round(seconds, 1),
        "informative": model.n_informative_, "confidence": model.confidence_,
        "spectrum": [round(float(s), 6) for s in model.spectrum_], "diagnosis": model.diagnosis_,
    }  # fmt: skip
    if isinstance(model, GIN):
        numbers["bits per dimension"] = bits(model, images, labels)
    write_json(out / "numbers.json", numbers)
    for name in ("steps", "seconds", "informative", "confidence", "bits per dimension"):
        print_text(f"{name}: {numbers.get(name, '-')}")
    print_text("\n".join(model.diagnosis_))
    print_text(f"Figures and numbers.json are in {out}.")


if __name__ == "__main__":
    launch(main, Options)
