"""Runs: a recipe with a key, and once it is finished, a folder with model, codes, scores and provenance."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.data.core import Factor, FactorData, Sample
from unweave.data.dataset import Dataset
from unweave.experiments.history import final_likelihood
from unweave.experiments.ordered import MAX_STORED_CODES, MAX_STORED_PIXELS, order_observations, write_ordered
from unweave.experiments.provenance import environment
from unweave.methods.base import Method
from unweave.methods.persistence import HISTORY, saved_settings
from unweave.metrics.factors import expand_angles
from unweave.metrics.local_isometry import PreparedInputs, near_pairs
from unweave.utils.errors import InputError, join_settings, plural
from unweave.utils.manifest import FILE_NAME as MANIFEST
from unweave.utils.manifest import check_manifest, has_manifest, write_manifest
from unweave.utils.storage import read_json, recipe_hash, source_hash, to_jsonable, write_json
from unweave.utils.tables import read_parquet
from unweave.utils.validation import normalize_numbers

RUN_FILES = {"run.json", MANIFEST}  # that tell a run folder
MAX_HASHED = 2**25  # bytes of a file, above which tables and reports compare its size alone; `load` hashes every file
MAX_SHOWN_PAIRS = 3_000  # near pairs that a run folder holds for the isometry figure


@dataclass(frozen=True, eq=False)
class Run:
    """A dataset and a method with all their settings: everything that decides the outcome.

    Example:
        >>> import unweave
        >>> run = unweave.Run(unweave.datasets.SquaresXY(points=100), unweave.methods.PCA(latent_dim=2))
        >>> run
        <Run: pca on squares-xy (data.points=100)>
    """

    data: Dataset
    method: Method

    def __repr__(self) -> str:
        return f"<Run: {self.label()}>"

    def _repr_html_(self) -> str:
        from unweave.experiments.run_html import run_html

        return run_html(self)

    def recipe(self) -> dict[str, Any]:
        """Return the settings of both as JSON values; a class from a user's file adds the hash of its source."""
        return self._recipe

    @cached_property
    def _recipe(self) -> dict[str, Any]:
        settings = normalize_numbers(type(self.method), saved_settings(self.method))
        parts = {"data": self.data.recipe(), "method": {"name": self.method.name, **settings}}
        for part, owner in (("data", self.data), ("method", self.method)):
            source = source_hash(type(owner))
            parts[part] |= {"source": source} if source else {}
        return _as_json(parts)

    @cached_property
    def key(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of the recipe: the name of the run folder."""
        return recipe_hash(self._recipe, 12)

    def title(self) -> str:
        """Return method and data in words, for progress messages and tables."""
        return f"{self.method.name} on {self.data.title()}"

    def label(self) -> str:
        """Return the title with all settings that are not defaults."""
        values = changed_settings(self.method) | {f"data.{k}": v for k, v in changed_settings(self.data).items()}
        return f"{self.title()} ({join_settings(values)})" if values else self.title()


def changed_settings(thing: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, a method or a dataset, whose values are not their defaults."""
    values = {field: getattr(thing, field.name) for field in fields(thing)}
    return {f.name: v for f, v in values.items() if repr(v) != repr(f.default)}  # arrays have no single !=


class FinishedRun(NamedTuple):
    """A finished run: everything that its folder holds except the weights."""

    folder: Path
    recipe: dict[str, Any]  # with its key
    scores: dict[str, float]
    computed: frozenset[str]  # metrics that were asked for, with those that the data do not allow
    env: dict[str, Any]
    factors: tuple[Factor, ...]
    codes: np.ndarray  # (n, d)
    truth: np.ndarray  # (n, k)
    pairs: np.ndarray  # (m, 2): distances of near pairs, in the data and in the rescaled codes
    diagnosis: tuple[str, ...]  # sentences about how far to trust the method
    code_periods: tuple[float | None, ...]  # of codes that are angles; None for the others
    row_names: tuple[str, ...] | None  # identifiers of the rows, where the data have some
    row_key: str  # what the identifiers are called in the data

    def __repr__(self) -> str:
        method = self.recipe["method"]
        scores = ", ".join(f"{name} {value:.3g}" for name, value in self.scores.items()) or "no scores"
        title = f"{method['name']} on {self.env['data']['title']}, seed {method.get('seed')}"
        codes = f"{plural(self.codes.shape[1], 'code')} of {plural(len(self.codes), 'observation')}"
        return f"<FinishedRun: {title}; {codes}; {scores}; {self.env['seconds']:.1f} s; {self.folder}>"

    def _repr_html_(self) -> str:
        from unweave.experiments.run_html import finished_run_html

        return finished_run_html(self)


class EvaluationSet(NamedTuple):
    """The data that a pack of runs is scored on, and the sample of them."""

    data: FactorData
    sample: Sample
    inputs: PreparedInputs  # the observations of the sample as an array, with columns scaled as in training
    seconds: float  # of training, per run


def write_run(
    run: Run, folder: Path, evaluation: EvaluationSet, codes: np.ndarray, scores: dict[str, float | None]
) -> FinishedRun:
    """Write model, codes, scores, history and provenance of one run, and return them."""
    method, recipe = run.method, {"key": run.key, **run.recipe()}
    history = method.history
    env = environment(run.data.title(), evaluation.data, evaluation.sample, evaluation.seconds)
    env["diagnosis"] = list(method.summary())
    env["log_likelihood"] = final_likelihood(method, history)
    env["code_periods"] = list(method.code_periods())
    env["manifest"] = True
    factors, pairs = (
        evaluation.data.factors,
        _shown_pairs(evaluation.inputs, expand_angles(codes, method.code_periods())),
    )
    truth = evaluation.sample.c.numpy(force=True)
    method.write(folder)
    write_json(folder / "run.json", recipe)
    write_json(folder / "scores.json", scores)
    write_json(folder / "env.json", env)
    if not history.empty:
        history.to_parquet(folder / HISTORY)
    data = evaluation.data
    row_names = data.row_names if data.row_names and len(data.row_names) == len(codes) else None
    _write_codes(folder, codes, truth, [factor.name for factor in factors], pairs, _row_index(row_names, data.row_key))
    _write_observations(folder, method, evaluation, codes, row_names)
    write_manifest(folder)
    return FinishedRun(
        folder, recipe, _finite(scores), _metrics(scores), _as_json(env), tuple(factors),
        codes.astype(np.float64), truth.astype(np.float64), pairs, tuple(map(str, env["diagnosis"])),
        method.code_periods(), row_names, data.row_key,
    )  # fmt: skip


def _row_index(row_names: Sequence[str] | None, key: str) -> pd.Index | None:
    """Return the identifiers of rows as the index of a table."""
    return None if row_names is None else pd.Index(row_names, name=key)


def _write_codes(
    folder: Path, codes: np.ndarray, truth: np.ndarray, names: list[str], pairs: np.ndarray, index: pd.Index | None
) -> None:
    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])], index=index)
    every = pd.concat([table, pd.DataFrame(truth, columns=names, index=index)], axis=1)
    every.to_parquet(folder / "codes.parquet")
    pd.DataFrame(pairs, columns=["data", "codes"]).to_parquet(folder / "pairs.parquet")


def _write_observations(
    folder: Path, method: Method, evaluation: EvaluationSet, codes: np.ndarray, row_names: tuple[str, ...] | None
) -> None:
    """Write some observations along each code, so that a report can show them without the data."""
    ordered = order_observations(
        codes, evaluation.sample.x.numpy(force=True), method.code_periods(), row_names=row_names,
        feature_names=evaluation.data.feature_names, max_codes=MAX_STORED_CODES, max_pixels=MAX_STORED_PIXELS,
    )  # fmt: skip
    write_ordered(folder, ordered)


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value as it is read back from a JSON file."""
    copy: dict[str, Any] = json.loads(json.dumps(value, default=to_jsonable))
    return copy


def _shown_pairs(inputs: PreparedInputs, codes: np.ndarray) -> np.ndarray:
    """Return distances of some near pairs in the data and in the codes, (m, 2)."""
    try:
        near = near_pairs(inputs, codes)
    except InputError:  # too few observations, of which the local isometry score has warned
        return np.zeros((0, 2))
    shown = np.random.default_rng(0).permutation(len(near.dx))[:MAX_SHOWN_PAIRS]
    return np.stack([near.dx[shown], near.dz[shown]], 1)


def _finite(scores: dict[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items() if value is not None}


def _metrics(scores: Iterable[str]) -> frozenset[str]:
    """Return the metrics that columns of scores belong to."""
    return frozenset(column.partition(".")[0] for column in scores)


def rows(folders: Iterable[str | Path]) -> pd.DataFrame:
    """Return one row per run folder: key, data, method, settings, scores, seconds; a missing value is empty.

    Notebooks show it with three digits, the best scores marked, and settings that are equal in all runs folded.
    """
    from unweave.experiments.run_html import table_of_runs

    return table_of_runs(read_run(Path(folder)) for folder in folders)


def records(runs: Iterable[FinishedRun]) -> list[dict[str, Any]]:
    """Return one record per run: key, data, method, its settings, its scores, seconds."""
    table = []
    for run in runs:
        params = {k: v for k, v in run.recipe["method"].items() if k not in ("name", "source")}
        head = {"key": run.recipe["key"], "data": run.env["data"]["title"], "method": run.recipe["method"]["name"]}
        table.append(head | params | run.scores | {"seconds": run.env["seconds"]})
    return table


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Return the run folders among the paths or below them; hidden folders are skipped."""
    folders: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist: give a run folder, or a folder of runs")
        below = sorted(_walk_runs(path))
        if not below:
            raise InputError(f"{path} holds no runs: make one with `unweave fit METHOD DATA --out {path}`")
        folders |= dict.fromkeys(below)
    return list(folders)


def _walk_runs(path: Path) -> Iterator[Path]:
    for place, names, files in os.walk(path):
        if RUN_FILES & {*files}:
            yield Path(place)
            names.clear()
        names[:] = [name for name in names if not name.startswith(".")]


def read_run(folder: Path) -> FinishedRun:
    """Read everything about a finished run except its weights; an error names what is damaged."""
    check_manifest(folder, max_hashed=MAX_HASHED, may_be_empty=(HISTORY,))
    recipe, env = read_json(folder / "run.json"), read_json(folder / "env.json")
    scores = read_json(folder / "scores.json")
    try:
        stored = read_parquet(folder / "codes.parquet")
        table = stored.to_numpy(np.float64)
        pairs = read_parquet(folder / "pairs.parquet").to_numpy(np.float64)
        factors = tuple(Factor(**f) for f in env["data"]["factors"])
        d = table.shape[1] - len(factors)
        if d < 1 or recipe["method"]["latent_dim"] not in (d, "auto", "all") or pairs.shape[1:] != (2,):
            raise ValueError(f"codes of shape {table.shape}, pairs of shape {pairs.shape}")
        _check_texts(recipe, env)
        if env.get("manifest") and not has_manifest(folder):
            raise FileNotFoundError("manifest.json is missing")
        diagnosis = tuple(map(str, env.get("diagnosis", ())))
        finite = _finite(scores)
        periods = tuple(None if p is None else float(p) for p in env.get("code_periods") or [None] * d)
        if len(periods) != d:
            raise ValueError(f"{len(periods)} periods for {d} codes")
    except Exception as error:  # whatever an altered file can cause
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"{folder} is not complete, or altered ({text}): delete it and repeat the command") from error
    codes, truth = table[:, :d], table[:, d:]
    has_names = stored.index.name is not None
    row_names = tuple(map(str, stored.index)) if has_names else None
    return FinishedRun(
        folder, recipe, finite, _metrics(scores), env, factors, codes, truth, pairs, diagnosis, periods, row_names,
        str(stored.index.name) if has_names else "row",
    )  # fmt: skip


def _check_texts(recipe: dict[str, Any], env: dict[str, Any]) -> None:
    """Raise an exception unless the values that tables and reports read are there and of their types."""
    data = env["data"]
    texts = {
        "key": recipe["key"], "data": recipe["data"]["name"], "method": recipe["method"]["name"],
        "title": data["title"], "sha256": data["sha256"],
    }  # fmt: skip
    wrong = [name for name, value in texts.items() if not isinstance(value, str)]
    if wrong or not isinstance(data["observations"], int) or not isinstance(data["shape"], list):
        raise TypeError(f"{(*wrong, 'observations or shape')[0]} has another type")
    float(env["seconds"])
