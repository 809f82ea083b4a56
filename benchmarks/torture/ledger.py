"""What became of every attempt: classified, counted, kept where a promise was broken."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutants.results import versions
from benchmarks.torture.commands import CRASH, HANG, Ending

KEPT = ("refused", "accepted")  # promises were kept
BROKEN = ("unclear", "exit 1", "traceback", "hang", "damaged", "undetected", "lost")
TITLES = {"accepted": "accepted, or recovered"}
USER_ERROR, RUNS_FAILED = 2, 3  # exit codes
MAX_KEPT_BYTES = 50e6  # of the files of a breach


class Attempt(NamedTuple):
    """One attempt of an attack."""

    what: str
    """What was tried, in a line."""
    outcome: str
    """One of KEPT or BROKEN."""
    detail: str = ""
    """What the command said, or what is wrong."""


@dataclass
class Ledger:
    """Counts of attempts by attack, and the folder of what broke a promise."""

    folder: Path
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    breaches: list[dict[str, str]] = field(default_factory=list)

    def add(self, attack: str, number: int, attempt: Attempt, files: Path | None = None) -> None:
        """Count an attempt; keep its files and its story if it broke a promise."""
        self.counts.setdefault(attack, Counter())[attempt.outcome] += 1
        if attempt.outcome in KEPT:
            return
        place = self.folder / f"{attack}-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        story = {"attack": attack, "number": str(number), **attempt._asdict(), "files": str(place)}
        self.breaches.append(story)
        (place / "breach.json").write_text(json.dumps(story, indent=2) + "\n")
        if files is not None and _size(files) < MAX_KEPT_BYTES:
            shutil.copytree(files, place / "files", symlinks=True, ignore=_special)

    def table(self) -> str:
        """Return the counts of every attack as a Markdown table."""
        columns = ("tried", *KEPT, *BROKEN)
        total: Counter[str] = sum(self.counts.values(), Counter())
        rows = [["attack", *(TITLES.get(name, name) for name in columns)], ["---"] * (len(columns) + 1)]
        for name, count in [*self.counts.items(), ("all", total)]:
            rows.append([name, *(f"{count[column] if i else count.total():,}" for i, column in enumerate(columns))])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def write(self, path: Path, settings: dict[str, Any]) -> None:
        """Write the counts as JSON, with date, versions and settings."""
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        attacks = {name: {"tried": count.total(), **count} for name, count in self.counts.items()}
        stories = [{key: story[key] for key in ("attack", "number", "what", "outcome")} for story in self.breaches]
        content = {"date": date, "versions": versions(), "settings": settings, "attacks": attacks, "breaches": stories}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n")


def classify(ending: Ending) -> str:
    """Return what the end of a command is: refused with a clear message, accepted, or how it failed."""
    if ending.code == HANG:
        return "hang"
    if "Traceback (most recent call last)" in ending.stderr:
        return "traceback"
    if ending.code == 0:
        return "accepted"
    if ending.code in (USER_ERROR, RUNS_FAILED):
        return "refused" if is_clear(ending) else "unclear"
    return "exit 1"


def describe(ending: Ending) -> str:
    """Return the exit code and the last of what a command said."""
    code = {HANG: "hangs", CRASH: "ended by a signal"}.get(ending.code, f"exit {ending.code}")
    return f"{code}: {' '.join(ending.stderr.split())[-600:]}"


def is_clear(ending: Ending) -> bool:
    """Return whether a message is words for a user: not empty, no name of an exception, no page of text."""
    text = ending.stderr + (ending.stdout if ending.code == RUNS_FAILED else "")
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    has_python = re.search(r"^(unweave: )?(error: )?[A-Za-z_.]*(Error|Exception)\b(?! of)|Errno|<class '", last)
    return 20 <= len(last) <= 3000 and not has_python


def snapshot(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder; of links and special files their kind."""
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if not path.is_dir()}


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "special"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leftovers(folder: Path) -> list[str]:
    """Return temporary files and locks below a folder; a command that has ended leaves none."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix == ".tmp"]
    return names + [f"{path.parent.name}/{path.name}" for path in folder.rglob(".locks/*")]


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _special(folder: str, names: Iterable[str]) -> list[str]:
    """Return what cannot be copied: FIFOs and devices."""
    paths = [(name, Path(folder) / name) for name in names]
    return [n for n, path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]
