"""A study is a list of runs; a run is a recipe with an address and, once done, a folder. Finished runs are skipped."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from torch import Generator

from . import __version__, catalog
from .checkpoint import note_of
from .checks import check_finite
from .data import Draw, Factor, FactorData
from .dataset import Dataset
from .discovery import own_source
from .errors import InputError, kebab, plural
from .evaluation import score
from .method import Method, read_config
from .metrics.local_isometry import near_pairs
from .neural import Neural, fit_pack
from .scoring import Metric
from .storage import plain, read_json, whole_folder, write_json, write_whole
from .terminal import bar
from .train import Failure, warn_of

DEFAULT_METRICS = ("mcc", "local-isometry")
EVALUATED = 10_000  # observations to score on, where the data are a generator or a large grid
EVALUATION_SEED = 1_000_003  # a stream of its own: no one scores on the draws that were learned from
MOST_IN_PACK = 64  # models that are trained together
SHOWN_PAIRS = 3_000  # of the near pairs, for the isometry figure

Notify = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Run:
    """One dataset, one method: everything that decides the outcome."""

    data: Dataset
    method: Method

    def recipe(self) -> dict[str, Any]:
        """All of it as JSON; a class out of a user's own file brings the hash of that file."""
        method = {"name": kebab(type(self.method).__name__), **self.method.get_params(deep=False)}
        sources = {"data": own_source(type(self.data)), "method": own_source(type(self.method))}
        recipe = {"data": self.data.recipe(), "method": method}
        return {k: v | ({"source": sources[k]} if sources[k] else {}) for k, v in recipe.items()}

    @cached_property
    def key(self) -> str:
        """The hash of the recipe: where the run lives."""
        return hashlib.sha256(json.dumps(self.recipe(), sort_keys=True, default=plain).encode()).hexdigest()[:12]

    def title(self) -> str:
        """What progress and folders call the run."""
        return f"{kebab(type(self.method).__name__)} on {self.data.title()}"


class Evaluated(NamedTuple):
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


def sweep(data: Dataset | str | Path, method: Method, **axes: Iterable[Any]) -> list[Run]:
    """The product of the axes, e.g. sweep(SquaresXY(), HessianICA(), n_neighbors=[10, 15, 30], seed=range(5)).

    `data` may also be a catalog name, or the path of your own file.
    """
    data = catalog.dataset(data)
    grid = ParameterGrid({k: list(v) for k, v in axes.items()})
    try:
        return [Run(data, clone(method).set_params(**_python(p))) for p in grid]
    except ValueError as error:
        raise InputError(str(error)) from error


def _python(params: dict[str, Any]) -> dict[str, Any]:
    """numpy's numbers as Python's, so that a recipe has one spelling."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()}


def execute(
    runs: Iterable[Run],
    out: str | Path,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    notify: Notify = lambda text: None,
) -> pd.DataFrame:
    """Fit, score and save what is missing under `out`, one folder per key; one row per run comes back.

    Runs that differ in seed and lanes alone are trained together. One whose loss does not stay finite is named in a
    warning, and has no row.
    """
    runs, out = list(runs), Path(out)
    scorers = catalog.find_metrics(metrics)
    count = 0
    for pack in packs(runs):
        count += len(pack)
        head = f"[{count}/{len(runs)}] "
        warn_of(
            _perform(pack, [out / run.key for run in pack], scorers, lambda text, head=head: notify(head + text))  # type: ignore[misc]
        )
    return rows([out / run.key for run in runs if (out / run.key).is_dir()])


def packs(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that can be trained together: of one dataset and signature; those without networks by themselves."""
    groups: dict[str, list[Run]] = {}
    for run in {run.key: run for run in runs}.values():
        method = run.method
        signature = f"{run.recipe()['data']} {method.signature()}" if isinstance(method, Neural) else run.key
        groups.setdefault(signature, []).append(run)
    at_once = {key: max(1, MOST_IN_PACK // getattr(group[0].method, "restarts", 1)) for key, group in groups.items()}
    return [group[i : i + at_once[k]] for k, group in groups.items() for i in range(0, len(group), at_once[k])]


def perform(run: Run, folder: Path, scorers: dict[str, Metric], notify: Notify = lambda text: None) -> Evaluated:
    """One run into one folder, which appears whole or not at all. A finished run is not repeated."""
    failures = _perform([run], [folder], scorers, notify)
    if failures:
        raise InputError(failures[0].text())
    return read_run(folder)


def _perform(pack: list[Run], folders: list[Path], scorers: dict[str, Metric], notify: Notify) -> list[Failure]:
    """Runs that can be trained together, each into its own folder; those that failed are returned."""
    places = {run.key: folder for run, folder in zip(pack, folders, strict=True)}
    missing = [run for run in pack if not _there(places[run.key])]
    for run in pack:
        if run not in missing:
            _finished(run, places[run.key], scorers, notify)
    failures: list[Failure] = []
    for group in _begun(pack, missing, folders[0].parent):
        failures += _train(group, places, scorers, notify)
    return failures


def _begun(pack: list[Run], missing: list[Run], parent: Path) -> list[list[Run]]:
    """The missing runs in the groups in which their training began, as checkpoints tell, and the others as one.

    A checkpoint that none of them needs is removed.
    """
    known, left, groups = {run.key: run for run in pack}, {run.key: run for run in missing}, []
    for path in sorted(parent.glob(".*.checkpoint")):
        keys = note_of(path).split()
        if not keys or not set(keys) <= set(known):
            continue
        if any(key in left for key in keys):
            groups.append([known[key] for key in keys])
            left = {key: run for key, run in left.items() if key not in keys}
        else:
            path.unlink(missing_ok=True)
    return groups + ([list(left.values())] if left else [])


def _train(pack: list[Run], places: dict[str, Path], scorers: dict[str, Metric], notify: Notify) -> list[Failure]:
    """Train runs together, and write those that are not there yet.

    What was trained is kept in a checkpoint until all of it is written, so that a crash in between costs nothing.
    """
    first, title = pack[0], pack[0].title() if len(pack) == 1 else f"{len(pack)} models, {pack[0].title()}"
    notify(f"{title}: loading data")
    data = first.data.load()
    draw = first.data.judged(data).collect(EVALUATED, Generator().manual_seed(EVALUATION_SEED))
    check_finite(draw.x.numpy(force=True), what=first.data.title())
    keys = " ".join(run.key for run in pack)
    absent = [places[run.key] for run in pack if not _there(places[run.key])]
    checkpoint = absent[0].parent / f".{hashlib.sha256(keys.encode()).hexdigest()[:12]}.checkpoint"
    with whole_folder(absent[0]) as draft:
        shutil.rmtree(draft)  # a place that cannot be written to must not cost the learning
    notify(f"{title}: learning from {_describe(draw, data)}")
    start = time.perf_counter()
    failures = _learn(pack, data, checkpoint, keys, title)
    seconds = (time.perf_counter() - start) / len(pack)
    for run, failure in zip(pack, failures, strict=True):
        if failure is None and places[run.key] in absent:
            notify(f"{run.title()}: scoring")
            with whole_folder(places[run.key]) as draft:
                _write(run, draft, data, draw, scorers, seconds)
    checkpoint.unlink(missing_ok=True)
    return [failure for failure in failures if failure is not None]


def _there(folder: Path) -> bool:
    return folder.is_file() or (folder.is_dir() and any(folder.iterdir()))


def _learn(pack: list[Run], data: FactorData, checkpoint: Path, note: str, title: str) -> Sequence[Failure | None]:
    methods = [run.method for run in pack if isinstance(run.method, Neural)]
    if not methods:
        pack[0].method.fit(data)
        return [None]
    with bar(title) as report:
        return fit_pack(methods, data, checkpoint=checkpoint, note=note, report=report)


def _write(run: Run, folder: Path, data: FactorData, draw: Draw, scorers: dict[str, Metric], seconds: float) -> None:
    """Model, codes, scores, history and provenance of one run."""
    run.method.write(folder)
    codes = run.method.transform(draw.x)
    write_json(folder / "run.json", {"key": run.key, **run.recipe()})
    write_json(folder / "scores.json", score(draw, codes, data.factors, scorers, run.method))
    said = {"diagnosis": list(getattr(run.method, "diagnosis_", ()))}
    write_json(folder / "env.json", environment(run.data.title(), data, draw, seconds) | said)
    if isinstance(run.method, Neural):
        run.method.history.to_parquet(folder / "history.parquet")
    _write_codes(folder, draw, codes, data.factors)


def rows(folders: Iterable[Path]) -> pd.DataFrame:
    """One row per run, as a table; where a method has no such setting or score, the cell is empty."""
    return pd.DataFrame(records(folders)).convert_dtypes()


def records(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """One record per run: key, data, method, its parameters, its scores, seconds."""
    table = []
    for run in map(read_run, folders):
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


def read_run(folder: Path) -> Evaluated:
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
    return Evaluated(folder, recipe, found, asked, env, factors, table[:, :d], table[:, d:], pairs, said)


def environment(title: str, data: FactorData, draw: Draw, seconds: float) -> dict[str, Any]:
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


def _finished(run: Run, folder: Path, scorers: dict[str, Metric], notify: Notify) -> Evaluated:
    """A run that is there already: check that it is this one, and add the scores that it lacks."""
    if not (folder / "run.json").is_file():
        raise InputError(f"{folder} exists and is not a run: choose another --out, or remove it")
    done = read_run(folder)
    if done.recipe.get("key") != run.key:
        raise InputError(
            f"{folder} holds another run ({done.recipe['method']['name']} on {done.env['data']['title']}, or the same "
            "with other settings): choose another --out, or remove it"
        )
    read_config(folder)  # the model is there, and whole
    missing = {name: s for name, s in scorers.items() if name not in done.asked}
    if not missing:
        notify(f"{run.title()}: finished before, kept ({folder})")
        return done
    notify(f"{run.title()}: finished before; scoring {', '.join(missing)}")
    data = run.data.load()
    decoding = any(scorer.facts.truth == "decoder" for scorer in missing.values())
    model = type(run.method).load(folder) if decoding else None
    draw = run.data.judged(data).collect(EVALUATED, Generator().manual_seed(EVALUATION_SEED))
    scores = read_json(folder / "scores.json") | score(draw, done.codes, data.factors, missing, model)
    write_whole(folder / "scores.json", json.dumps(scores, indent=2) + "\n")
    return read_run(folder)


def _write_codes(folder: Path, draw: Draw, codes: np.ndarray, factors: Sequence[Factor]) -> None:
    table = pd.DataFrame(codes, columns=[f"code{i + 1}" for i in range(codes.shape[1])])
    truth = pd.DataFrame(draw.c.numpy(force=True), columns=[f.name for f in factors])
    pd.concat([table, truth], axis=1).to_parquet(folder / "codes.parquet")
    near = near_pairs(draw.x, codes)
    shown = np.random.default_rng(0).permutation(len(near.dx))[:SHOWN_PAIRS]
    pd.DataFrame({"data": near.dx[shown], "codes": near.dz[shown]}).to_parquet(folder / "pairs.parquet")


def _describe(draw: Draw, data: FactorData) -> str:
    return f"{plural(len(draw.x), 'observation')} of shape {' x '.join(map(str, data.shape))}"
