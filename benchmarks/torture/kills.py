"""Kills: studies, saves and reports get SIGKILL at a random moment; what is finished stays, the rest is made again."""

from __future__ import annotations

import itertools
import random
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.torture.commands import Ending, Runner
from benchmarks.torture.ledger import Attempt, classify, describe, leftovers, snapshot
from benchmarks.torture.runs import Reference, check, difference, intact

MOST_KILLS = 6  # of a study, before it may end
RUN_STUDY = ("study", "run", "study.py", "--out", "out")


def kill_studies(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Kill a study some times, then let it end: its results are those of one that was never killed."""
    seconds = reference.seconds
    while True:
        shutil.rmtree(work, ignore_errors=True)
        reference.copy(work, "study.py")
        kills = rng.randint(1, MOST_KILLS)
        for kill in range(1, kills + 1):
            start, share = time.monotonic(), rng.random()
            finished = snapshot(work / "out") if (work / "out").is_dir() else {}
            was_running = runner.start(RUN_STUDY, work).kill(1.2 * share * seconds)
            what = f"study killed after {1.2 * share * seconds:.2f} s, kill {kill} of {kills}"
            if not was_running:
                seconds = time.monotonic() - start
            problem = _problem_after_kill(runner, work / "out", finished)
            if problem is not None:
                yield Attempt(what, *problem)
            elif kill < kills:
                yield Attempt(what, "accepted")
            else:
                start = time.monotonic()
                outcome, detail = judge_end(reference, runner.run(RUN_STUDY, work), runner, work / "out")
                seconds = max(seconds, time.monotonic() - start)
                yield Attempt(f"{what}, and resumed", outcome, detail)


def _problem_after_kill(runner: Runner, out: Path, finished: dict[str, str]) -> tuple[str, str] | None:
    now = snapshot(out) if out.is_dir() else {}
    gone = [name for name, value in finished.items() if not name.startswith(".") and now.get(name) != value]
    if gone:
        return "lost", f"{gone[0]} of a finished run is gone or has changed"
    problem = intact(runner, out)
    return ("damaged", problem) if problem else None


def judge_end(reference: Reference, ending: Ending, runner: Runner, out: Path) -> tuple[str, str]:
    """Return what a study that has ended is, compared with one that was never attacked."""
    outcome = classify(ending)
    if outcome != "accepted":
        return "lost" if outcome == "refused" else outcome, describe(ending)
    problem = intact(runner, out) or difference(out, reference.out)
    left = leftovers(out)
    if problem or left:
        return "damaged", problem or f"left behind: {left}"
    return "accepted", ""


def kill_saves(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Kill a process that saves one model again and again: each folder is complete or does not exist."""
    whole = snapshot(reference.model)
    while True:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        process = runner.call(lambda: _save_again_and_again(runner, reference.model, work), work)
        deadline = time.monotonic() + 60
        while not (work / "0").exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill(rng.uniform(0, 0.1))
        saved = [path for path in work.iterdir() if not path.name.startswith(".")]
        halves = [path.name for path in saved if snapshot(path) != whole]
        what = f"save killed, {len(saved)} folders complete"
        if halves or not saved:
            yield Attempt(what, "damaged", f"folders {halves} are not complete")
            continue
        problem = ""
        for name in leftovers(work):  # the folder that the killed process was writing: it is saved once more
            folder = work / name.split(".")[1]
            problem = check(runner, partial(runner.program.save_again, reference.model, folder), work)
            if not problem and (snapshot(folder) != whole or leftovers(work)):
                problem = f"left behind: {leftovers(work)}"
        yield Attempt(what, "damaged" if problem else "accepted", problem)


def _save_again_and_again(runner: Runner, model: Path, folder: Path) -> None:
    for number in itertools.count():
        runner.program.save_again(model, folder / str(number))


WRITERS = {
    "page.html": ("report", "runs", "--out", "page.html", "--no-explorers"),
    "codes.csv": ("encode", "model", "table.csv", "--codes", "codes.csv"),
    "codes.npy": ("encode", "model", "table.csv", "--codes", "codes.npy"),
    "rows.csv": ("study", "rows", "study.py", "--out", "runs", "--csv", "rows.csv"),
    "rows.parquet": ("study", "rows", "study.py", "--out", "runs", "--parquet", "rows.parquet"),
    "explore.html": ("explore", "model", "table.csv", "--out", "explore.html"),
}  # commands that write one file


def kill_reports(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Kill commands that replace a page or a table: it is the former one or the new one, and a repetition is whole."""
    reference.copy(work)
    wholes: dict[str, tuple[bytes, float]] = {}
    for file in itertools.cycle(WRITERS):
        args, path = WRITERS[file], work / file
        if file not in wholes:
            start = time.monotonic()
            ending = runner.run(args, work)
            if ending.code != 0:
                raise SystemExit(f"{args} fails without an attack: {ending.stderr}")
            wholes[file] = path.read_bytes(), time.monotonic() - start
        whole, seconds = wholes[file]
        former = rng.choice([b"former", None])
        path.unlink() if former is None else path.write_bytes(former)
        runner.start(args, work).kill(1.1 * rng.random() * seconds)
        now = path.read_bytes() if path.exists() else None
        what = f"{' '.join(args[:2])} killed while it writes {file}"
        if now not in (former, whole):
            yield Attempt(what, "damaged", f"{len(now or b'')} of {len(whole)} bytes")
            continue
        ending = runner.run(args, work)
        left = leftovers(work)
        if classify(ending) != "accepted" or path.read_bytes() != whole or left:
            yield Attempt(f"{what}, repeated", "damaged", f"left behind: {left}; {describe(ending)}")
            for name in left:
                (work / name).unlink(missing_ok=True)
            continue
        yield Attempt(what, "accepted")
