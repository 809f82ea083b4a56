"""Execution of runs: train together, score, write each into a folder that appears complete or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from unweave.data.core import FactorData
from unweave.experiments.evaluation import (
    EVALUATION_SIZE,
    MetricInputs,
    compute_scores,
    evaluation_sample,
    score_pack,
)
from unweave.experiments.failures import Errors
from unweave.experiments.pack_training import PackTooLargeError, checkpoint_path, resumable_groups, train_pack
from unweave.experiments.run import EvaluationSet, FinishedRun, Run, read_run, write_run
from unweave.methods.base import Method
from unweave.methods.persistence import read_config
from unweave.metrics.contract import Metric
from unweave.metrics.local_isometry import PreparedInputs
from unweave.training.loop import Callback
from unweave.utils.errors import InputError, plural
from unweave.utils.storage import atomic_folder, no_room, read_json, write_atomic
from unweave.utils.validation import check_finite

M = TypeVar("M", bound=Method)
Notify = Callable[[str], None]


def ignore(text: str) -> None:
    """Drop a progress message."""


class RunSettings(NamedTuple):
    """Settings of runs: metrics, size of the evaluation set, and receivers of progress."""

    scorers: dict[str, Metric]
    evaluation_size: int = EVALUATION_SIZE
    """Observations to score on."""
    notify: Notify = ignore
    """Receives progress messages."""
    callback: Callback | None = None
    """Receives the progress of every training: every loss term of every lane."""
    jobs: int = -1
    """Processes that score a pack; -1: all processors."""
    prefix: str = ""
    """Start of every progress message: how far the study is."""

    def say(self, text: str) -> None:
        """Send a progress message."""
        self.notify(self.prefix + text)


class PackResult(NamedTuple):
    """Outcome of a pack: every run is in one of the two, by its key."""

    finished: dict[str, FinishedRun]
    errors: Errors


def execute_run(
    run: Run,
    folder: Path,
    scorers: dict[str, Metric],
    notify: Notify = ignore,
    callback: Callback | None = None,
) -> FinishedRun:
    """Train, score and write one run; a finished run is not repeated."""
    result = execute_pack([run], [folder], RunSettings(scorers, notify=notify, callback=callback))
    for error in result.errors.values():
        raise error
    return result.finished[run.key]


def execute_pack(pack: Sequence[Run], folders: Sequence[Path], settings: RunSettings) -> PackResult:
    """Execute runs that can be trained together, each into its own folder; an error of one does not stop the others."""
    places = {run.key: folder for run, folder in zip(pack, folders, strict=True)}
    result = PackResult({}, {})
    missing = [run for run in pack if not is_finished(places[run.key])]
    for run in pack:
        if run not in missing:
            result.finished[run.key] = _complete_scores(run, places[run.key], settings)
    groups = resumable_groups(pack, missing, folders[0].parent) if missing else []
    rest = [run for run in missing if not any(run in group for group in groups)]
    for group in [*groups, *([rest] if rest else [])]:
        _train_and_write(group, [run for run in group if run in missing], places, settings, result)
    return result


def is_finished(folder: Path) -> bool:
    """Return whether something is where a run is to be written."""
    return folder.is_file() or (folder.is_dir() and any(folder.iterdir()))


def _train_and_write(
    pack: list[Run], missing: list[Run], places: dict[str, Path], settings: RunSettings, result: PackResult
) -> None:
    """Train a pack, score it, and write the runs that are missing."""
    first = pack[0]
    title = first.title() if len(pack) == 1 else f"{len(pack)} models, {first.title()}"
    settings.say(f"{title}: loading data")
    data = first.data.load()
    sample = evaluation_sample(first, data, settings.evaluation_size)
    inputs = sample.x.numpy(force=True).view(PreparedInputs)
    check_finite(inputs, what=first.data.title())
    place = places[missing[0].key]
    with atomic_folder(place) as draft:
        shutil.rmtree(draft)  # an error about a folder that cannot be written must come before the training
    shape = " x ".join(map(str, data.shape))
    settings.say(f"{title}: training; evaluated on {plural(len(sample.x), 'observation')} of shape {shape}")
    checkpoint = checkpoint_path(pack, place.parent)
    try:
        trained = train_pack(pack, data, checkpoint, settings.callback)
    except PackTooLargeError:
        settings.say(f"{title}: more than fits into the memory of the device: one half after the other")
        middle = len(missing) // 2
        for half in filter(None, (missing[:middle], missing[middle:])):
            _train_and_write(half, half, places, settings, result)
        return
    failed = {run.key: f for run, f in zip(pack, trained.failures, strict=True) if f is not None}
    result.errors.update({key: InputError(failure.text()) for key, failure in failed.items()})
    able = [run for run in missing if run.key not in failed]
    evaluation = EvaluationSet(data, sample, inputs, trained.seconds)
    if _score_and_write(able, places, evaluation, settings, result, threads=1 if len(pack) > 1 else None):
        checkpoint.unlink(missing_ok=True)


def _score_and_write(
    pack: list[Run],
    places: dict[str, Path],
    evaluation: EvaluationSet,
    settings: RunSettings,
    result: PackResult,
    *,
    threads: int | None,
) -> bool:
    """Score trained runs and write them; return whether all of them were."""
    errors: Errors = {}
    scored = score_pack(pack, evaluation, settings.scorers, settings.say, jobs=settings.jobs, threads=threads)
    for run, codes, scores in scored:
        if isinstance(scores, Exception):
            errors[run.key] = scores
            continue
        folder = places[run.key]
        try:
            with atomic_folder(folder) as draft:
                finished = write_run(run, draft, evaluation, codes, scores)
            result.finished[run.key] = finished._replace(folder=folder)
        except Exception as error:
            if no_room(error):  # which would stop the others as well
                raise
            errors[run.key] = error
    result.errors.update(errors)
    return not errors


def _complete_scores(run: Run, folder: Path, settings: RunSettings) -> FinishedRun:
    """Read a run that is finished, check that it is this one, and add the metrics that it lacks."""
    if not (folder / "run.json").is_file():
        raise InputError(f"{folder} exists and is not a run: choose another --out, or remove it")
    finished = read_run(folder)
    if finished.recipe.get("key") != run.key:
        raise InputError(
            f"{folder} holds another run ({finished.recipe['method']['name']} on {finished.env['data']['title']}, "
            "or the same with other settings): choose another --out, or remove it"
        )
    read_config(folder)  # raises InputError if the model is damaged
    missing = {name: s for name, s in settings.scorers.items() if name not in finished.computed}
    if not missing:
        settings.say(f"{run.title()}: already finished ({folder})")
        return finished
    settings.say(f"{run.title()}: already finished; scoring {', '.join(missing)}")
    data = run.data.load()
    needs_method = any(scorer.facts.truth == "decoder" for scorer in missing.values())
    method = type(run.method).load(folder) if needs_method else None
    sample = evaluation_sample(run, data, len(finished.codes))
    inputs = MetricInputs(sample.x, sample.c, data.factors, method)
    scores = read_json(folder / "scores.json") | compute_scores(inputs, finished.codes, missing)
    write_atomic(folder / "scores.json", json.dumps(scores, indent=2) + "\n")
    return read_run(folder)


def fit_or_load(method: M, data: FactorData, folder: Path, callback: Callback | None = None) -> M:
    """Return the method fitted to data and saved in a folder; one with the same settings there is loaded instead."""
    if (folder / "config.json").is_file():
        saved = type(method).load(folder)
        if repr(saved.get_params()) == repr(method.get_params()):
            return saved
        shutil.rmtree(folder)
    method.fit(data, callback=callback)
    method.save(folder)
    return method
