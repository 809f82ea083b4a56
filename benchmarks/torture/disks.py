"""Full disks: commands write to a small file system with a random number of free bytes, then with enough of them."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.torture.commands import Ending, Runner
from benchmarks.torture.kills import judge_end
from benchmarks.torture.ledger import Attempt, classify, describe, leftovers
from benchmarks.torture.runs import Reference, intact

DISK_BYTES = 4 * 2**20
PAGE = 4096
WRITERS = {
    "study": ("study", "run", "study.py", "--out", "disk/out"),
    "fit": ("fit", "pca", "table.csv", "--latent-dim", "2", "--out", "disk/out"),
    "encode": ("encode", "model", "table.csv", "--codes", "disk/codes.csv"),
    "rows": ("study", "rows", "study.py", "--out", "runs", "--parquet", "disk/rows.parquet"),
    "draw": ("draw", "model", "table.csv", "--out", "disk/figures"),
    "report": ("report", "runs", "--out", "disk/page.html", "--no-explorers"),
}
MAX_NEEDED = {"study": 500_000, "fit": 60_000, "encode": 8_000, "rows": 16_000, "draw": 300_000, "report": 300_000}


def fill_disk(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Run commands on a full disk: refused, nothing half written is visible, and with space they end as ever.

    As root the disk is a small tmpfs; otherwise the size of every file is limited (RLIMIT_FSIZE).
    """
    reference.copy(work)
    disk = work / "disk"
    disk.mkdir()
    with small_disk(disk) as is_mounted:
        for name in itertools.cycle(WRITERS):
            for path in disk.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            free = rng.randrange(MAX_NEEDED[name])
            what = f"{name} with {free:,} bytes free{'' if is_mounted else ' for each file'}"
            if is_mounted:
                _fill(disk, free)
            ending = runner.run(WRITERS[name], work, max_file=None if is_mounted else free)
            (disk / "ballast").unlink(missing_ok=True)
            yield Attempt(what, *_judge(name, ending, runner, reference, work))


def _judge(name: str, ending: Ending, runner: Runner, reference: Reference, work: Path) -> tuple[str, str]:
    """Return how a command took a full disk, and whether it ends when there is space again."""
    disk, outcome = work / "disk", classify(ending)
    left = leftovers(disk)
    if outcome not in ("refused", "accepted"):
        return outcome, describe(ending)
    visible = [path for path in disk.iterdir() if not path.name.startswith(".")]
    if left or (outcome == "refused" and name not in ("study", "draw") and visible):
        return "damaged", f"{left or visible} on the disk; {describe(ending)}"
    if name == "study":
        problem = intact(runner, disk / "out")
        if problem:
            return "damaged", f"{problem}; {describe(ending)}"
        end, detail = judge_end(reference, runner.run(WRITERS[name], work), runner, disk / "out")
        return (outcome, describe(ending)) if end == "accepted" else (end, detail)
    again = runner.run(WRITERS[name], work)
    return (outcome if classify(again) == "accepted" else "lost"), f"{describe(ending)}; then {describe(again)}"


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system in memory for the block; yield whether that was possible."""
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    is_mounted = not subprocess.run(mounting, capture_output=True, check=False).returncode
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def _fill(disk: Path, free: int) -> None:
    """Fill a disk but for some bytes."""
    with (disk / "ballast").open("wb") as file:
        file.write(b"0" * max(0, shutil.disk_usage(disk).free - free // PAGE * PAGE))
