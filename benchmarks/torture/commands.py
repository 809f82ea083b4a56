"""Commands in processes forked from one that has imported everything: limited in time and memory, killed at will."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutants.sandbox import Process, warm_up

CPU_SECONDS, SECONDS = 90, 200.0  # after which a command hangs: of the processor, and in all on an idle machine
MAX_SECONDS = 1800.0  # on the busiest one
MAX_BYTES = 6 * 2**30  # of memory, of a command: an input may ask for any amount
HANG, CRASH = -1, -2  # instead of an exit code
SKIPPED = ("unweave.__main__", "unweave.papers")


class Ending(NamedTuple):
    """How a command ended."""

    code: int
    """Exit code, HANG, or CRASH for the end by a signal."""
    stdout: str
    stderr: str


def import_everything() -> None:
    """Import all modules of the package, so that a forked command starts at once; start no threads."""
    import unweave

    warm_up()
    for module in pkgutil.walk_packages(unweave.__path__, "unweave."):
        if not module.name.startswith(SKIPPED):
            with contextlib.suppress(ImportError):  # of extras
                importlib.import_module(module.name)


def save_often() -> None:
    """Save checkpoints of trainings after a tenth of a second instead of ten, so that short trainings have some."""
    from unweave.training import checkpoint

    checkpoint.MAX_SECONDS_BETWEEN_SAVES, checkpoint.TRAINING_PER_SAVING = 0.1, 0


def time_limit() -> float:
    """Return the seconds after which a command hangs: more where other processes take the processor."""
    load = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return min(MAX_SECONDS, SECONDS * load * (4 if os.nice(0) > 0 and load > 1 else 1))


class Program(NamedTuple):
    """What is attacked; tests replace it by programs with a planted defect."""

    main: Callable[[list[str]], object]
    """Runs a command, and may end by SystemExit."""
    read_run: Callable[[Path], None]
    """Reads all of a run folder; raises an error if it is damaged."""
    save_again: Callable[[Path, Path], None]
    """Loads a saved model from a folder, and saves it into another one."""


class Runner:
    """Runs commands of a program in forked processes."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, args: Sequence[object], folder: Path, *, max_file: int | None = None) -> Ending:
        """Run a command in a folder and wait for its end."""
        return self.start(args, folder, max_file=max_file).wait()

    def start(self, args: Sequence[object], folder: Path, *, max_file: int | None = None) -> Started:
        """Start a command in a folder; `max_file` limits the bytes of a file that it may write."""
        return self.call(lambda: self.program.main([str(arg) for arg in args]), folder, max_file=max_file)

    def call(self, task: Callable[[], object], folder: Path, *, max_file: int | None = None) -> Started:
        """Start a function in a forked process, as a command."""
        log = folder.parent / f".{folder.name}.{random.randrange(2**48):x}"
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = CRASH % 256
            try:
                _enter(folder, log, max_file)
                code = _exit_code(task)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        return Started(Process(pid, time.monotonic() + time_limit()), log)


class Started:
    """A command that runs."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process, self.log = process, log

    def wait(self) -> Ending:
        """Return the ending once there is one."""
        result = self.process.wait()
        texts = [path.read_text(errors="replace") if path.exists() else "" for path in _logs(self.log)]
        for path in _logs(self.log):
            path.unlink(missing_ok=True)
        code = {"timeout": HANG, "crash": CRASH}.get(result)
        return Ending(int(result) if code is None else code, texts[0], texts[1])

    def kill(self, seconds: float) -> bool:
        """Kill the command and all that it started after some seconds; return whether it was still running."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.process.poll():
            time.sleep(0.001)
        was_running = not self.process.poll()
        if was_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()
        return was_running


def _logs(log: Path) -> tuple[Path, Path]:
    return Path(f"{log}.out"), Path(f"{log}.err")


def _enter(folder: Path, log: Path, max_file: int | None) -> None:
    import resource  # POSIX only, as is `fork`

    os.setsid()
    os.chdir(folder)
    for number, path in enumerate(_logs(log), 1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    limits = {resource.RLIMIT_DATA: MAX_BYTES, resource.RLIMIT_CPU: CPU_SECONDS}
    if max_file is not None:
        limits[resource.RLIMIT_FSIZE] = max_file
    for kind, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit + 5 * (kind == resource.RLIMIT_CPU)))


def _exit_code(task: Callable[[], object]) -> int:
    """Return the exit code of a command that ends as Python programs do."""
    try:
        task()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
