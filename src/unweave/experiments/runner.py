"""How runs come into being: trained together, scored, each written into a folder that appears whole or not at all."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Generator

from unweave.cli.terminal import bar
from unweave.data.core import FactorData, Sample
from unweave.experiments.evaluation import EVALUATION_SEED, EVALUATION_SIZE
from unweave.experiments.failures import Errors
from unweave.experiments.run import EvaluationSet, FinishedRun, Run, read_run, write_run
from unweave.methods.base import Method, read_config
from unweave.methods.neural import Neural, fit_pack
from unweave.metrics.contract import Metric
from unweave.metrics.evaluate import score
from unweave.training.checkpoint import read_note, read_seconds
from unweave.training.loop import Failure
from unweave.utils.errors import InputError, first_line, plural
from unweave.utils.storage import atomic_folder, no_room, read_json, write_atomic
from unweave.utils.validation import check_finite, out_of_memory

PATIENT = 2.0  # seconds of scoring a pack after which other processors are asked to help

M = TypeVar("M", bound=Method)
Notify = Callable[[str], None]


class RunSettings(NamedTuple):
    """What is done with every run of a study."""

    scorers: dict[str, Metric]
    evaluated: int = EVALUATION_SIZE
    """observations to score on"""
    notify: Notify = lambda text: None
    jobs: int = -1
    """processes that score a pack; -1: all processors"""
    head: str = ""
    """what stands before everything that is said: how far the study is"""

    def say(self, text: str) -> None:
        """Tell whoever watches."""
        self.notify(self.head + text)

    def judged(self, run: Run, data: FactorData) -> Sample:
        """What a run is scored on."""
        return run.data.evaluation_data(data).collect(self.evaluated, Generator().manual_seed(EVALUATION_SEED))


def execute_run(run: Run, folder: Path, scorers: dict[str, Metric], notify: Notify = lambda text: None) -> FinishedRun:
    """One run into one folder, which appears whole or not at all. A finished run is not repeated."""
    for error in execute_pack([run], [folder], RunSettings(scorers, notify=notify)).values():
        raise error
    return read_run(folder)


def execute_pack(pack: Sequence[Run], folders: Sequence[Path], how: RunSettings) -> Errors:
    """Runs that can be trained together, each into its own folder; what went wrong with single ones is returned."""
    places = {run.key: folder for run, folder in zip(pack, folders, strict=True)}
    missing = [run for run in pack if not is_finished(places[run.key])]
    for run in pack:
        if run not in missing:
            _finished(run, places[run.key], how)
    errors: Errors = {}
    groups = resumable_groups(pack, missing, folders[0].parent)
    left = [run for run in missing if not any(run in group for group in groups)]
    for group in [*groups, *([left] if left else [])]:
        errors |= _train(group, places, how)
    return errors


def resumable_groups(pack: Sequence[Run], missing: Sequence[Run], parent: Path) -> list[list[Run]]:
    """The runs whose training began, in the groups in which it did, as checkpoints tell.

    A checkpoint that none of the missing ones needs is removed.
    """
    known, left, groups = {run.key: run for run in pack}, {run.key: run for run in missing}, []
    for path in sorted(parent.glob(".*.checkpoint")):
        keys = read_note(path).split()
        if not keys or not set(keys) <= set(known):
            continue
        if any(key in left for key in keys):
            groups.append([known[key] for key in keys])
            left = {key: run for key, run in left.items() if key not in keys}
        else:
            path.unlink(missing_ok=True)
    return groups


def _train(pack: list[Run], places: dict[str, Path], how: RunSettings) -> Errors:
    """Train runs together, and write those that are not there yet.

    What was trained is kept in a checkpoint until all of it is written, so that a crash in between costs nothing.
    """
    first, title = pack[0], pack[0].title() if len(pack) == 1 else f"{len(pack)} models, {pack[0].title()}"
    how.say(f"{title}: loading data")
    data = first.data.load()
    draw = how.judged(first, data)
    check_finite(draw.x.numpy(force=True), what=first.data.title())
    keys = " ".join(run.key for run in pack)
    absent = [run for run in pack if not is_finished(places[run.key])]
    place = places[absent[0].key]
    checkpoint = place.parent / f".{hashlib.sha256(keys.encode()).hexdigest()[:12]}.checkpoint"
    for left in checkpoint.parent.glob(f".{checkpoint.name}.*.tmp"):  # of a process that was killed while it wrote
        left.unlink(missing_ok=True)
    with atomic_folder(place) as draft:
        shutil.rmtree(draft)  # a place that cannot be written to must not cost the learning
    how.say(f"{title}: learning; judged by {_describe(draw, data)}")
    start = time.perf_counter()
    failures = _learned(pack, data, checkpoint, keys, how.head + title)
    if failures is None:
        halves = [absent[: len(absent) // 2], absent[len(absent) // 2 :]]
        how.say(f"{title}: more than fits into the memory of the device: one half after the other")
        return {key: error for half in halves if half for key, error in _train(half, places, how).items()}
    seconds = max(time.perf_counter() - start, read_seconds(checkpoint)) / len(pack)  # with those before a stop
    lost = {run.key: InputError(f.text()) for run, f in zip(pack, failures, strict=True) if f is not None}
    able = [run for run in absent if run.key not in lost]
    errors = _score(able, places, how, EvaluationSet(data, draw, seconds), threads=1 if len(pack) > 1 else None)
    if not errors:
        checkpoint.unlink(missing_ok=True)
    return lost | errors


def _score(
    pack: list[Run], places: dict[str, Path], how: RunSettings, judged: EvaluationSet, threads: int | None
) -> Errors:
    """Score and write what was trained; a run that cannot be scored does not stop the others."""
    errors: Errors = {}
    for run, codes, found in _scored(pack, how, judged, threads):
        if isinstance(found, Exception):
            errors[run.key] = found
            continue
        try:
            with atomic_folder(places[run.key]) as draft:
                write_run(run, draft, judged, codes, found)
        except Exception as error:
            if no_room(error):  # that would stop the others as well
                raise
            errors[run.key] = error
    return errors


def _scored(
    pack: list[Run], how: RunSettings, judged: EvaluationSet, threads: int | None
) -> Iterator[tuple[Run, Any, dict[str, float | None] | Exception]]:
    """Codes and scores of every run, or what went wrong; where that takes long, of several at once."""
    rest, start = list(pack), time.perf_counter()
    asked = {scorer.facts.truth for scorer in how.scorers.values()}
    # As an array the observations are shared by all processes, where each would get its own copy of a tensor.
    x = judged.draw.x.numpy(force=True) if "inputs" in asked else None
    told = x, judged.draw.c, judged.data.factors, how.scorers, threads
    while rest and (len(rest) == 1 or time.perf_counter() - start < PATIENT or threads is None):
        run = rest.pop(0)
        how.say(f"{run.title()}: scoring")
        codes = _codes(run, judged)
        yield run, codes, _measured(run.method, codes, told)
    if not rest:
        return
    how.say(f"{rest[0].title()}: scoring {len(rest)} more, several at once")
    every = [_codes(run, judged) for run in rest]
    able = [run.method if "decoder" in asked else None for run in rest]
    jobs = (delayed(_elsewhere)(os.getpid(), method, z, told) for method, z in zip(able, every, strict=True))
    found: list[tuple[Any, list[str]]] = []
    try:
        found += Parallel(n_jobs=how.jobs)(jobs)
    except Exception as error:  # a process was killed, or a metric cannot be sent to one: it can be done here
        text = f"scores could not be computed by several processes ({type(error).__name__}): one does it"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        found = [(_measured(run.method, z, told), []) for run, z in zip(rest, every, strict=True)]
    for run, z, (scores, said) in zip(rest, every, found, strict=True):
        for text in said:
            warnings.warn(f"{run.key}: {text}", stacklevel=2)
        yield run, z, scores


def _elsewhere(parent: int, method: Method | None, codes: Any, told: Any) -> tuple[Any, list[str]]:
    """Scores, and what was warned of, from a process that ends with the one that asked."""
    if os.getpid() != parent:  # on a single processor it is no other process
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        return _measured(method, codes, told), sorted({str(w.message) for w in caught if w.category is UserWarning})


def _watch(parent: int) -> None:
    """A killed process cannot tell its helpers to stop."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _codes(run: Run, judged: EvaluationSet) -> Any:
    """The codes of what runs are judged by, or why there are none."""
    try:
        return run.method.transform(judged.draw.x)
    except Exception as error:
        return error


def _measured(method: Method | None, codes: Any, told: Any) -> dict[str, float | None] | Exception:
    """Every score of some codes, or what went wrong.

    Runs of a pack are scored by one thread each, wherever it is done, so that it makes no difference where.
    """
    if isinstance(codes, Exception):
        return codes
    x, c, factors, scorers, threads = told
    before = torch.get_num_threads()
    try:
        with threadpool_limits(threads):
            torch.set_num_threads(threads or before)
            return score(Sample(x, c), codes, factors, scorers, method)
    except Exception as error:
        return error
    finally:
        torch.set_num_threads(before)


def fit_or_load(method: M, data: FactorData, folder: Path) -> M:
    """The method fitted to data, and kept in a folder; one that is there with the same settings is loaded instead."""
    if (folder / "config.json").is_file():
        kept = type(method).load(folder)
        if repr(kept.get_params()) == repr(method.get_params()):
            return kept
        shutil.rmtree(folder)
    method.fit(data)
    method.save(folder)
    return method


def is_finished(folder: Path) -> bool:
    """Whether something stands where a run is to be."""
    return folder.is_file() or (folder.is_dir() and any(folder.iterdir()))


def _learned(
    pack: list[Run], data: FactorData, checkpoint: Path, note: str, title: str
) -> Sequence[Failure | None] | None:
    """Train a pack; None where several models are more than fits into the memory of the device.

    One that did fit, since it has a checkpoint, goes on from there: others may have taken the memory meanwhile.
    """
    wrong = ""
    for _ in range(2):
        try:
            return _learn(pack, data, checkpoint, note, title)
        except Exception as error:
            if not out_of_memory(error):
                raise
            wrong = first_line(error)
        finally:
            _tidy()
        if not checkpoint.is_file():
            break
    checkpoint.unlink(missing_ok=True)
    if len(pack) == 1:
        text = f"{pack[0].title()} does not fit into the memory of the device ({wrong})"
        raise InputError(f"{text}: a smaller batch_size, or device='cpu'")
    return None


def _tidy() -> None:
    """Give back what training took of a GPU's memory: scoring takes long, and others may wait."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()  # of a captured graph, too
        torch.cuda.empty_cache()


def _learn(pack: list[Run], data: FactorData, checkpoint: Path, note: str, title: str) -> Sequence[Failure | None]:
    methods = [run.method for run in pack if isinstance(run.method, Neural)]
    if not methods:
        pack[0].method.fit(data)
        return [None]
    with bar(title) as report:
        return fit_pack(methods, data, checkpoint=checkpoint, note=note, callback=report)


def _finished(run: Run, folder: Path, how: RunSettings) -> FinishedRun:
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
    missing = {name: s for name, s in how.scorers.items() if name not in done.asked}
    if not missing:
        how.say(f"{run.title()}: finished before, kept ({folder})")
        return done
    how.say(f"{run.title()}: finished before; scoring {', '.join(missing)}")
    data = run.data.load()
    decoding = any(scorer.facts.truth == "decoder" for scorer in missing.values())
    model = type(run.method).load(folder) if decoding else None
    draw = how._replace(evaluated=len(done.codes)).judged(run, data)
    scores = read_json(folder / "scores.json") | score(draw, done.codes, data.factors, missing, model)
    write_atomic(folder / "scores.json", json.dumps(scores, indent=2) + "\n")
    return read_run(folder)


def _describe(draw: Sample, data: FactorData) -> str:
    return f"{plural(len(draw.x), 'observation')} of shape {' x '.join(map(str, data.shape))}"
