"""Execution of runs: train packs, score, write each run into a folder that appears complete or not at all.

The path of a run: `execute_run` -> `execute_pack` -> `_train_and_write` -> `train_with_retries` -> `fit_pack` of
`methods.neural` -> `train` of `training.loop`.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import torch

from unweave.data.core import FactorData
from unweave.experiments.evaluation import (
    EVALUATION_SIZE,
    MetricInputs,
    compute_scores,
    evaluation_sample,
    scale_for_training,
    score_pack,
)
from unweave.experiments.failures import Errors
from unweave.experiments.run import EvaluationSet, FinishedRun, Run, read_run, write_run
from unweave.methods.base import Method
from unweave.methods.neural import Neural, fit_pack
from unweave.methods.persistence import read_config
from unweave.methods.user_networks import user_networks
from unweave.metrics.contract import Metric
from unweave.training.checkpoint import read_note, read_seconds
from unweave.training.loop import Callback, Failure
from unweave.utils.atomic import atomic_folder, is_disk_full
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.files import is_out_of_memory
from unweave.utils.locks import lock_all
from unweave.utils.manifest import replace_file
from unweave.utils.storage import read_json
from unweave.utils.validation import check_finite

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
    before: Callable[[Method, FactorData], None] = lambda method, data: None
    """Called with a method and its data before it is trained from the beginning."""
    jobs: int = -1
    """Processes that score a pack; -1: all processors."""
    prefix: str = ""
    """Start of every progress message: how far the study is."""

    def report(self, text: str) -> None:
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
    before: Callable[[Method, FactorData], None] = lambda method, data: None,
) -> FinishedRun:
    """Train, score and write one run; a finished run is not repeated.

    Another process that writes the same folder, or trains the same run in its parent folder, is waited for. Studies
    lock their runs themselves.
    """
    settings = RunSettings(scorers, notify=notify, callback=callback, before=before)

    def report_wait(lock_file: Path) -> None:
        notify(f"{run.title()}: waiting for another process that works on {folder} (it holds {lock_file})")

    is_read_only = is_finished(folder) and not os.access(folder.parent, os.W_OK)
    path = Path(os.path.abspath(folder))  # noqa: PTH100 (`.` and `..` have names, links keep theirs)
    names = [path.name] if is_finished(folder) else [path.name, run.key]  # by its key it has a checkpoint
    with nullcontext() if is_read_only else lock_all(path.parent, names, report_wait):
        result = execute_pack([run], {run.key: folder}, settings)
    for error in result.errors.values():
        raise error
    return result.finished[run.key]


def execute_pack(pack: Sequence[Run], folders: Mapping[str, Path], settings: RunSettings) -> PackResult:
    """Execute runs that can be trained together; an error of one does not stop the others.

    Args:
        pack: Runs of one dataset whose methods have one signature.
        folders: Where to write each run, by its key; all in one parent folder, which also holds the checkpoint.
        settings: How to score, and whom to report to.
    """
    result = PackResult({}, {})
    missing = [run for run in pack if not is_finished(folders[run.key])]
    for run in pack:
        if run not in missing:
            result.finished[run.key] = _complete_scores(run, folders[run.key], settings)
    groups = resumable_groups(pack, missing, folders[pack[0].key].parent) if missing else []
    rest = [run for run in missing if not any(run in group for group in groups)]
    for group in [*groups, *([rest] if rest else [])]:
        _train_and_write(group, [run for run in group if run in missing], folders, settings, result)
    return result


def resumable_groups(pack: Sequence[Run], missing: Sequence[Run], folder: Path) -> list[list[Run]]:
    """Return the runs whose training was interrupted, in the groups of their checkpoints.

    A checkpoint that none of the missing runs needs is removed.
    """
    by_key, left, groups = {run.key: run for run in pack}, {run.key for run in missing}, []
    for path in sorted(folder.glob(".*.checkpoint")):
        keys = read_note(path).split()
        if not keys or not set(keys) <= set(by_key):
            continue
        if left & set(keys):
            groups.append([by_key[key] for key in keys])
            left -= set(keys)
        else:
            path.unlink(missing_ok=True)
    return groups


def is_finished(folder: Path) -> bool:
    """Return whether something is where a run is to be written."""
    return folder.is_file() or (folder.is_dir() and any(folder.iterdir()))


# Training -------------------------------------------------------------------------------------------------------------


class PackTooLargeError(Exception):
    """Several models together need more than the memory of the device."""


def _train_and_write(
    pack: list[Run], missing: list[Run], folders: Mapping[str, Path], settings: RunSettings, result: PackResult
) -> None:
    """Train a pack, score it, and write the runs that are missing; halve a pack that is too large for the device."""
    first = pack[0]
    title = first.title() if len(pack) == 1 else f"{len(pack)} models, {first.title()}"
    settings.report(f"{title}: loading data")
    data = first.data.load()
    source = first.data.evaluation_data(data)
    sample = evaluation_sample(source, settings.evaluation_size)
    data, inputs = scale_for_training(data, sample)
    check_finite(inputs, what=first.data.title())
    folder = folders[missing[0].key]
    with atomic_folder(folder) as temporary_folder:
        shutil.rmtree(temporary_folder)  # an error about a folder that cannot be written must come before the training
    shape = " x ".join(map(str, data.shape))
    settings.report(f"{title}: training; evaluated on {plural(len(sample.x), 'observation')} of shape {shape}")
    keys = " ".join(run.key for run in pack)  # identify the checkpoint
    checkpoint = folder.parent / f".{hashlib.sha256(keys.encode()).hexdigest()[:12]}.checkpoint"
    if not checkpoint.is_file():
        settings.before(first.method, data)
    start = time.perf_counter()
    try:
        failures = train_with_retries(pack, data, checkpoint, keys, settings.callback)
    except PackTooLargeError:
        settings.report(f"{title}: more than fits into the memory of the device: one half after the other")
        middle = len(missing) // 2
        for half in filter(None, (missing[:middle], missing[middle:])):
            _train_and_write(half, half, folders, settings, result)
        return
    seconds = max(time.perf_counter() - start, read_seconds(checkpoint)) / len(pack)  # with those before a stop
    failed = {run.key: InputError(f.text()) for run, f in zip(pack, failures, strict=True) if f is not None}
    result.errors.update(failed)
    trained = [run for run in missing if run.key not in failed]
    evaluation = EvaluationSet(source, sample, inputs, seconds)
    if _score_and_write(trained, folders, evaluation, settings, result, threads=1 if len(pack) > 1 else None):
        checkpoint.unlink(missing_ok=True)


def train_with_retries(
    pack: Sequence[Run], data: FactorData, checkpoint: Path, note: str, callback: Callback | None
) -> Sequence[Failure | None]:
    """Train the methods of a pack in place, once more if the memory of the device was full; return their failures.

    The checkpoint stays when training is over, so that a crash before the runs are written costs nothing.

    Raises:
        PackTooLargeError: several models do not fit into the memory of the device.
        InputError: one model does not fit.
    """
    for leftover in checkpoint.parent.glob(f".{checkpoint.name}.*.tmp"):  # of a process that was killed while it wrote
        leftover.unlink(missing_ok=True)
    methods, message = [run.method for run in pack if isinstance(run.method, Neural)], ""
    for _ in range(2):  # a pack with a checkpoint did fit: other processes may have taken the memory since
        try:
            if methods:
                return fit_pack(methods, data, checkpoint=checkpoint, note=note, callback=callback)
            pack[0].method.fit(data)
            return [None]
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            message = first_line(error)
        finally:
            _free_memory()
        if not checkpoint.is_file():
            break
    checkpoint.unlink(missing_ok=True)
    if len(pack) > 1:
        raise PackTooLargeError
    advice = "use a smaller network or batch_size" + ", or device='cpu'" * torch.cuda.is_available()
    raise InputError(f"{pack[0].title()} does not fit into the memory of the device ({message}): {advice}")


def _free_memory() -> None:
    """Return the memory of a GPU: scoring takes long, and other processes may wait for it."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()  # captured graphs hold memory too
        torch.cuda.empty_cache()


# Scores ---------------------------------------------------------------------------------------------------------------


def _score_and_write(
    pack: list[Run],
    folders: Mapping[str, Path],
    evaluation: EvaluationSet,
    settings: RunSettings,
    result: PackResult,
    *,
    threads: int | None,
) -> bool:
    """Score trained runs and write them; return whether all of them were."""
    errors: Errors = {}
    scored = score_pack(pack, evaluation, settings.scorers, settings.report, jobs=settings.jobs, threads=threads)
    for run, codes, scores in scored:
        if isinstance(scores, Exception):
            errors[run.key] = scores
            continue
        folder = folders[run.key]
        try:
            with atomic_folder(folder) as temporary_folder:
                finished = write_run(run, temporary_folder, evaluation, codes, scores)
            result.finished[run.key] = finished._replace(folder=folder)
        except Exception as error:
            if is_disk_full(error):  # which would stop the others as well
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
        settings.report(f"{run.title()}: already finished ({folder})")
        return finished
    settings.report(f"{run.title()}: already finished; scoring {', '.join(missing)}")
    data = run.data.load()
    needs_method = any(scorer.facts.truth == "decoder" for scorer in missing.values())
    method = type(run.method).load(folder, **user_networks(run.method)) if needs_method else None
    sample = evaluation_sample(run.data.evaluation_data(data), len(finished.codes))
    inputs = (scale_for_training(data, sample)[1], sample.c, data.factors, method, finished.code_periods)
    scores = read_json(folder / "scores.json") | compute_scores(MetricInputs(*inputs), finished.codes, missing)
    replace_file(folder, "scores.json", json.dumps(scores, indent=2) + "\n")
    return read_run(folder)
