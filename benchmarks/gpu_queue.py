"""Runs jobs of the papers' tables on one GPU, some commands side by side, until a time limit; resumes and collects.

python -m benchmarks.gpu_jobs                                      # jobs, commands and estimates
python -m benchmarks.gpu_queue palettes digits --limit 560 --collect OUT            # results are in OUT at any time
python -m benchmarks.gpu_queue palettes digits --limit 1600 --wait 560 --collect OUT    # in the background; repeat it
python -m benchmarks.gpu_queue --merge OUT/results.tar.gz          # add results to the stored tables, on any machine
python -m benchmarks.gpu_queue --pack scratch/gpu                  # packages and data for a machine that lacks them

With `--wait`, the queue is started in the background unless it runs already, and goes on when the waiting ends. So one
and the same line starts it, and is repeated to wait on. A machine that can install nothing needs the folder of
`--pack`, as PYTHONPATH=scratch/gpu/packages:src and UNWEAVE_DATA=scratch/gpu/data.

Processes share the GPU (by MPS, where it works) and its cores. A command that scores leaves its place to the next one.
Runs and checkpoints stay in STATE: of ten lanes a checkpoint has 100 to 800 MB, more than is worth copying. So a
command that ends within a lease of the machine costs nothing to interrupt, and one that does not is lost; commands are
chosen small enough. Scores are merged into the stored tables before every command, which may read those of others.
OUT gets results.tar.gz (tables, figures, logs) and status.txt after every command, and the compile cache at the end,
where it is small enough (`unweave cache unpack`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from benchmarks.gpu_jobs import AFTER, JOBS
from benchmarks.gpu_results import (
    CACHE,
    DONE,
    STATUS,
    collect,
    merge_archive,
    merge_folder,
    pack_folder,
    read_done,
    save_cache,
    unpack,
)
from benchmarks.gpu_sharing import shared_gpu
from unweave.cli.terminal import print_text
from unweave.utils.errors import InputError, unknown
from unweave.utils.storage import write_json

STORED = Path("src/unweave/papers")
PARALLEL = 3  # commands that train or compile
MAX_WORKERS = 8  # with those that score
MIN_SECONDS = 45.0  # to start a command
POLL_INTERVAL = 0.5  # seconds between checks of the processes
COLLECT_INTERVAL = 60.0  # seconds between copies of logs to OUT
GRACE_SECONDS = 5.0  # for processes to end before they are killed
START_SECONDS = 90.0  # for a queue in the background to report
CORES = os.cpu_count() or 1
SCORING = ".scoring"  # suffix of the file that a worker writes beside its log


@dataclass(kw_only=True)
class Options:
    """A queue of jobs on one GPU."""

    jobs: tyro.conf.Positional[tuple[str, ...]] = ()
    """Jobs to run, in this order; see `python -m benchmarks.gpu_jobs`."""
    limit: float = 560.0
    """Seconds after which everything is stopped."""
    wait: float = 0.0
    """Run the jobs in the background, unless they run already, and wait at most so many seconds."""
    collect: Path | None = None
    """Folder for the results."""
    resume: Path | None = None
    """A results.tar.gz of another machine: its commands are not repeated."""
    merge: Path | None = None
    """Add the tables of a results.tar.gz to STORED, and run nothing."""
    pack: Path | None = None
    """Write a folder with packages and the data of UNWEAVE_DATA for a machine that lacks them, and run nothing."""
    parallel: int = PARALLEL
    """Commands that train side by side."""
    more: str = ""
    """Further flags of every command, e.g. "--scale small --steps 4" to see that a job runs."""
    state: Path = Path("/tmp/unweave-queue")
    """Folder of runs, checkpoints and logs."""
    stored: Path = STORED
    """Folder of the stored tables."""


# Processes ------------------------------------------------------------------------------------------------------------


class Worker:
    """A process that runs one command."""

    def __init__(self, command: str, options: Options) -> None:
        self.command, self.log, self.start = command, log_path(command, options.state), time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.with_suffix(SCORING).unlink(missing_ok=True)
        share = str(max(1, CORES // options.parallel))
        threads = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": share, "TORCHINDUCTOR_COMPILE_THREADS": share}
        output: Any = {"stderr": subprocess.STDOUT, "start_new_session": True, "env": os.environ | threads}
        with self.log.open("a") as file:
            self.process = subprocess.Popen(worker_arguments(command, options, self.log), stdout=file, **output)

    def is_training(self) -> bool:
        """Return whether it uses the GPU: it does not while it scores."""
        return not self.log.with_suffix(SCORING).is_file()

    def signal(self, number: int) -> None:
        """Send a signal to the process and all of its own."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def worker_arguments(command: str, options: Options, log: Path) -> list[str]:
    """Return the program of a worker and its arguments."""
    flag = str(log.with_suffix(SCORING))
    return [sys.executable, "-m", "benchmarks.gpu_queue_worker", str(options.state), flag, command, options.more]


def log_path(command: str, state: Path) -> Path:
    """Return where the output of a command goes."""
    name = "".join(c if c.isalnum() else "-" for c in command.replace("--", ""))
    return state / "logs" / f"{name[:120]}.log"


class Queue:
    """Commands that wait, and the processes of those that run."""

    def __init__(self, options: Options) -> None:
        self.options, self.start, self.collected = options, time.monotonic(), time.monotonic()
        self.commands = [command for job in options.jobs for command in JOBS[job]]
        self.waiting = [c for c in self.commands if c not in read_done(options.state)]
        self.workers: list[Worker] = []
        self.failed: list[str] = []
        for record in options.state.rglob(".failed/*.json"):  # runs that failed are tried again
            record.unlink()

    def run(self) -> bool:
        """Run what is missing until the limit; return whether everything is done."""
        try:
            while (self.waiting or self.workers) and self.seconds_left() > 0:
                self.start_workers()
                if not self.workers:
                    break  # too little time to start another one
                time.sleep(POLL_INTERVAL)
                for worker in [w for w in self.workers if w.process.poll() is not None]:
                    self.finish(worker)
                if time.monotonic() - self.collected > COLLECT_INTERVAL:
                    self.collect()
        finally:
            stop(self.workers)
            for worker in self.workers:
                self.report(f"stopped after {time.monotonic() - worker.start:.0f} s: {worker.command}")
        left = len(self.failed) + len(self.workers) + len(self.waiting)
        self.report("all done" if not left else f"{left} of {len(self.commands)} commands are left")
        self.collect()
        return not left

    def seconds_left(self) -> float:
        """Return the seconds until the limit."""
        return self.options.limit - (time.monotonic() - self.start)

    def start_workers(self) -> None:
        """Start commands while there are places for them."""
        while len(self.workers) < MAX_WORKERS and self.seconds_left() > MIN_SECONDS:
            ready = [command for command in self.waiting if not self.needed_by(command)]
            if not ready or sum(worker.is_training() for worker in self.workers) >= self.options.parallel:
                return
            self.waiting.remove(ready[0])
            merge_folder(self.options.state, self.options.stored)
            self.workers.append(Worker(ready[0], self.options))
            self.report(f"started: {ready[0]}")

    def needed_by(self, command: str) -> list[str]:
        """Return the commands whose results a command reads, and that still wait or run."""
        job = next(job for job in self.options.jobs if command in JOBS[job])
        before = {c for other in AFTER.get(job, ()) if other in self.options.jobs for c in JOBS[other]}
        return [c for c in (*self.waiting, *(w.command for w in self.workers)) if c in before]

    def finish(self, worker: Worker) -> None:
        """Record the end of a command; one that failed does not stop the others."""
        self.workers.remove(worker)
        ok, state = worker.process.returncode == 0, self.options.state
        self.report(f"{'done' if ok else 'FAILED'} after {time.monotonic() - worker.start:.0f} s: {worker.command}")
        if ok:
            write_json(state / DONE, {"commands": [*read_done(state), worker.command]})
            merge_folder(state, self.options.stored)
        else:
            self.failed.append(worker.command)
        self.collect()

    def collect(self) -> None:
        """Write the results so far to OUT."""
        self.collected = time.monotonic()
        if self.options.collect is not None:
            collect(self.options.state, self.options.collect)

    def report(self, text: str) -> None:
        """Print a line, and add it to the status."""
        line = f"{time.strftime('%H:%M:%S')} {text}"
        print_text(line)
        with (self.options.state / STATUS).open("a") as file:
            file.write(line + "\n")


def stop(workers: list[Worker]) -> None:
    """End processes, all at once; they resume from their checkpoints."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for worker in workers:
            worker.signal(number)
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end and any(w.process.poll() is None for w in workers):
            time.sleep(0.05)


# The queue itself -----------------------------------------------------------------------------------------------------


@contextmanager
def running(state: Path) -> Iterator[None]:
    """Write our process number for as long as the queue runs."""
    if is_running(state):
        raise InputError(f"a queue runs on {state} already: wait for it with --wait 560, or choose another --state")
    state.mkdir(parents=True, exist_ok=True)
    path = state / "running"
    path.write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers are stopped, too
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def is_running(state: Path) -> bool:
    """Return whether a queue runs on this state."""
    try:
        os.kill(int((state / "running").read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def start_in_background(arguments: list[str], state: Path) -> None:
    """Start a queue in a session of its own, so that it goes on when this process ends."""
    log = state / "logs" / "queue.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        program = [sys.executable, "-m", "benchmarks.gpu_queue", *arguments]
        child = subprocess.Popen(program, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and child.poll() is None and not is_running(state):
        time.sleep(POLL_INTERVAL)


def wait_for_queue(options: Options) -> None:
    """Wait until a queue that runs elsewhere ends, and collect its results meanwhile."""
    end, collected = time.monotonic() + options.wait, time.monotonic()
    while is_running(options.state) and time.monotonic() < end:
        time.sleep(POLL_INTERVAL)
        if options.collect is not None and time.monotonic() - collected > COLLECT_INTERVAL:
            collect(options.state, options.collect)
            collected = time.monotonic()


def main(options: Options) -> bool:
    """Run, wait, merge or pack."""
    wrong = [job for job in options.jobs if job not in JOBS]
    if wrong:
        raise unknown("job", wrong[0], JOBS)
    if options.merge is not None:
        merge_archive(options.merge, options.stored)
        return True
    if options.pack is not None:
        pack_folder(options.pack, Path(os.environ.get("UNWEAVE_DATA", "")))
        return True
    if options.resume is not None and not (options.state / DONE).is_file():
        unpack(options.resume, options.state)
    if options.wait:
        if options.jobs and not is_running(options.state):
            own = replace(options, wait=0.0, collect=None, resume=None)
            start_in_background(as_arguments(own), options.state)
        wait_for_queue(options)
        done = not is_running(options.state)
    else:
        with running(options.state), shared_gpu(options.state):
            done = Queue(options).run()
    if options.collect is not None:
        collect(options.state, options.collect)
        save_cache(options.collect / CACHE)
    return done


def as_arguments(options: Options) -> list[str]:
    """Return the command line of options."""
    named = {"limit": options.limit, "parallel": options.parallel, "state": options.state, "stored": options.stored}
    more = ["--more", options.more] if options.more else []
    return [*options.jobs, *(word for name, value in named.items() for word in (f"--{name}", str(value))), *more]


if __name__ == "__main__":
    try:
        main(tyro.cli(Options))
    except InputError as error:
        sys.exit(str(error))
