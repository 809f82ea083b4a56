"""Four processes at once: on one study, and with one `--out` for all; sometimes one of them is killed."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.torture.commands import Runner
from benchmarks.torture.kills import judge_end
from benchmarks.torture.ledger import Attempt, classify, describe, leftovers
from benchmarks.torture.runs import Reference, intact

PROCESSES = 4
MAX_DELAY = 1.0  # seconds between two starts
FIT = ("fit", "beta-vae", "swiss-roll", "--data.points", "60", "--steps", "200", "--layers", "8",
       "--batch-size", "8", "--latent-dim", "2", "--metrics", "mcc")  # fmt: skip


def run_together(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Start four processes for the same work at random moments: every one ends well, and the work is done once."""
    alone = _fit_alone(runner, work)
    while True:
        shutil.rmtree(work, ignore_errors=True)
        reference.copy(work, "study.py")
        is_study = rng.random() < 0.5
        args = ("study", "run", "study.py", "--out", "out") if is_study else (*FIT, "--out", "out/run")
        processes = []
        for _ in range(PROCESSES):
            processes.append(runner.start(args, work))
            time.sleep(rng.choice([0, 0, MAX_DELAY * rng.random()]))
        killed = rng.choice([None, *range(PROCESSES)])
        if killed is not None:
            processes.pop(killed).kill(rng.uniform(0, 2 * MAX_DELAY))
        endings = [process.wait() for process in processes]
        what = f"{PROCESSES} times {args[0]}{'' if killed is None else ', one of them killed'}"
        bad = next((ending for ending in endings if classify(ending) != "accepted"), None)
        if bad is not None:
            outcome = classify(bad)
            yield Attempt(what, "lost" if outcome == "refused" else outcome, describe(bad))
        elif is_study:
            yield Attempt(what, *judge_end(reference, endings[0], runner, work / "out"))
        else:
            problem = intact(runner, work / "out") or ("" if _weights(work) == alone else "other weights")
            trained = sum("training" in ending.stderr for ending in endings)
            problem = problem or (f"{trained} processes trained" if trained > 1 else "")
            problem = problem or ", ".join(leftovers(work))
            yield Attempt(what, "damaged" if problem else "accepted", problem)


def _fit_alone(runner: Runner, work: Path) -> bytes:
    work.mkdir(parents=True, exist_ok=True)
    ending = runner.run((*FIT, "--out", "out/run"), work)
    if ending.code != 0:
        raise SystemExit(f"{FIT} fails without an attack: {ending.stderr}")
    return _weights(work)


def _weights(work: Path) -> bytes:
    return (work / "out/run/model.safetensors").read_bytes()
