"""Runs jobs of the papers' tables on one GPU, some commands side by side, until a time limit; resumes and collects.

python -m benchmarks.gpu_jobs                                     # jobs, commands and estimates
python -m benchmarks.gpu_queue palettes --limit 560 --collect OUT # run a job, write results to OUT; repeat to resume
setsid python -m benchmarks.gpu_queue digits --limit 1600 &       # goes on when the shell ends
python -m benchmarks.gpu_queue --wait 560 --collect OUT           # wait for it at most so long, write results to OUT
python -m benchmarks.gpu_queue --merge OUT/results.tar.gz         # add results to the stored tables, on any machine

Minutes of the jobs, alone on an H200 (`gpu_jobs`, from measured and guessed rates): palettes 6, digits 24,
table-3-baselines 61, table-3-ours 58, table-4 58, classification 6, ablation 8; cmnist 25, dsprites-factor-vae 8,
dsprites-ours 34, shapes3d-factor-vae 10, shapes3d-ours 45, figure-3 13, other-baselines 46, strengths 54.

Processes share the GPU (by MPS, where it can be started) and its cores. Runs and checkpoints stay in STATE: of ten
lanes a checkpoint has 100 to 800 MB, more than is worth copying. So a command that ends within a lease of the machine
costs nothing to interrupt, and one that does not is lost; commands are chosen small enough. Scores are merged into the
stored tables after every command, so that a later command finds them. OUT gets results.tar.gz (tables, figures, logs),
status.txt, and the compile cache where it is small enough; unpack it with `unweave cache unpack`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import tyro

from benchmarks.gpu_jobs import JOBS
from unweave.cli.terminal import print_text
from unweave.papers.folders import RECORD_FILE
from unweave.papers.verdicts import merge_rows
from unweave.training import compile_cache
from unweave.utils.errors import InputError, unknown
from unweave.utils.storage import read_json, write_atomic, write_json

STORED = Path("src/unweave/papers")
KEYS = ("palette", "data", "name", "method", "part", "gamma", "seed")  # of rows in the papers' tables
PARALLEL = 3  # commands: one trains, one compiles, one scores
MIN_SECONDS = 45.0  # to start a command
POLL_INTERVAL = 0.5  # seconds between checks of the processes
GRACE_SECONDS = 5.0  # for a process to end before it is killed
MAX_CACHE_MB = 40.0  # a file of a third of it, once compressed
CORES = os.cpu_count() or 1


@dataclass(kw_only=True)
class Options:
    """A queue of jobs on one GPU."""

    jobs: tyro.conf.Positional[tuple[str, ...]] = ()
    """Jobs to run, in this order; see `python -m benchmarks.gpu_jobs`."""
    limit: float = 560.0
    """Seconds after which everything is stopped."""
    wait: float = 0.0
    """Wait at most so many seconds for a queue that runs elsewhere."""
    collect: Path | None = None
    """Folder for the results, at the end."""
    merge: Path | None = None
    """Add the tables of a results.tar.gz to STORED, and run nothing."""
    parallel: int = PARALLEL
    """Commands side by side."""
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
        share = str(max(1, CORES // options.parallel))
        threads = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": share, "TORCHINDUCTOR_COMPILE_THREADS": share}
        output: Any = {"stderr": subprocess.STDOUT, "start_new_session": True, "env": os.environ | threads}
        with self.log.open("a") as file:
            self.process = subprocess.Popen(worker_arguments(command, options), stdout=file, **output)

    def stop(self) -> None:
        """End the process and all of its own; it resumes from its checkpoint."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(GRACE_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def worker_arguments(command: str, options: Options) -> list[str]:
    """Return the program of a worker and its arguments."""
    return [sys.executable, "-m", "benchmarks.gpu_queue_worker", str(options.state), command, options.more]


def log_path(command: str, state: Path) -> Path:
    """Return where the output of a command goes."""
    name = "".join(c if c.isalnum() else "-" for c in command.replace("--", ""))
    return state / "logs" / f"{name[:120]}.log"


def run_queue(options: Options) -> bool:
    """Run what is missing of the jobs until the limit; return whether everything is done."""
    commands = [command for job in options.jobs for command in JOBS[job]]
    waiting, start = [c for c in commands if c not in read_done(options.state)], time.monotonic()
    workers: list[Worker] = []
    failed: list[str] = []
    try:
        while (waiting or workers) and (left := options.limit - (time.monotonic() - start)) > 0:
            while waiting and len(workers) < options.parallel and left > MIN_SECONDS:
                workers.append(Worker(waiting.pop(0), options))
            if not workers:
                break  # too little time to start another one
            time.sleep(POLL_INTERVAL)
            for worker in [w for w in workers if w.process.poll() is not None]:
                workers.remove(worker)
                ok = worker.process.returncode == 0
                seconds = time.monotonic() - worker.start
                report(f"{'done' if ok else 'FAILED'} after {seconds:.0f} s: {worker.command}", options)
                failed += [] if ok else [worker.command]
                if ok:
                    write_json(options.state / "done.json", {"commands": [*read_done(options.state), worker.command]})
                    merge_folder(options.state, options.stored)
    finally:
        for worker in workers:
            worker.stop()
            report(f"stopped after {time.monotonic() - worker.start:.0f} s: {worker.command}", options)
    unfinished = [*failed, *(w.command for w in workers), *waiting]
    report("all done" if not unfinished else f"{len(unfinished)} of {len(commands)} commands are left", options)
    return not unfinished


def read_done(state: Path) -> list[str]:
    """Return the commands that were run to their end."""
    path = state / "done.json"
    return list(read_json(path)["commands"]) if path.is_file() else []


def report(text: str, options: Options) -> None:
    """Print a line, and add it to the status."""
    line = f"{time.strftime('%H:%M:%S')} {text}"
    print_text(line)
    with (options.state / "status.txt").open("a") as file:
        file.write(line + "\n")


@contextmanager
def shared_gpu(state: Path) -> Iterator[None]:
    """Start the daemon by which processes share a GPU; without one they take turns."""
    program = shutil.which("nvidia-cuda-mps-control")
    if program is None:
        yield
        return
    for name in ("PIPE", "LOG"):
        folder = state / f"mps-{name.lower()}"
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[f"CUDA_MPS_{name}_DIRECTORY"] = str(folder)
    subprocess.run([program, "-d"], check=False)
    try:
        yield
    finally:
        subprocess.run([program], input="quit\n", text=True, check=False, timeout=60)


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


def wait_for_queue(state: Path, seconds: float) -> None:
    """Wait until a queue that runs elsewhere ends."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (is_running(state) or not (state / "status.txt").is_file()):
        time.sleep(1.0)


def is_running(state: Path) -> bool:
    """Return whether a queue runs on this state."""
    try:
        os.kill(int((state / "running").read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


# Results --------------------------------------------------------------------------------------------------------------


def list_results(folder: Path) -> list[Path]:
    """Return the relative paths of tables, records and figures, without those of runs."""
    below = (path.relative_to(folder) for path in sorted(folder.rglob("*.*")))
    return [p for p in below if p.suffix in (".csv", ".json", ".png") and len(p.parts) > 1 and "runs" not in p.parts]


def merge_folder(source: Path, target: Path) -> None:
    """Add tables to those in another folder, row by row; copy figures."""
    for name in list_results(source):
        path, own = source / name, target / name
        own.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            merge_table(path, own)
        elif path.name == RECORD_FILE:
            before = read_json(own)["figures"] if own.is_file() else []
            write_json(own, {"figures": sorted({*before, *read_json(path)["figures"]})})
        else:
            shutil.copyfile(path, own)


def merge_table(source: Path, target: Path) -> None:
    """Add the rows of a table to another one; a table without seeds replaces it."""
    rows = pd.read_csv(source, keep_default_na=False, na_values=[""])
    if "seed" in rows:
        merge_rows(rows, target, [key for key in KEYS if key in rows])
    else:
        shutil.copyfile(source, target)


def collect(options: Options, out: Path) -> None:
    """Write results, logs and status to a folder of few files."""
    out.mkdir(parents=True, exist_ok=True)
    state = options.state
    with tarfile.open(out / "results.tar.gz", "w:gz") as archive:
        for name in [*list_results(state), *(p.relative_to(state) for p in state.glob("logs/*.log"))]:
            archive.add(state / name, name)
    lines = [(state / "status.txt").read_text()] if (state / "status.txt").is_file() else []
    for path in sorted((state / "logs").glob("*.log")):
        lines.append(f"{path.stem}\n    " + "\n    ".join(path.read_text(errors="replace").splitlines()[-3:]))
    write_atomic(out / "status.txt", "\n".join(lines) + "\n")
    save_cache(out / "cache.tar.gz")


def save_cache(path: Path) -> None:
    """Write the compile cache where it is small enough to be copied."""
    if 0 < compile_cache.describe_cache()["MB"] < MAX_CACHE_MB:
        compile_cache.pack_cache(path)


def main(options: Options) -> bool:
    """Run, wait, collect or merge."""
    wrong = [job for job in options.jobs if job not in JOBS]
    if wrong:
        raise unknown("job", wrong[0], JOBS)
    if options.merge is not None:
        with TemporaryDirectory() as folder:
            with tarfile.open(options.merge) as archive:
                archive.extractall(folder, filter="data")
            merge_folder(Path(folder), options.stored)
        return True
    done = True
    if options.jobs:
        with running(options.state), shared_gpu(options.state):
            done = run_queue(options)
    elif options.wait:
        wait_for_queue(options.state, options.wait)
    if options.collect is not None:
        collect(options, options.collect)
    return done


if __name__ == "__main__":
    try:
        main(tyro.cli(Options))
    except InputError as error:
        sys.exit(str(error))
