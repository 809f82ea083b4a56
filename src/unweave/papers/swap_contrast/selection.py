"""Settings that --tune compares, and the choice among them by nuisances of the training set that were left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from unweave.papers.scripts import stored_results
from unweave.papers.swap_contrast.settings import IMPROVED, IMPROVED_DEFAULT, SEARCHED_CONVERGED
from unweave.papers.verdicts import folder_name

SETS = ("colored-mnist", "rotation-colored-mnist")
Setting = dict[str, Any]


def row_name(method: str, setting: Setting) -> str:
    """Return the name of a setting in the table of --tune.

    Example:
        >>> row_name("CNN", {"lr": 0.002, "widths": (64, 128)})
        'CNN: lr 0.002, widths 64-128'
    """
    return f"{method}: {describe_setting(setting)}"


def describe_setting(setting: Setting) -> str:
    """Return a setting in words."""
    texts = {k: "-".join(map(str, v)) if isinstance(v, tuple) else f"{v:g}" for k, v in setting.items()}
    return ", ".join(f"{key} {text}" for key, text in texts.items())


def tuning_scores(data: str, palette: str = "") -> Path:
    """Return the stored table of --converged --tune."""
    name = folder_name(f"{data}-tuning-converged", {palette: palette != ""})
    return stored_results() / "swap_contrast" / "results" / name / "scores.csv"


def select_setting(method: str, palette: str = "") -> Setting:
    """Return the setting with the best worst group, in the mean over both sets of digits; the default without a table.

    The worst groups are those of backgrounds and angles of the training set that were left out. Settings that were
    added to the search later, or that lack seeds of others, do not take part.
    """
    default = IMPROVED_DEFAULT if method == IMPROVED else {}
    settings = {row_name(method, setting): setting for setting in SEARCHED_CONVERGED.get(method, ())}
    paths = [tuning_scores(data, palette) for data in SETS]
    if not settings or not all(path.is_file() for path in paths):
        return default
    tables = [pd.read_csv(path) for path in paths]
    scores = [rows[rows["angle"].isna()].groupby("method")["worst"].agg(["mean", "size"]) for rows in tables]
    means = [by_method["mean"].reindex([*settings]) for by_method in scores]
    counts = [by_method["size"].reindex([*settings]) for by_method in scores]
    complete = [mean.where(count == count.max()) for mean, count in zip(means, counts, strict=True)]
    worst = pd.concat(complete, axis=1).mean(axis=1, skipna=False)
    return settings[str(worst.idxmax())] if worst.notna().any() else default


def describe_selection(methods: list[str], palette: str = "") -> str:
    """Return the selected settings of methods in a sentence; empty if none was selected."""
    texts = {name: describe_setting(select_setting(name, palette)) for name in methods if name in SEARCHED_CONVERGED}
    chosen = "; ".join(f"{name}: {text}" for name, text in texts.items() if text)
    return f"settings beyond the common ones: {chosen}" if chosen else ""
