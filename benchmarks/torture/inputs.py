"""Bad inputs: each is refused with a clear message or used; no command fails otherwise, hangs or leaves a trace."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.torture import commandlines, generated, real
from benchmarks.torture.commands import Runner
from benchmarks.torture.flips import MODEL_READERS, READERS
from benchmarks.torture.ledger import Attempt, classify, describe, leftovers, snapshot
from benchmarks.torture.runs import Reference, intact

DATA_COMMANDS = [
    ("fit", "pca", "{data}", "--latent-dim", "2", "--out", "out/run"),
    ("fit", "pca", "{data}", "--latent-dim", "1", "--out", "out/run", "--codes", "codes.csv"),
    ("fit", "beta-vae", "{data}", "--steps", "3", "--batch-size", "4", "--out", "out/run"),
    ("fit", "hessian-ica", "{data}", "--latent-dim", "1", "--out", "out/run"),
    ("advise", "{data}"), ("data", "check", "{data}"), ("data", "show", "{data}"),
    ("encode", "model", "{data}"), ("draw", "model", "{data}"), ("explore", "model", "{data}"),
    ("score", "{data}"), ("explain", "{data}"), ("score", "table.csv", "--factors", "{data}"), ("report", "{data}"),
]  # fmt: skip
RUN_COMMANDS = [READERS[name] for name in (*MODEL_READERS, "report", "score", "explain", "study rows")]
STUDY_COMMANDS = [("study", action, "study.py") for action in ("run", "status", "rows", "retry")]
EXECUTED = "executed"  # a file that only code in an input would write
BATCH = 100  # examples that hypothesis makes at a time

Prepare = Callable[[Path, random.Random], tuple[list[str], str]]  # writes an input; returns arguments and a description


def feed_bad_inputs(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Run a command on an input that is generated or damaged, in turn; inputs are never changed."""
    kinds = _kinds(rng)
    for number in range(10**9):
        real.remove(work)
        reference.copy(work)
        kind = [*kinds][number % len(kinds)]
        args, text = kinds[kind](work, rng)
        what = f"{kind}: {text} `{shlex.join(args)[:300]}`"
        before = snapshot(work)
        ending = runner.run(args, work)
        yield Attempt(what, *_judge(runner, work, before, classify(ending), describe(ending)))


def _judge(runner: Runner, work: Path, before: dict[str, str], outcome: str, detail: str) -> tuple[str, str]:
    after = snapshot(work)
    changed = [name for name, value in before.items() if after.get(name) != value and not name.startswith("runs/")]
    if EXECUTED in after:
        return "undetected", f"code in the input was executed; {detail}"
    if changed:
        return "lost", f"the inputs {changed[:3]} were changed; {detail}"
    if outcome in ("refused", "accepted") and leftovers(work):
        return "damaged", f"left behind: {leftovers(work)}; {detail}"
    if outcome == "accepted" and (work / "out").is_dir():
        problem = intact(runner, work / "out")
        return ("damaged", f"{problem}; {detail}") if problem else (outcome, detail)
    return outcome, detail


def _kinds(rng: random.Random) -> dict[str, Prepare]:
    """Return how inputs are made, by their kind; half of them are real files."""
    files = real.real_files()

    def damaged_file(work: Path, rng: random.Random) -> tuple[list[str], str]:
        name, text = real.write_damaged(work, files, rng)
        return _fill(rng.choice(DATA_COMMANDS), data=name), text

    def damaged_run(work: Path, rng: random.Random) -> tuple[list[str], str]:
        run = rng.choice(sorted(path for path in (work / "runs").iterdir() if path.is_dir()))
        args = _fill(rng.choice(RUN_COMMANDS), run=f"runs/{run.name}", other="runs")
        return args, real.damage_folder(run, rng)

    def damaged_study(work: Path, rng: random.Random) -> tuple[list[str], str]:
        path = work / "study.py"
        path.write_bytes(rng.choice([real.cut_off, real.cut_out])(bytearray(path.read_bytes()), rng))
        return list(rng.choice(STUDY_COMMANDS)), "damaged study file"

    def pickled(work: Path, rng: random.Random) -> tuple[list[str], str]:
        name = rng.choice(["data.npy", "data.npz"])
        (np.save if name == "data.npy" else np.savez)(work / name, np.array([Executes()], dtype=object))
        return _fill(rng.choice(DATA_COMMANDS), data=name), "pickled object"

    data = {"table": generated.tables(), "array": generated.array_files(), "parquet": generated.parquets(),
            "images": generated.image_folders()}  # fmt: skip
    made = {kind: _Examples(strategy, rng) for kind, strategy in data.items()}
    made |= {"study": _Examples(commandlines.studies(), rng), "options": _Examples(commandlines.options(), rng),
             "forged run": _Examples(commandlines.forgeries(), rng)}  # fmt: skip

    def from_data(kind: str) -> Prepare:
        def prepare(work: Path, rng: random.Random) -> tuple[list[str], str]:
            return _fill(rng.choice(DATA_COMMANDS), data=made[kind].next()(work)), "generated"

        return prepare

    def study(work: Path, rng: random.Random) -> tuple[list[str], str]:
        made["study"].next()(work)
        return list(rng.choice(STUDY_COMMANDS)), "generated"

    def forged(work: Path, rng: random.Random) -> tuple[list[str], str]:
        return _fill(rng.choice(RUN_COMMANDS), run=made["forged run"].next()(work), other="runs"), "generated"

    def options(work: Path, rng: random.Random) -> tuple[list[str], str]:
        return made["options"].next(), "generated"

    half: dict[str, Prepare] = {kind: from_data(kind) for kind in data}
    half |= {"study": study, "forged run": forged, "options": options, "more options": options}
    other: dict[str, Prepare] = {f"damaged file {i}": damaged_file for i in range(5)}
    other |= {"damaged run": damaged_run, "damaged study": damaged_study, "pickle": pickled}
    return half | other


class _Examples:
    """Examples of a strategy without an end, drawn in batches."""

    def __init__(self, strategy: Any, rng: random.Random) -> None:
        self.strategy, self.rng, self.batch = strategy, random.Random(rng.random()), list[Any]()

    def next(self) -> Any:
        while not self.batch:
            found = generated.examples(self.strategy, BATCH, self.rng.randrange(2**32))
            self.batch = self.rng.sample(found, len(found))  # the first are the simplest
        return self.batch.pop()


class Executes:
    """An object whose pickle writes a file when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (EXECUTED, "w")


def _fill(args: tuple[str, ...], **names: str) -> list[str]:
    return [arg.format(**names) for arg in args]
