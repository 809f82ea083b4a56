"""A copy of the repository in which mutants are run, each in a process forked from one that has imported torch."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src/unweave")
COPIED = ("src", "tests", "examples", "benchmarks", "docs", "pyproject.toml")
WARM = """
numpy torch torch._dynamo torch.func safetensors.torch scipy.optimize scipy.stats scipy.ndimage scipy.spatial
scipy.sparse.csgraph sklearn.linear_model sklearn.ensemble sklearn.decomposition sklearn.metrics sklearn.svm
sklearn.neighbors sklearn.utils.estimator_checks pandas pyarrow.parquet PIL.Image h5py matplotlib.pyplot filelock pytest
hypothesis.extra.numpy
"""
WAITING = 4  # times the seconds of the processor that a process may take in all: it may sleep, or other work goes on
MAX_BYTES = 12 * 2**30  # of memory, of a process: a mutant may ask for any amount


def warm_up() -> None:
    """Import what every test needs, but neither the package nor its tests: forked processes import the mutant."""
    for name in WARM.split():
        __import__(name)
    import torch

    torch.set_num_threads(1)  # no threads may exist when this process forks


class Sandbox:
    """A copy of the repository, in whose package one module at a time is replaced."""

    def __init__(self, folder: Path) -> None:
        """Copy source and tests, with compiled files that are used only for exactly this source."""
        self.root, self.log = folder / "copy", folder / "log.txt"
        shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.png", "*.pyc", "runs", "reports", "explorers", "_build", "gallery")
        for name in COPIED:
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target, ignore=ignored) if source.is_dir() else shutil.copy(source, target)
        compiling = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src"]
        subprocess.run(compiling, cwd=self.root, check=True)

    def path(self, module: str) -> Path:
        """Return the file of a module."""
        return self.root / PACKAGE / module

    def start(self, task: Callable[[], int], seconds: float) -> Process:
        """Run a task in a forked process, with the copy as its repository, for a time of the processor."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                self._enter(seconds)
                code = task()
            finally:
                os._exit(code)
        return Process(pid, time.monotonic() + WAITING * seconds)

    def _enter(self, seconds: float) -> None:
        """Let this process see the copy only, write into its own folders, and take limited memory and time."""
        import resource  # POSIX only, as is `fork`; the rest of the package is imported everywhere

        os.setsid()
        log = os.open(self.log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
        os.chdir(self.root)
        source = str(self.root / "src")
        sys.path[:0] = [source, str(self.root)]
        sys.dont_write_bytecode = True
        home = self.root.parent / "home"
        os.environ |= {
            "PYTHONPATH": f"{source}{os.pathsep}{self.root}", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOME": str(home), "UNWEAVE_CACHE": str(home / "cache"),
        }  # fmt: skip
        os.environ.pop("UNWEAVE_DATA", None)  # a test that needs other people's files is not counted on
        for name in [name for name in sys.modules if name.split(".")[0] in ("unweave", "tests", "benchmarks")]:
            del sys.modules[name]


class Process:
    """A forked process that is killed, with all that it started, when its time is over."""

    def __init__(self, pid: int, deadline: float) -> None:
        self.pid, self.deadline, self.result = pid, deadline, ""

    def poll(self) -> bool:
        """Return whether the process has ended; then `result` is its exit code, "timeout" or "crash"."""
        if self.result:
            return True
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            self.result = str(os.WEXITSTATUS(status)) if ended is None else "crash"
            if ended == signal.SIGXCPU:
                self.result = "timeout"
        elif time.monotonic() > self.deadline:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.result = "timeout"
        if self.result:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # and whatever it has started
        return bool(self.result)

    def wait(self) -> str:
        """Return the result once the process has ended."""
        while not self.poll():
            time.sleep(0.01)
        return self.result
