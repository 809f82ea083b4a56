"""Flipped bits: in every file of a run, of a saved model, of a checkpoint and of notes, against all that reads them."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.torture.commands import Ending, Runner
from benchmarks.torture.kills import judge_end
from benchmarks.torture.ledger import Attempt, classify, describe, snapshot
from benchmarks.torture.runs import Reference

READERS = {
    "report": ("report", "{run}", "--out", "page.html", "--no-explorers"),
    "select": ("select", "{run}", "{other}", "--by", "isometry"),
    "score": ("score", "{run}", "--metrics", "mcc"),
    "explain": ("explain", "{run}", "--out", "explain.svg"),
    "encode": ("encode", "{run}", "table.csv", "--codes", "codes.csv"),
    "draw": ("draw", "{run}", "table.csv", "--out", "figures"),
    "describe": ("describe", "{run}", "--out", "describe.csv"),
    "explore": ("explore", "{run}", "table.csv", "--out", "explore.html"),
    "study rows": ("study", "rows", "study.py", "--out", "runs"),
    "fit": ("study", "run", "study.py", "--out", "runs"),
}
MODEL_READERS = ("encode", "draw", "explore", "describe")
REPAIR = "fit"  # of a damaged run: the study sets it aside and runs it again
WHOLE = "flipped bit"


def flip_files(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Damage one file and run one command that reads it: the damage is named, or the result is as if there were none.

    Nine of ten times one bit is flipped; otherwise the file is cut off, emptied or removed.
    """
    wholes: dict[tuple[str, str], tuple[Ending, dict[str, str]]] = {}
    pairs = [*_files_of_run(reference), *(("model", name) for name in ("config.json", "model.safetensors"))]
    every = [(*pair, reader) for pair in pairs for reader in (READERS if pair[0] != "model" else MODEL_READERS)]
    rng.shuffle(every)
    for folder, name, reader in itertools.cycle(every):
        shutil.rmtree(work, ignore_errors=True)
        reference.copy(work)
        if reader == REPAIR:
            what = damage(work / folder / name, rng)
            ending = runner.run(READERS[reader], work)
            outcome, detail = judge_end(reference, ending, runner, work / "runs")
            if outcome == "accepted" and "set aside" not in ending.stderr:
                outcome, detail = "undetected", describe(ending)
            yield Attempt(f"{what} in {folder}/{name}, study run", outcome, detail)
            continue
        args = _fill(reader, reference, folder)
        if (folder, reader) not in wholes:
            wholes[folder, reader] = runner.run(args, work), snapshot(work)
            shutil.rmtree(work)
            reference.copy(work)
        what = damage(work / folder / name, rng)
        before = snapshot(work)
        ending = runner.run(args, work)
        outcome, detail = _judge(ending, wholes[folder, reader], before, snapshot(work), name)
        yield Attempt(f"{what} in {folder}/{name}, {reader}", outcome, detail)


def _files_of_run(reference: Reference) -> list[tuple[str, str]]:
    folder = reference.out / reference.network
    return [(f"runs/{reference.network}", path.name) for path in sorted(folder.iterdir())]


def _fill(reader: str, reference: Reference, folder: str) -> list[str]:
    other = next(f"runs/{key}" for key in reference.keys if f"runs/{key}" != folder)
    return [arg.format(run=folder, other=other) for arg in READERS[reader]]


def _judge(
    ending: Ending, whole: tuple[Ending, dict[str, str]], before: dict[str, str], after: dict[str, str], name: str
) -> tuple[str, str]:
    """Return how a command took a damaged file, compared with the same command on the whole one."""
    outcome = classify(ending)
    written = {path: value for path, value in after.items() if before.get(path) != value}
    if outcome == "refused":
        return ("damaged", f"wrote {sorted(written)}") if written else (outcome, describe(ending))
    if outcome != "accepted":
        return outcome, describe(ending)
    is_named = name in ending.stderr
    is_equal = ending.stdout == whole[0].stdout and all(whole[1].get(path) == value for path, value in written.items())
    return ("accepted" if is_named or is_equal else "undetected"), describe(ending)


def damage(path: Path, rng: random.Random) -> str:
    """Flip a bit of a file, or now and then cut it off, empty or remove it; return what was done."""
    content = bytearray(path.read_bytes())
    kind = rng.choices(["bit", "cut", "empty", "removed"], [27, 1, 1, 1])[0]
    if kind == "removed":
        path.unlink()
        return "removed file"
    if kind == "bit":
        bit = rng.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        return f"bit {bit} flipped"
    size = 0 if kind == "empty" else rng.randrange(len(content))
    path.write_bytes(content[:size])
    return f"cut off after {size} bytes"


def flip_notes(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Damage a checkpoint, a note or a record of a failure, and resume the study: it ends as without the damage."""
    run = ("study", "run", "study.py", "--out", "out")
    while True:
        shutil.rmtree(work, ignore_errors=True)
        reference.copy(work, "study.py")
        if rng.random() < 0.5:
            reference.copy(work, "runs")
            (work / "runs").rename(work / "out")
            shutil.rmtree(work / "out" / rng.choice(reference.keys))
            failed = work / "out/.failed" / f"{rng.choice(reference.keys)}.json"
            failed.parent.mkdir()
            failed.write_text('{"key": "a", "title": "b", "error": "c"}')
        else:
            runner.start(run, work).kill(rng.uniform(0.2, 2.0))
        notes = [path for path in (work / "out").rglob(".*") if path.is_file() and path.stat().st_size]
        notes += [path for path in (work / "out").glob(".failed/*") if path.stat().st_size]
        if not notes:
            continue
        path = rng.choice([path for path in notes if path.suffix == ".checkpoint"] or notes)
        what = f"{damage(path, rng)} in {path.relative_to(work / 'out')}, study run"
        yield Attempt(what, *judge_end(reference, runner.run(run, work), runner, work / "out"))
