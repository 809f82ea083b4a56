"""Execute studies on Ray (extra `ray`): each pack is a task."""

from __future__ import annotations

import importlib
import io
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
from unweave.experiments.run import Run, rows
from unweave.experiments.runner import Notify, RunSettings, is_finished, resumable_groups
from unweave.experiments.study import StudyProgress, execute_missing, packs
from unweave.methods.user_networks import attach_user_code
from unweave.utils.atomic import atomic_folder, make_folder, write_atomic
from unweave.utils.errors import InputError, plural
from unweave.utils.private import private_folder, user_id
from unweave.utils.storage import recipe_hash, source_hash

MAX_RETRIES = 20  # restarts of a pack whose worker or node was lost
MAX_FOLDER_NAME = 80  # characters of the name of a study in that of a node's folder
POLL_SECONDS = 2.0  # between polls of the running tasks


class Cluster(NamedTuple):
    """The cluster that a study runs on."""

    address: str = "local"
    """Address of the head node. "local" starts a cluster on this machine for the study; "auto" uses the running one."""
    bring_home: bool = False
    """Whether nodes lack a shared file system: each uses a local folder and sends its results back."""


LOCAL = Cluster()


def execute_on_ray(
    runs: Iterable[Run],
    out: str | Path,
    *,
    where: Cluster = LOCAL,
    metrics: Sequence[str] = DEFAULT_METRICS,
    evaluated: int = EVALUATION_SIZE,
    budget: float | None = None,
    retry: bool = False,
    notify: Notify = lambda text: None,
) -> pd.DataFrame:
    """Execute runs as `execute` does, with packs as Ray tasks; return one row per finished run.

    `out` is a folder that all nodes share, unless `where.bring_home` is set. A pack requests one CPU, and one GPU if it
    trains networks and the cluster has GPUs. If a worker or a node is lost, its pack is restarted elsewhere, from its
    last checkpoint if that is visible there. All tasks are canceled after `budget` seconds.
    """
    ray = _import_ray()
    by_key, out = {run.key: run for run in runs}, Path(out).absolute()
    catalog.run_metrics(metrics)  # reject unknown metrics before a cluster starts
    clear_failures(out, by_key, missing=not retry)
    make_folder(out)
    is_own_cluster = not ray.is_initialized()
    if is_own_cluster:
        ray.init(
            address=None if where.address == "local" else where.address, log_to_driver=False, configure_logging=False
        )
    try:
        _register_user_classes(by_key.values())
        queue = _TaskQueue(ray, out, tuple(metrics), evaluated, where.bring_home, notify)
        resources = ray.cluster_resources()
        workers = int(resources.get("GPU", 0) or resources.get("CPU", 1))
        queue.run_until_done(_make_packs(by_key, out, workers), StudyProgress(list(by_key), out), budget)
    finally:
        if is_own_cluster:
            ray.shutdown()
    return rows([out / key for key in by_key if (out / key).is_dir()])


def _make_packs(by_key: dict[str, Run], out: Path, workers: int) -> list[list[Run]]:
    """Return packs for a number of workers; interrupted packs stay as they were."""
    groups = resumable_groups(
        list(by_key.values()), [run for run in by_key.values() if not is_finished(out / run.key)], out
    )
    return groups + packs([run for run in by_key.values() if not any(run in group for group in groups)], workers)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed: pip install 'unweave[ray]', or run without --ray") from error
    return ray


def _register_user_classes(runs: Iterable[Run]) -> None:
    """Register classes and networks of user files to be pickled by value: workers cannot import them."""
    by_value: Any = importlib.import_module("ray.cloudpickle").register_pickle_by_value

    for run in runs:
        for thing in (run.data, run.method):
            cls: Any = type(thing)
            source = source_hash(cls)
            if source is not None:
                cls.source_hash_ = source  # workers cannot read its file either
                by_value(sys.modules[cls.__module__])
        for module in attach_user_code(run.method):
            by_value(module)


class _TaskQueue:
    """Queue of Ray tasks, one per pack, that stores the results of finished ones."""

    def __init__(
        self, ray: Any, out: Path, metrics: tuple[str, ...], evaluated: int, bring_home: bool, notify: Notify
    ) -> None:
        self.ray, self.out, self.notify = ray, out, notify
        self.bring_home = bring_home
        self.arguments = (str(out), metrics, evaluated, bring_home)
        self.task = ray.remote(max_retries=MAX_RETRIES)(_execute_pack_on_worker)

    def run_until_done(self, waiting: list[list[Run]], progress: StudyProgress, budget: float | None) -> None:
        """Run tasks until all packs are executed or the budget is spent."""
        gpus = self.ray.cluster_resources().get("GPU", 0)
        running = {self._start(pack, gpus): pack for pack in self._select_unfinished(waiting)}
        while running:
            done, _ = self.ray.wait(list(running), timeout=POLL_SECONDS)
            nodes = sum(node["Alive"] for node in self.ray.nodes())
            self.notify(f"{progress.prefix()}{plural(len(running), 'pack')} left, {plural(nodes, 'node')}")
            if progress.is_over(budget, len(running)):
                for task in running:  # a later study resumes from their checkpoints
                    self.ray.cancel(task)
                return
            for task in done:
                pack = running.pop(task)
                if not self._store_result(task):  # another process works on some of its runs
                    time.sleep(POLL_SECONDS)
                    running[self._start(pack, gpus)] = pack

    def _select_unfinished(self, waiting: list[list[Run]]) -> list[list[Run]]:
        """Return the packs without runs whose results are stored."""
        if not self.bring_home:
            return waiting
        missing = [
            [run for run in pack if not (self.out / run.key).is_dir() and not failure_path(self.out, run.key).is_file()]
            for pack in waiting
        ]
        return [pack for pack in missing if pack]

    def _start(self, pack: list[Run], gpus: float) -> Any:
        on_gpu = gpus and pack[0].method.uses_gpu()
        return self.task.options(num_cpus=1, num_gpus=1 if on_gpu else 0).remote(pack, *self.arguments)

    def _store_result(self, task: Any) -> bool:
        """Store the results that a task returned; return whether its pack is complete."""
        complete, archives, failed = self.ray.get(task)
        for key, archive in archives.items():
            if not (self.out / key).is_dir():
                with atomic_folder(self.out / key) as draft, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                    tar.extractall(draft, filter="data")
        for key, text in failed.items():
            write_atomic(failure_path(self.out, key), text)
        return bool(complete)


def _execute_pack_on_worker(
    pack: list[Run], out: str, metrics: tuple[str, ...], evaluated: int, bring_home: bool
) -> tuple[bool, dict[str, bytes], dict[str, str]]:
    """Execute a pack on a worker; return whether it is complete, archived run folders and failure records by key."""
    torch.set_num_threads(1)  # the task requested one CPU
    place, keys = Path(out), [run.key for run in pack]
    if bring_home:  # one folder per study and node, so that a restarted pack finds its checkpoint
        place = node_folder(out)
        clear_failures(place, keys)  # the driver decided which failures to retry
    complete = execute_missing(
        pack, place, StudyProgress(keys, place), RunSettings(catalog.run_metrics(metrics), evaluated, jobs=1)
    )
    if not bring_home or not complete:
        return complete, {}, {}
    archives = {key: _archive_run(place / key) for key in keys if (place / key).is_dir()}
    records = {key: failure_path(place, key) for key in keys}
    return True, archives, {key: path.read_text() for key, path in records.items() if path.is_file()}


def node_folder(out: str) -> Path:
    """Return the private folder of this node for the runs of a study whose own folder is `out` on the driver."""
    name = f"{Path(out).name[:MAX_FOLDER_NAME]}-{recipe_hash([out, socket.gethostname()])}"
    return private_folder(Path(tempfile.gettempdir()) / f"unweave-{user_id()}") / name


def _archive_run(folder: Path) -> bytes:
    """Return the files of a run folder as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    return buffer.getvalue()
