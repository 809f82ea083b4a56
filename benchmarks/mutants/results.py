"""Results of mutants: kept in a file, listed, counted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants.mutators import Mutant
from benchmarks.mutants.reach import hash_file


@dataclass
class Result:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str  # "killed", "timeout", "survived" or "equivalent"
    by: str = ""  # the test that failed, or the reason of the equivalence


class Store:
    """Results of earlier calls, one in a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
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


def table(results: list[Result]) -> str:
    """Return the counts and the score of every module; the score is the share of faults noticed."""
    rows: list[tuple[str, ...]] = [("module", "mutants", "killed", "timed out", "equivalent", "survived", "score")]
    modules = list(dict.fromkeys(result.mutant.module for result in results))
    for name in [*modules, "all"]:
        outcomes = [result.outcome for result in results if name in (result.mutant.module, "all")]
        killed, timeout, same, alive = map(outcomes.count, ("killed", "timeout", "equivalent", "survived"))
        score = f"{(killed + timeout) / max(1, killed + timeout + alive):.1%}"
        rows.append((name, *map(str, (len(outcomes), killed, timeout, same, alive)), score))
    return "\n".join(f"{row[0]:40}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows)
