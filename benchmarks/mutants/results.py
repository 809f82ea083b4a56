"""Results of mutants: kept in a file, listed, counted."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.mutants.mutators import Mutant
from benchmarks.mutants.reach import hash_file


@dataclass
class Result:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str  # "killed", "timeout", "survived", "equivalent", or "unclear": its tests could not be run
    by: str = ""  # the test that failed, or the reason of the equivalence
    group: str = ""


class Store:
    """Results of earlier calls, one in a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        lines = text.split("\n")[:-1]  # without what a killed process has written of a line
        if not text.endswith("\n") and text:
            path.write_text("".join(f"{line}\n" for line in lines))
        self.rows: dict[str, dict[str, str]] = {row["digest"]: row for row in map(json.loads, lines)}

    def find(self, mutant: Mutant, tests: str) -> Result | None:
        """Return an earlier result: of a killed mutant while its module is the same, of others while tests are too."""
        row = self.rows.get(mutant.digest, {})
        is_same = row.get("module") == _hash(mutant.source)
        if not is_same or (row["outcome"] == "survived" and row["tests"] != tests):
            return None
        return Result(mutant, row["outcome"], row["by"])

    def add(self, result: Result, tests: str) -> None:
        row = {
            "digest": result.mutant.digest, "module": _hash(result.mutant.source), "tests": tests,
            "outcome": result.outcome, "by": result.by, "key": result.mutant.key,
        }  # fmt: skip
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hash_tests(tests: list[str], root: Path) -> str:
    """Return a hash of the names of tests and of their files."""
    files = sorted({test.split("::")[0] for test in tests})
    return _hash(" ".join([*sorted(tests), *(hash_file(path, root) for path in files)]))


def print_survivors(results: list[Result]) -> None:
    """Print every survivor, so that a test can be written for it or a reason be given."""
    for result in results:
        if result.outcome == "survived":
            print(f"survived  {result.mutant.module}  {result.by}\n    {result.mutant.key}")


def count(results: list[Result]) -> dict[str, int]:
    """Return the number of results by outcome."""
    outcomes = [result.outcome for result in results]
    return {name: outcomes.count(name) for name in ("killed", "timeout", "equivalent", "survived", "unclear")}


def score(counts: dict[str, int]) -> float:
    """Return the share of faults that the tests notice."""
    noticed = counts["killed"] + counts["timeout"]
    return noticed / max(1, noticed + counts["survived"])


def table(results: list[Result]) -> str:
    """Return the counts and the score of every module, of every group, and of all."""
    parts: dict[str, list[Result]] = {}
    for result in results:
        parts.setdefault(result.mutant.module, []).append(result)
    for result in results:
        parts.setdefault(result.group or "all", []).append(result)
    parts["all"] = results
    rows: list[tuple[str, ...]] = [
        ("module or group", "mutants", "killed", "timed out", "equivalent", "survived", "unclear", "score")
    ]
    for name, part in parts.items():
        counts = count(part)
        rows.append((name, *map(str, (len(part), *counts.values())), f"{score(counts):.1%}"))
    return "\n".join(f"{row[0]:40}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows)


def write_results(path: Path, results: list[Result], settings: dict[str, Any]) -> None:
    """Write counts and scores of the groups as JSON, with date, versions and settings."""
    groups = {name: [r for r in results if r.group == name] for name in dict.fromkeys(r.group for r in results)}
    content = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "versions": versions(), "settings": settings}
    scores = {name: count(part) | {"score": round(score(count(part)), 4)} for name, part in groups.items()}
    survivors = [f"{r.mutant.module}: {r.mutant.key}" for r in results if r.outcome == "survived"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content | {"groups": scores, "survivors": survivors}, indent=2) + "\n")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide results."""
    names = ("unweave", "torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "hypothesis", "pytest")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
