"""Common code of the scripts that train flows on digits: data, training of several models, numbers and claims."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from torch import Generator

from unweave.data.core import FactorData
from unweave.datasets import EMNIST, MNIST
from unweave.methods import GIN, SelfSupervisedGIN
from unweave.methods.flows.knee import INTERVAL, MAX_CLEAR_WIDTH, describe_interval, is_clear
from unweave.methods.neural import fit_pack
from unweave.papers.folders import Folders
from unweave.papers.verdicts import Claim, Findings, Number, folder_name
from unweave.report.figures.curves import draw_loss_curves
from unweave.report.figures.flows import draw_spectra
from unweave.training.checkpoint import read_seconds
from unweave.utils.errors import plural
from unweave.utils.storage import read_json, write_json

NUMBERS, SPECTRUM, HISTORY, MODEL = "numbers.json", "spectrum.csv", "history.csv", "model"
COUNT_TOLERANCE = 0.25  # relative difference of two numbers of informative variables that counts as the same result
N_TEST = 10_000  # test digits that are scored
N_PCA = 5_000  # test digits for the spectrum of PCA
DIVERGED = "failed at step"

Digits = Literal["mnist", "emnist"]
Precision = Literal["single", "tf32", "bf16"]
DigitFlow = GIN | SelfSupervisedGIN


class DigitData(NamedTuple):
    """Training and test digits, and the latter as arrays: images (n, 1, 28, 28) in [0, 1] and labels (n,)."""

    train: FactorData
    test: FactorData
    images: np.ndarray
    labels: np.ndarray


def load_digits(name: Digits) -> DigitData:
    """Read both splits."""
    dataset = MNIST if name == "mnist" else EMNIST
    train, test = dataset(split="train").load(), dataset(split="test").load()
    x, c = test.collect(N_TEST, Generator().manual_seed(0))
    return DigitData(train, test, x.float().numpy(), c[:, 0].long().numpy())


def digits_folders(out: Path, data: Digits, precision: Precision, extra_steps: int) -> Folders:
    """Return where everything goes; other data, precisions and steps have folders of their own.

    Args:
        out: Folder of the paper.
        data: Which digits.
        precision: Precision of matrix products.
        extra_steps: Number of steps where it is not the usual one, else 0.
    """
    name = "digits" if data == "mnist" else data
    return Folders(out, folder_name(name, {precision: precision != "single", f"{extra_steps}-steps": extra_steps > 0}))


# Training ---------------------------------------------------------------------------------------------------------


def train_together(methods: Sequence[DigitFlow], places: Sequence[Path], data: FactorData, callback: Any) -> None:
    """Train the methods without a finished model in their folders as one pack; write models, histories and numbers.

    A checkpoint beside the folders lets an interrupted call resume.
    """
    lanes = [lane for lane in zip(methods, places, strict=True) if not is_finished(*lane)]
    if not lanes:
        return
    root = Path(os.path.commonpath([place.parent for _, place in lanes]))
    root.mkdir(parents=True, exist_ok=True)
    names = "-".join(str(place.relative_to(root)).replace(os.sep, "-") for _, place in lanes)
    checkpoint = root / f".{names}.checkpoint"
    start = time.perf_counter()
    failures = fit_pack([method for method, _ in lanes], data, checkpoint=checkpoint, callback=callback)
    seconds = round(max(time.perf_counter() - start, read_seconds(checkpoint)), 1)
    for (method, place), failure in zip(lanes, failures, strict=True):
        outcome = {DIVERGED: failure.step} if failure else {}
        write_model(method, place, {"models in the pack": len(lanes), "seconds of the pack": seconds, **outcome})
    checkpoint.unlink(missing_ok=True)


def is_finished(method: DigitFlow, place: Path) -> bool:
    """Return whether a folder holds the outcome of a method: its model, or the step at which it diverged."""
    path = place / NUMBERS
    if not path.is_file():
        return False
    numbers = read_json(path)
    return numbers["settings"] == method.recipe() and (DIVERGED in numbers or (place / MODEL).is_dir())


def write_model(method: DigitFlow, place: Path, extra: dict[str, Any]) -> None:
    """Write a model unless it diverged, with its training curve and spectrum; the numbers last."""
    place.mkdir(parents=True, exist_ok=True)
    numbers = {"settings": method.recipe(), **extra}
    if DIVERGED not in extra:
        shutil.rmtree(place / MODEL, ignore_errors=True)
        method.save(place / MODEL)
        method.history.to_csv(place / HISTORY, index=False, float_format="%.7g")
        frame = pd.DataFrame({"variable": range(1, len(method.spectrum_) + 1), "deviation": method.spectrum_})
        frame.to_csv(place / SPECTRUM, index=False, float_format="%.6g")
        numbers |= {
            "informative": method.n_informative_, "confidence": round(method.confidence_, 6),
            "interval": [*method.informative_interval()], "diagnosis": method.diagnosis_,
        }  # fmt: skip
    write_json(place / NUMBERS, numbers)


def update_numbers(place: Path, **values: Any) -> dict[str, Any]:
    """Add values to the numbers of a model, and return all of them."""
    numbers = read_json(place / NUMBERS) | values
    write_json(place / NUMBERS, numbers)
    return numbers


def read_numbers(place: Path) -> list[dict[str, Any]]:
    """Return the numbers of all seeds below a folder, in the order of the seeds."""
    paths = sorted(place.glob(f"seed-*/{NUMBERS}"), key=lambda path: int(path.parent.name.removeprefix("seed-")))
    return [read_json(path) for path in paths]


# What the results say ---------------------------------------------------------------------------------------------


def draw_training(model: DigitFlow, place: Folders, images: np.ndarray) -> None:
    """Draw the spectrum beside that of PCA, and the training curve without its first window, which hides the rest."""
    place.save(draw_spectra(model, images[:N_PCA]), "spectrum.png")
    place.save(draw_loss_curves({model.name: model.history.iloc[1:]}), "curves.png")


def knee_findings(numbers: Sequence[dict[str, Any]], paper: int) -> Findings:
    """Return the number of informative variables beside the paper's, and both claims about its spectrum."""
    trained = [entry for entry in numbers if DIVERGED not in entry]
    if not trained:
        return Findings(claims=(Claim("training converges", False),))
    counts = [float(entry["informative"]) for entry in trained]
    clear = sum(is_clear(entry["informative"], entry["interval"]) for entry in trained)
    near = math.isclose(float(np.mean(counts)), paper, rel_tol=0, abs_tol=COUNT_TOLERANCE * paper)
    claims = (
        Claim(
            f"the knee is sharp: its {INTERVAL:.0%} interval is at most {MAX_CLEAR_WIDTH:.0%} wide in most seeds",
            clear > len(trained) / 2,
        ),
        Claim(f"{paper} of 784 variables are informative, up to {COUNT_TOLERANCE:.0%}", near),
    )
    low, high = (np.mean([entry["interval"][i] for entry in trained]) for i in (0, 1))
    note = (
        f"{np.mean(counts):.1f} informative variables in the mean, with intervals from {low:.1f} to {high:.1f} in the "
        f"mean; the knee is clear in {clear} of {len(trained)} seeds"
    )
    number = Number("informative variables", counts, paper)
    return Findings((number,), claims, notes=(note,), effort=describe_seeds(numbers))


def figure_findings(place: Folders, names: Sequence[str], effort: str) -> Findings:
    """Return the figures with these names, and which of them are missing where others were drawn."""
    figures = place.drawn(*names)
    missing = tuple(name for name in names if place.figures / name not in figures) if figures else ()
    return Findings(figures=figures, missing=missing, effort=effort if figures else "")


def describe_seeds(numbers: Sequence[dict[str, Any]]) -> str:
    """Return the number of seeds and steps in words."""
    return f"{plural(len(numbers), 'seed')}, {numbers[0]['settings']['steps']:,} steps"


def variable_names(low: int, high: int) -> list[str]:
    """Return the names of the figures of variables `low` to `high`."""
    return [f"variable-{j:02}.png" for j in range(low, high + 1)]


def knee_cells(numbers: dict[str, Any], score: str, digits: int) -> list[str]:
    """Return the cells of a table for one model: informative variables, their interval, and its score."""
    if DIVERGED in numbers:
        return [f"diverged at step {numbers[DIVERGED]:,}", "", ""]
    return [str(numbers["informative"]), describe_interval(numbers["interval"]), f"{numbers[score]:.{digits}f}"]
