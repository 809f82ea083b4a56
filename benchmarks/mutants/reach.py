"""Which lines of the package each test runs, and how long it takes: a mutant is shown to these tests only."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.mutants.sandbox import PACKAGE, ROOT, Sandbox

Reach = dict[str, tuple[float, dict[str, set[int]]]]  # by test: its seconds, and the lines of each module
MAX_SECONDS = 1800.0  # of a file of tests, with tracing


class LineRecorder:
    """A plugin of pytest that records the lines which each test runs."""

    def __init__(self, package: Path) -> None:
        self.prefix, self.reach = f"{package}/", dict[str, Any]()
        self.lines: dict[str, set[int]] = defaultdict(set)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.lines = defaultdict(set)
        start = time.perf_counter()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        yield
        sys.settrace(None)
        threading.settrace(None)
        lines = {name: sorted(numbers) for name, numbers in self.lines.items()}
        self.reach[item.nodeid] = [time.perf_counter() - start, lines]

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self.prefix):
            return None
        numbers = self.lines[file[len(self.prefix) :]]
        numbers.add(frame.f_lineno)

        def trace_lines(frame: FrameType, event: str, argument: Any) -> Any:
            numbers.add(frame.f_lineno)
            return trace_lines

        return trace_lines


def trace_tests(sandbox: Sandbox, files: list[str], cache: Path) -> Reach:
    """Return what every test of some files runs; a file is traced again when it or what it runs has changed."""
    cache.mkdir(parents=True, exist_ok=True)
    reach: Reach = {}
    for file in files:
        stored = cache / f"{file.replace('/', '-')}.json"
        if not _is_current(stored, file):
            print(f"tracing {file}", flush=True)
            result = sandbox.start(partial(_trace_file, file, stored), MAX_SECONDS).wait()
            if result != "0":
                raise SystemExit(f"{file} fails without a mutant ({result}):\n{sandbox.log.read_text()[-3000:]}")
        for test, (seconds, lines) in json.loads(stored.read_text())["tests"].items():
            reach[test] = seconds, {module: set(numbers) for module, numbers in lines.items()}
    return reach


def _trace_file(file: str, stored: Path) -> int:
    recorder = LineRecorder(Path.cwd() / PACKAGE)
    code = pytest.main([file, "-q", "-p", "no:cacheprovider"], plugins=[recorder])
    if code == 0:
        modules = {module for _, lines in recorder.reach.values() for module in lines}
        paths = [file, *sorted(f"{PACKAGE}/{module}" for module in modules)]
        text = json.dumps({"hashes": {path: hash_file(path, Path.cwd()) for path in paths}, "tests": recorder.reach})
        stored.with_suffix(".tmp").write_text(text)
        stored.with_suffix(".tmp").replace(stored)
    return int(code)


def _is_current(stored: Path, file: str) -> bool:
    if not stored.exists():
        return False
    hashes = json.loads(stored.read_text())["hashes"]
    return file in hashes and all(hash_file(path) == value for path, value in hashes.items())


def hash_file(path: str, root: Path = ROOT) -> str:
    """Return a hash of a file of the repository or of a copy; "" where there is none."""
    file = root / path
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""


def find_tests(*patterns: str) -> list[str]:
    """Return the test files of the repository that match patterns."""
    return sorted({str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)})
