"""The same studies on Ray (extra `ray`): packs as tasks, on this machine, a cluster, or one that is there already."""

from __future__ import annotations

import importlib
import io
import os
import socket
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from unweave import catalog
from unweave.experiments.evaluation import DEFAULT_METRICS, EVALUATION_SIZE
from unweave.experiments.failures import clear_failures, failure_path
from unweave.experiments.pack_training import resumable_groups
from unweave.experiments.run import Run, rows
from unweave.experiments.runner import Notify, RunSettings, is_finished
from unweave.experiments.study import StudyProgress, execute_missing, packs
from unweave.methods.neural import Neural
from unweave.utils.errors import InputError, plural
from unweave.utils.source import source_hash
from unweave.utils.storage import atomic_folder, write_atomic

RETRIES = 20  # times that a pack is begun again when its worker or its node is gone
GLANCE = 2.0  # seconds between looks at the cluster


class Cluster(NamedTuple):
    """Where a study runs."""

    address: str = "local"
    """ "local": a cluster on this machine, for the time of the study; "auto": the one that is there; or its head's"""
    bring_home: bool = False
    """nodes share no folder with this machine: each works in one of its own, and sends its results"""


HERE = Cluster()


def execute_on_ray(
    runs: Iterable[Run],
    out: str | Path,
    *,
    where: Cluster = HERE,
    metrics: Sequence[str] = DEFAULT_METRICS,
    evaluated: int = EVALUATION_SIZE,
    budget: float | None = None,
    retry: bool = False,
    notify: Notify = lambda text: None,
) -> pd.DataFrame:
    """`execute` with packs as Ray tasks; one row per run comes back.

    `out` is a folder that all nodes share, unless results are brought home. A pack asks for one CPU, and for a GPU
    where the cluster has some and it trains networks. When a worker or a node is gone its pack is begun again
    elsewhere, and goes on from its last checkpoint where it can see it. What failed is recorded as by `execute`. After
    a `budget` in seconds everything is stopped.
    """
    ray = _ray()
    every, out = {run.key: run for run in runs}, Path(out).absolute()
    catalog.run_metrics(metrics)  # before anything is started
    clear_failures(out, every, missing=not retry)
    out.mkdir(parents=True, exist_ok=True)
    ours = not ray.is_initialized()
    if ours:
        ray.init(
            address=None if where.address == "local" else where.address, log_to_driver=False, configure_logging=False
        )
    try:
        _carry(every.values())
        work = _Work(ray, out, tuple(metrics), evaluated, where.bring_home, notify)
        resources = ray.cluster_resources()
        workers = int(resources.get("GPU", 0) or resources.get("CPU", 1))
        work.follow(_spread(every, out, workers), StudyProgress(list(every), out), budget)
    finally:
        if ours:
            ray.shutdown()
    return rows([out / key for key in every if (out / key).is_dir()])


def _spread(every: dict[str, Run], out: Path, workers: int) -> list[list[Run]]:
    """Packs for so many workers; what was begun goes on as it began, whoever works now."""
    groups = resumable_groups(
        list(every.values()), [run for run in every.values() if not is_finished(out / run.key)], out
    )
    return groups + packs([run for run in every.values() if not any(run in group for group in groups)], workers)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed: pip install 'unweave[ray]', or run without --ray") from error
    return ray


def _carry(runs: Iterable[Run]) -> None:
    """Classes out of a user's file travel with the task: workers cannot import them."""
    by_value: Any = importlib.import_module("ray.cloudpickle").register_pickle_by_value

    for run in runs:
        for thing in (run.data, run.method):
            cls: Any = type(thing)
            source = source_hash(cls)
            if source is not None:
                cls.source_hash_ = source  # workers cannot read its file either
                by_value(sys.modules[cls.__module__])


class _Work:
    """Tasks that are under way, and what becomes of them."""

    def __init__(
        self, ray: Any, out: Path, metrics: tuple[str, ...], evaluated: int, bring_home: bool, notify: Notify
    ) -> None:
        self.ray, self.out, self.notify = ray, out, notify
        self.what = (str(out), metrics, evaluated, bring_home)
        self.task = ray.remote(max_retries=RETRIES)(_settled)

    def follow(self, waiting: list[list[Run]], tally: StudyProgress, budget: float | None) -> None:
        """Until every pack is settled, or the time is over."""
        gpus = self.ray.cluster_resources().get("GPU", 0)
        under_way = {self._begin(pack, gpus): pack for pack in self._open(waiting)}
        while under_way:
            done, _ = self.ray.wait(list(under_way), timeout=GLANCE)
            nodes = sum(node["Alive"] for node in self.ray.nodes())
            self.notify(f"{tally.prefix()}{plural(len(under_way), 'pack')} left, {plural(nodes, 'node')}")
            if tally.is_over(budget, len(under_way)):
                for task in under_way:  # what is under way stops at its last checkpoint
                    self.ray.cancel(task)
                return
            for task in done:
                pack = under_way.pop(task)
                if not self._take(task):  # another process has some of it
                    time.sleep(GLANCE)
                    under_way[self._begin(pack, gpus)] = pack

    def _open(self, waiting: list[list[Run]]) -> list[list[Run]]:
        """What is to be done here: of results that are sent, what has arrived is not asked for again."""
        if not self.what[3]:
            return waiting
        missing = [
            [run for run in pack if not (self.out / run.key).is_dir() and not failure_path(self.out, run.key).is_file()]
            for pack in waiting
        ]
        return [pack for pack in missing if pack]

    def _begin(self, pack: list[Run], gpus: float) -> Any:
        on_gpu = gpus and isinstance(pack[0].method, Neural) and pack[0].method.device != "cpu"
        return self.task.options(num_cpus=1, num_gpus=1 if on_gpu else 0).remote(pack, *self.what)

    def _take(self, task: Any) -> bool:
        """Whether a pack is settled; what was sent is put where it belongs."""
        settled, parcels, failed = self.ray.get(task)
        for key, parcel in parcels.items():
            if not (self.out / key).is_dir():
                with atomic_folder(self.out / key) as draft, tarfile.open(fileobj=io.BytesIO(parcel)) as tar:
                    tar.extractall(draft, filter="data")
        for key, text in failed.items():
            write_atomic(failure_path(self.out, key), text)
        return bool(settled)


def _settled(
    pack: list[Run], out: str, metrics: tuple[str, ...], evaluated: int, bring_home: bool
) -> tuple[bool, dict[str, bytes], dict[str, str]]:
    """On a worker: do what is missing of a pack; whether it is settled, and what is to be sent: runs and failures."""
    torch.set_num_threads(1)  # of the one CPU that was asked for
    place, keys = Path(out), [run.key for run in pack]
    if bring_home:  # the same folder for the same study, so that what begins again on this node finds its checkpoint
        name = out.replace(os.sep, "-")
        place = Path(tempfile.gettempdir()) / f"unweave-{os.getuid()}{name}-{socket.gethostname()}"
        clear_failures(place, keys)  # whether they are tried again was decided where the study is
    settled = execute_missing(
        pack, place, StudyProgress(keys, place), RunSettings(catalog.run_metrics(metrics), evaluated, jobs=1)
    )
    if not bring_home or not settled:
        return settled, {}, {}
    parcels = {key: _packed(place / key) for key in keys if (place / key).is_dir()}
    records = {key: failure_path(place, key) for key in keys}
    return True, parcels, {key: path.read_text() for key, path in records.items() if path.is_file()}


def _packed(folder: Path) -> bytes:
    """A run folder as one piece."""
    piece = io.BytesIO()
    with tarfile.open(fileobj=piece, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    return piece.getvalue()
