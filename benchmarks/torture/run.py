"""Torture: bad inputs, kills, flipped bits, full disks, power cuts, four processes: which promises does unweave keep?

make torture
python -m benchmarks.torture.run --attacks inputs flips --sample 50 --seed 3
python -m benchmarks.torture.run --minutes 10

A power cut drops, empties or cuts off what was not synchronized.

Commands run in forked processes with limits of time and memory. It ends with a table, and with exit code 1 if a promise
was broken; the files of every breach are kept in `build/torture`. Ctrl-C ends it with the table so far. A seed decides
inputs and damage, but not where a kill finds a process.

refused: exit code 2 (3: runs of a study have failed) with a clear message. accepted: used, and done right; after a kill
or a damage recovered, with results equal byte for byte but for times. unclear: exit code 2 with a message that helps
nobody. exit 1: "internal error", or an end by a signal. damaged: something half written is visible, or remains.
undetected: damage changed what a command says or writes, or code in an input was executed. lost: finished work or an
input is gone, or work cannot be resumed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.mutants.sandbox import ROOT
from benchmarks.torture.commands import Runner, import_everything, save_often
from benchmarks.torture.disks import fill_disk
from benchmarks.torture.flips import flip_files, flip_notes
from benchmarks.torture.inputs import feed_bad_inputs
from benchmarks.torture.kills import kill_reports, kill_saves, kill_studies
from benchmarks.torture.ledger import Attempt, Ledger
from benchmarks.torture.power import cut_power
from benchmarks.torture.runs import UNWEAVE, Reference, make_reference
from benchmarks.torture.together import run_together

Attack = Callable[[Runner, Reference, Path, random.Random], Iterator[Attempt]]
ATTACKS: dict[str, tuple[Attack, int]] = {  # with the number of attempts
    "bad inputs": (feed_bad_inputs, 1000), "killed studies": (kill_studies, 120), "killed saves": (kill_saves, 40),
    "killed reports and tables": (kill_reports, 40), "flipped bits": (flip_files, 500),
    "flipped bits of checkpoints and notes": (flip_notes, 40), "full disk": (fill_disk, 60),
    "power cuts": (cut_power, 60), "four processes": (run_together, 20),
}  # fmt: skip
SECONDS_BETWEEN_REPORTS = 10.0


def main() -> None:
    """Run attacks; exit with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", nargs="+", default=[], help=f"words of these names: {[*ATTACKS]}")
    parser.add_argument("--sample", type=int, default=None, help="attempts of each attack at most")
    parser.add_argument("--minutes", type=float, default=None, help="time for all attacks, in equal shares")
    parser.add_argument("--seed", type=int, default=0, help="seed of inputs and damage")
    parser.add_argument("--out", type=Path, default=ROOT / "build/torture", help="folder for the files of breaches")
    parser.add_argument("--json", type=Path, default=None, help="file for the table, with date and versions")
    options = parser.parse_args()
    ledger = Ledger(options.out.absolute() / f"seed-{options.seed}")
    chosen = {name: attack for name, attack in ATTACKS.items() if _is_chosen(name, options.attacks)}
    prepare_process()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        try:
            reference = make_reference(Path(folder) / "reference")
            torture(chosen, ledger, reference, options.sample, options.minutes, options.seed)
        except KeyboardInterrupt:
            print("stopped", flush=True)
    print(ledger.table())
    for breach in ledger.breaches:
        print(f"{breach['outcome']}: {breach['what']}\n    {breach['detail'][:300]}\n    {breach['files']}")
    if options.json:
        ledger.write(options.json, {"seed": options.seed, "sample": options.sample, "minutes": options.minutes})
    sys.exit(1 if ledger.breaches else 0)


def _is_chosen(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


def prepare_process() -> None:
    """Let commands see no files and settings of the user, and start at once."""
    home = tempfile.mkdtemp(prefix="torture-home-")
    for name in ("UNWEAVE_DATA", "UNWEAVE_CACHE"):
        os.environ.pop(name, None)
    os.environ |= {"HOME": home, "UNWEAVE_CACHE": f"{home}/cache", "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    import_everything()
    save_often()


def torture(
    attacks: dict[str, tuple[Attack, int]], ledger: Ledger, reference: Reference, sample: int | None,
    minutes: float | None, seed: int,
) -> None:  # fmt: skip
    """Run attacks one after the other, and count and keep what they find."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    for i, (name, (attack, count)) in enumerate(attacks.items()):
        share = None if deadline is None else (deadline - time.monotonic()) / (len(attacks) - i)
        work = reference.folder.parent / "work"
        attempts = attack(Runner(UNWEAVE), reference, work, random.Random(f"{seed} {name}"))
        try:
            _attack(name, attempts, ledger, min(count, sample or count), share, work)
        finally:
            attempts.close()  # type: ignore[attr-defined]
            shutil.rmtree(work, ignore_errors=True)


def _attack(
    name: str, attempts: Iterator[Attempt], ledger: Ledger, count: int, seconds: float | None, work: Path
) -> None:
    start = reported = time.monotonic()
    for number, attempt in enumerate(attempts, 1):
        ledger.add(name, number, attempt, work)
        now = time.monotonic()
        is_over = number >= count or (seconds is not None and now - start > seconds)
        if is_over or now - reported > SECONDS_BETWEEN_REPORTS:
            reported, left = now, (now - start) / number * (count - number) / 60
            broken = sum(breach["attack"] == name for breach in ledger.breaches)
            print(f"{name}: {number} of {count}, {broken} promises broken, {left:.0f} min left", flush=True)
        if is_over:
            return


if __name__ == "__main__":
    main()
