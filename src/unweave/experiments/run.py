"""A run: a recipe with an address, and, once done, a folder that is whole, or an error that names what is not."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from unweave import __version__
from unweave.data.core import Factor, FactorData, Sample
from unweave.data.dataset import Dataset
from unweave.methods.base import Method
from unweave.methods.neural import Neural
from unweave.metrics.local_isometry import NearPairs, near_pairs
from unweave.utils.errors import InputError
from unweave.utils.source import source_hash
from unweave.utils.storage import read_json, recipe_hash, write_json
from unweave.utils.validation import normalize_numbers

FINAL_SHARE = 0.1  # of the history: its end, over which a likelihood is averaged
SHOWN_PAIRS = 3_000  # of the near pairs, for the isometry figure


@dataclass(frozen=True, eq=False)
class Run:
    """One dataset, one method: everything that decides the outcome."""

    data: Dataset
    method: Method

    def recipe(self) -> dict[str, Any]:
        """All of it as JSON; a class out of a user's own file brings the hash of that file."""
        settings = normalize_numbers(type(self.method), self.method.get_params(deep=False))
        method = {"name": self.method.name, **settings}
        sources = {"data": source_hash(type(self.data)), "method": source_hash(type(self.method))}
        recipe = {"data": self.data.recipe(), "method": method}
        return {k: v | ({"source": sources[k]} if sources[k] else {}) for k, v in recipe.items()}

    @cached_property
    def key(self) -> str:
        """The hash of the recipe: where the run lives."""
        return recipe_hash(self.recipe(), 12)

    def title(self) -> str:
        """What progress and folders call the run."""
        return f"{self.method.name} on {self.data.title()}"


class FinishedRun(NamedTuple):
    """A finished run, as read back from its folder."""

    folder: Path
    recipe: dict[str, Any]
    scores: dict[str, float]
    asked: frozenset[str]  # metrics that were computed, or found not to fit the data
    env: dict[str, Any]
    factors: tuple[Factor, ...]
    codes: np.ndarray  # (n, d)
    truth: np.ndarray  # (n, k)
    pairs: np.ndarray  # (m, 2): distances of near pairs, in the data and in the rescaled codes
    diagnosis: tuple[str, ...]  # what the method said of itself, in words


class EvaluationSet(NamedTuple):
    """What a pack of runs learned from and is judged by."""

    data: FactorData
    draw: Sample
    seconds: float  # of learning, for each run


def write_run(
    run: Run, folder: Path, judged: EvaluationSet, codes: np.ndarray, scores: dict[str, float | None]
) -> None:
    """Model, codes, scores, history and provenance of one run."""
    run.method.write(folder)
    write_json(folder / "run.json", {"key": run.key, **run.recipe()})
    write_json(folder / "scores.json", scores)
    history = run.method.history if isinstance(run.method, Neural) else pd.DataFrame()
    if not history.empty:
        history.to_parquet(folder / "history.parquet")
    diagnosis = list(getattr(run.method, "diagnosis_", ()))
    learned = {"diagnosis": diagnosis, "log_likelihood": final_likelihood(run.method, history)}
    write_json(folder / "env.json", environment(run.data.title(), *judged) | learned)
    _write_codes(folder, judged.draw, codes, judged.data.factors)


def final_likelihood(method: Method, history: pd.DataFrame) -> float | None:
    """Return the log-likelihood per observation, in nats, of the last tenth of a training; None where there is none."""
    return method.log_likelihood(history.tail(max(1, int(FINAL_SHARE * len(history)))))


def _write_codes(folder: Path, draw: Sample, codes: np.ndarray, factors: Sequence[Factor]) -> None:
    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])])
    truth = pd.DataFrame(draw.c.numpy(force=True), columns=[f.name for f in factors])
    pd.concat([table, truth], axis=1).to_parquet(folder / "codes.parquet")
    try:
        near = near_pairs(draw.x, codes)
    except InputError:  # too few observations for a picture, of which the score that needs them has warned
        near = NearPairs(*(np.zeros(0) for _ in NearPairs._fields))
    shown = np.random.default_rng(0).permutation(len(near.dx))[:SHOWN_PAIRS]
    pd.DataFrame({"data": near.dx[shown], "codes": near.dz[shown]}).to_parquet(folder / "pairs.parquet")


def rows(folders: Iterable[Path]) -> pd.DataFrame:
    """One row per run, as a table; where a method has no such setting or score, the cell is empty."""
    return pd.DataFrame(records(folders)).convert_dtypes()


def records(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """One record per run: key, data, method, its parameters, its scores, seconds."""
    table = []
    for run in map(read_run, map(Path, folders)):
        params = {k: v for k, v in run.recipe["method"].items() if k not in ("name", "source")}
        head = {"key": run.recipe["key"], "data": run.env["data"]["title"], "method": run.recipe["method"]["name"]}
        table.append(head | params | run.scores | {"seconds": run.env["seconds"]})
    return table


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Run folders among the paths, or below them."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist: give a run folder, or a folder of runs")
        below = [path] if (path / "run.json").is_file() else sorted(f.parent for f in path.rglob("run.json"))
        below = [b for b in below if not any(part.startswith(".") for part in b.relative_to(path).parts)]
        if not below:
            raise InputError(f"{path} holds no runs: make one with `unweave fit METHOD DATA --out {path}`")
        found += [b for b in below if b not in found]
    return found


def read_run(folder: Path) -> FinishedRun:
    """Everything about a finished run except its weights, or an error that names what is damaged."""
    recipe, env = read_json(folder / "run.json"), read_json(folder / "env.json")
    scores = read_json(folder / "scores.json")
    try:
        table = pd.read_parquet(folder / "codes.parquet").to_numpy(np.float64)
        pairs = pd.read_parquet(folder / "pairs.parquet").to_numpy(np.float64)
        factors = tuple(Factor(**f) for f in env["data"]["factors"])
        found = {k: float(v) for k, v in scores.items() if v is not None}
        d = table.shape[1] - len(factors)
        if d < 1 or recipe["method"]["latent_dim"] not in (d, "auto", "all") or pairs.shape[1:] != (2,):
            raise ValueError(f"codes of shape {table.shape}, pairs of shape {pairs.shape}")
        said = tuple(map(str, env.get("diagnosis", ())))
        _ = recipe["key"], recipe["data"]["name"], recipe["method"]["name"], env["data"]["title"], float(env["seconds"])
        _ = env["data"]["sha256"][:12], env["data"]["observations"] + 1, list(env["data"]["shape"])
    except Exception as error:  # whatever an altered file can cause
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"{folder} is not complete, or altered ({text}): remove it and run again") from error
    asked = frozenset(column.partition(".")[0] for column in scores)
    return FinishedRun(folder, recipe, found, asked, env, factors, table[:, :d], table[:, d:], pairs, said)


def environment(title: str, data: FactorData, draw: Sample, seconds: float) -> dict[str, Any]:
    """Provenance: what was learned from, where, with which versions, how long it took."""
    packages = ("torch", "numpy", "scipy", "scikit-learn")
    return {
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "title": title,
            "observations": len(draw.x),
            "shape": list(data.shape),
            "factors": [vars(f) for f in data.factors],
            "sha256": hashlib.sha256(draw.x.numpy(force=True).tobytes()).hexdigest(),
        },
        "versions": {"python": platform.python_version(), "unweave": __version__}
        | {name: version(name) for name in packages},
        "machine": {
            "system": platform.platform(terse=True),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
    }
