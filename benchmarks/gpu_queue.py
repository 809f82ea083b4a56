"""Runs jobs of the papers' tables on one GPU, some commands side by side, until a time limit; resumes and collects.

python -m benchmarks.gpu_jobs                                      # jobs, commands and estimates; a plan of leases
python -m benchmarks.gpu_queue palettes digits --limit 560 --collect OUT            # results are in OUT at any time
python -m benchmarks.gpu_queue palettes digits --limit 1600 --wait 500 --collect OUT    # in the background; repeat it
python -m benchmarks.gpu_queue --merge OUT/results.tar.gz          # add results to the stored tables, on any machine
python -m benchmarks.gpu_queue --pack scratch/gpu                  # packages and data for a machine that lacks them
python -m benchmarks.gpu_queue digits --smoke 2                    # does every command run? two steps each, no GPU

With `--wait`, the queue is started in the background unless it runs already, and goes on when the waiting ends. So one
and the same line starts it, and is repeated to wait on. Copying the compile cache takes up to a minute more, unless
`--no-save-cache` leaves it out. A machine that can install nothing needs the folder of
`--pack`, as PYTHONPATH=scratch/gpu/packages.zip:src and UNWEAVE_DATA=scratch/gpu/data.

Processes share the GPU (by MPS, where it works) and its cores. A command that scores leaves its place to the next one.
Commands of measurements run alone. The next command is the first one that can end in time, by its estimate.
Runs and checkpoints stay in STATE: of ten lanes a checkpoint has 100 to 800 MB, more than is worth copying. So a
command that ends within a lease of the machine costs nothing to interrupt, and one that does not is lost; commands are
chosen small enough. Scores are merged into the stored tables before every command, which may read those of others.
OUT gets results.tar.gz (tables, figures, logs) and status.txt after every command and every minute, and at the end the
compile cache, in parts of at most 15 MB: six files in all. `--cache OUT/cache.tar.gz` unpacks it on the next machine of
the same kind, `--resume OUT/results.tar.gz` leaves out the commands that are done.
"""

from __future__ import annotations

import json
import os
import shlex
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

from benchmarks.gpu_jobs import AFTER, JOBS, MEASUREMENT, estimate_command
from benchmarks.gpu_results import (
    CACHE,
    DATA,
    DONE,
    MEASURED,
    STATUS,
    cache_parts,
    collect,
    load_cache,
    merge_archive,
    merge_folder,
    pack_folder,
    read_done,
    save_cache,
    unpack,
)
from benchmarks.gpu_sharing import shared_gpu
from unweave.cli.terminal import print_text
from unweave.papers.scripts import RESULTS_VARIABLE
from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError, unknown

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
PROCESS = ".pid"  # suffix of the file with a worker's process number


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
    save_cache: bool = True
    """Copy the compile cache to the folder of results at the end."""
    cache: Path | None = None
    """A cache.tar.gz of another machine of the same kind, beside its further parts."""
    merge: Path | None = None
    """Add the tables of a results.tar.gz to STORED, and run nothing."""
    pack: Path | None = None
    """Write a folder with packages and the data of UNWEAVE_DATA for a machine that lacks them, and run nothing."""
    data: tuple[str, ...] = DATA
    """Files and folders below UNWEAVE_DATA that --pack copies; flowers need flowers102."""
    parallel: int = PARALLEL
    """Commands that train side by side."""
    more: str = ""
    """Further flags of every command, e.g. --more="--seeds 10"."""
    smoke: int = 0
    """Train narrow networks for so many steps only, and leave the stored tables alone: results stay in STATE."""
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
        share = "1" if options.smoke else str(max(1, CORES // options.parallel))
        own = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": share, "TORCHINDUCTOR_COMPILE_THREADS": share}
        if is_measurement(command):  # it has the machine to itself
            own = {}
        own[RESULTS_VARIABLE] = str(options.stored)
        output: Any = {"stderr": subprocess.STDOUT, "start_new_session": True, "env": os.environ | own}
        with self.log.open("a") as file:
            self.process = subprocess.Popen(worker_arguments(command, options, self.log), stdout=file, **output)
        self.log.with_suffix(PROCESS).write_text(str(self.process.pid))

    def is_training(self) -> bool:
        """Return whether it uses the GPU: it does not while it scores."""
        return not self.log.with_suffix(SCORING).is_file()

    def signal(self, number: int) -> None:
        """Send a signal to the process and all of its own."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def worker_arguments(command: str, options: Options, log: Path) -> list[str]:
    """Return the program of a worker and its arguments."""
    if is_measurement(command):
        return [*shlex.split(command.removeprefix(MEASUREMENT)), str(options.state / MEASURED)]
    own = str(options.state), str(log.with_suffix(SCORING)), str(options.smoke)
    return [sys.executable, "-m", "benchmarks.gpu_queue_worker", *own, command, *shlex.split(options.more)]


def is_measurement(command: str) -> bool:
    """Return whether a command measures the device, and so must run alone."""
    return command.startswith(MEASUREMENT)


def log_path(command: str, state: Path) -> Path:
    """Return where the output of a command goes."""
    name = "".join(c if c.isalnum() else "-" for c in command.replace("--", ""))
    return state / "logs" / f"{name[:120]}.log"


class Queue:
    """Commands that wait, and the processes of those that run."""

    def __init__(self, options: Options) -> None:
        self.options, self.start, self.collected = options, time.monotonic(), time.monotonic()
        self.commands = list_commands(options)
        self.waiting = [c for c in self.commands if c not in read_done(options.state)]
        self.workers: list[Worker] = []
        self.failed: list[str] = []
        end_leftovers(options.state)
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
        places = self.options.parallel if self.options.smoke else MAX_WORKERS
        while len(self.workers) < places and self.seconds_left() > MIN_SECONDS:
            command = self.next_command()
            if command is None:
                return
            self.waiting.remove(command)
            self.merge()
            self.workers.append(Worker(command, self.options))
            self.report(f"started: {command}")

    def next_command(self) -> str | None:
        """Return the first command that can end in time beside those that run, or the first of all if none runs."""
        training = [worker for worker in self.workers if worker.is_training()]
        ready = [command for command in self.waiting if not self.needed_by(command)]
        if len(training) >= self.options.parallel or any(is_measurement(w.command) for w in self.workers):
            return None
        if self.workers:
            ready = [command for command in ready if not is_measurement(command)]
        busy = sum(max(0.0, self.estimate(w.command) - (time.monotonic() - w.start)) for w in training)
        in_time = (command for command in ready if busy + self.estimate(command) < self.seconds_left())
        return next(in_time, ready[0] if ready and not training else None)

    def estimate(self, command: str) -> float:
        """Return the seconds that a command needs of the GPU; in a smoke test 0."""
        return 0.0 if self.options.smoke else estimate_command(command)

    def needed_by(self, command: str) -> list[str]:
        """Return the commands whose results a command reads, and that still wait or run."""
        job = next(job for job in self.options.jobs if command in JOBS[job])
        before = {c for other in AFTER.get(job, ()) if other in self.options.jobs for c in JOBS[other]}
        return [c for c in (*self.waiting, *(w.command for w in self.workers)) if c in before]

    def finish(self, worker: Worker) -> None:
        """Record the end of a command; one that failed does not stop the others."""
        self.workers.remove(worker)
        worker.log.with_suffix(PROCESS).unlink(missing_ok=True)
        ok, state = worker.process.returncode == 0, self.options.state
        self.report(f"{'done' if ok else 'FAILED'} after {time.monotonic() - worker.start:.0f} s: {worker.command}")
        if ok:
            write_atomic(state / DONE, json.dumps({"commands": [*read_done(state), worker.command]}, indent=2))
            self.merge()
        else:
            self.failed.append(worker.command)
        self.collect()

    def merge(self) -> None:
        """Add the results so far to the stored tables, which commands may read."""
        for text in merge_folder(self.options.state, self.options.stored):
            self.report(f"not merged: {text}")

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


def end_leftovers(state: Path) -> None:
    """End the workers of a queue that was killed itself: they would hold the GPU and the runs of the next ones."""
    for path in (state / "logs").glob(f"*{PROCESS}"):
        with suppress(OSError, ValueError):
            number = int(path.read_text())
            if str(state) in Path(f"/proc/{number}/cmdline").read_text():  # and not another one of this number
                os.killpg(number, signal.SIGKILL)
        path.unlink(missing_ok=True)


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
        failed = merge_archive(options.merge, options.stored)
        for text in failed:
            print_text(f"not merged: {text}")
        return not failed
    if options.pack is not None:
        size = pack_folder(options.pack, Path(os.environ.get("UNWEAVE_DATA", "")), options.data)
        print_text(f"{options.pack} has {size:.0f} MB")
        return True
    if options.smoke:
        options = isolate(options)
    return run_jobs(options)


def isolate(options: Options) -> Options:
    """Return options by which a smoke test has stored tables of its own."""
    state = options.state if options.state != Options.state else Path(f"{options.state}-smoke")
    stored = options.stored if options.stored != STORED else state / "stored"
    return replace(options, state=state, stored=stored)


def run_jobs(options: Options) -> bool:
    """Run jobs, or wait for those that run in the background; return whether all of them are done."""
    if options.resume is not None and not (options.state / DONE).is_file():
        unpack(options.resume, options.state)
    if options.cache is not None and cache_parts(options.cache):
        print_text(f"{load_cache(options.cache)} files of the compile cache were unpacked")
    if options.wait:
        if options.jobs and not is_running(options.state):
            own = replace(options, wait=0.0, collect=None, resume=None, cache=None)
            start_in_background(as_arguments(own), options.state)
        wait_for_queue(options)
        done = not is_running(options.state) and {*list_commands(options)} <= {*read_done(options.state)}
    else:
        with running(options.state), shared_gpu(options.state):
            done = Queue(options).run()
    if options.collect is not None:
        collect(options.state, options.collect)
        if options.save_cache:
            save_cache(options.collect / CACHE)
        if options.wait:
            print_text((options.collect / STATUS).read_text())
    return done


def list_commands(options: Options) -> list[str]:
    """Return the commands of the jobs, in their order."""
    return [command for job in options.jobs for command in JOBS[job]]


def as_arguments(options: Options) -> list[str]:
    """Return the command line of options."""
    named: dict[str, object] = {"limit": options.limit, "parallel": options.parallel, "smoke": options.smoke}
    named |= {"state": options.state, "stored": options.stored}
    more = [f"--more={options.more}"] if options.more else []
    return [*options.jobs, *(word for name, value in named.items() for word in (f"--{name}", str(value))), *more]


if __name__ == "__main__":
    try:
        sys.exit(0 if main(tyro.cli(Options)) else 1)
    except InputError as error:
        sys.exit(str(error))
