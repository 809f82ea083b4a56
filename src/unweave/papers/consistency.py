"""Consistency of restarts: whether flows of different seeds find the same informative variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from unweave import catalog
from unweave.metrics import mcc
from unweave.papers.flow_digits import MODEL, DigitData, DigitFlow
from unweave.papers.output import SILENT, Output, TextTable

FILE_NAME = "consistency.csv"


def write_consistency(folder: Path, digits: DigitData, output: Output = SILENT) -> None:
    """Write a row for each pair of seeds whose models are below a folder; nothing for fewer than two.

    Args:
        folder: Folder of the seeds, and of the file `consistency.csv`. Seeds that diverged have no model.
        digits: Test digits that are encoded, and their labels.
        output: Receives messages about the progress.
    """
    paths = sorted(folder.glob(f"seed-*/{MODEL}"), key=lambda path: int(path.parent.name.removeprefix("seed-")))
    if len(paths) < 2:
        return
    output.progress("Comparing the seeds")
    models = {int(path.parent.name.removeprefix("seed-")): catalog.load(path) for path in paths}
    codes = {seed: informative_codes(model, digits.images) for seed, model in models.items()}
    compare_seeds(codes, digits.labels).to_csv(folder / FILE_NAME, index=False, float_format="%.4f")


def informative_codes(model: DigitFlow, x: np.ndarray) -> np.ndarray:
    """Return the informative variables of observations, most important first, (n, n_informative_)."""
    return model.outputs(model.to_tensor(x))[:, model.order_[: model.n_informative_]].numpy()


def compare_seeds(codes: dict[int, np.ndarray], labels: np.ndarray) -> pd.DataFrame:
    """Return one row for each pair of seeds: the MCC of the smaller set of variables with the larger one.

    Args:
        codes: Informative variables of the same observations by seed, (n, variables).
        labels: Classes of the observations, (n,). The MCC within classes is that of codes less the class means, since
            means of classes alone make codes correlate.
    """
    centered = {seed: subtract_class_means(z, labels) for seed, z in codes.items()}
    rows = []
    for a, b in combinations(sorted(codes), 2):
        few, many = sorted((a, b), key=lambda seed: codes[seed].shape[1])
        n = codes[few].shape[1]
        within = mcc(centered[few], centered[many])
        rows.append([a, b, n, codes[many].shape[1], mcc(codes[few], codes[many]), within])
    return pd.DataFrame(rows, columns=["seed", "other seed", "variables", "of", "MCC", "MCC within classes"])


def subtract_class_means(z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return codes (n, d) less the means of their class."""
    frame = pd.DataFrame(z)
    return (frame - frame.groupby(np.asarray(labels)).transform("mean")).to_numpy()


def read_consistency(folder: Path, title: str) -> list[TextTable]:
    """Return a table with a row for each seed: its mean and smallest MCC with the others; none where none is stored."""
    if not (folder / FILE_NAME).is_file():
        return []
    pairs = pd.read_csv(folder / FILE_NAME)
    seeds = sorted({*pairs["seed"], *pairs["other seed"]})
    rows = [_summarize(str(seed), pairs[(pairs["seed"] == seed) | (pairs["other seed"] == seed)]) for seed in seeds]
    columns = ("seed", "mean MCC with the others", "smallest", "mean within classes", "smallest within classes")
    return [TextTable(title, columns, [*rows, _summarize("all pairs", pairs)])]


def _summarize(name: str, pairs: pd.DataFrame) -> list[str]:
    columns: Sequence[str] = ("MCC", "MCC within classes")
    return [name, *(f"{value:.3f}" for column in columns for value in (pairs[column].mean(), pairs[column].min()))]
