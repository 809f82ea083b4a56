"""Learning curves of a paper's runs: they show whether training had converged when it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unweave.papers.folders import Folders
from unweave.papers.verdicts import merge_rows

POINTS = 25  # of a curve
DIGITS = 5  # significant ones of a loss


def save_curves(runs: Mapping[Any, Path], keys: Sequence[str], place: Folders) -> None:
    """Add the losses of runs over their steps to `curves.csv`, beside the scores.

    Args:
        runs: Run folders by the values of their keys, or by one value.
        keys: Names of these values, e.g. method, part and seed.
        place: Folders of the script.
    """
    rows = []
    for head, folder in runs.items():
        values = head if isinstance(head, tuple) else (head,)
        rows.append(
            thin_history(pd.read_parquet(folder / "history.parquet")).assign(**dict(zip(keys, values, strict=True)))
        )
    every = pd.concat(rows, ignore_index=True)
    every = every[[*keys, *(name for name in every if name not in keys)]]
    merge_rows(every, place.results / "curves.csv", keys)


def thin_history(history: pd.DataFrame) -> pd.DataFrame:
    """Return at most POINTS rows: the last step of each part of a history, and the means over the part."""
    part = np.arange(len(history)) * min(POINTS, len(history)) // len(history)
    thinned = history.groupby(part).mean()
    return thinned.map(lambda value: float(f"{value:.{DIGITS}g}")).assign(step=history.groupby(part)["step"].last())
