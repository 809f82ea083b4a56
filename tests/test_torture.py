"""Torture finds defects: every attack passes a sound program, and names the defect that was planted in another one."""

import itertools
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.torture import commands, power
from benchmarks.torture.commands import CRASH, HANG, Ending, Program, Runner
from benchmarks.torture.disks import fill_disk
from benchmarks.torture.flips import flip_files, flip_notes
from benchmarks.torture.inputs import feed_bad_inputs
from benchmarks.torture.kills import kill_reports, kill_saves, kill_studies
from benchmarks.torture.ledger import Attempt, Ledger, classify
from benchmarks.torture.run import ATTACKS, torture
from benchmarks.torture.runs import Reference
from benchmarks.torture.together import run_together
from filelock import FileLock

from unweave.utils.atomic import atomic_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forked processes need POSIX")
FILES = {
    "run.json": '{"method": {"name": "beta-vae"}}', "scores.json": '{"mcc": 0.5}', "config.json": "{}",
    "model.safetensors": "weights" * 20, "env.json": '{"seconds": 1}',
}  # fmt: skip
MESSAGE = "fake: a file is truncated or altered; repeat the command"
FLAGS = ("--out", "--codes", "--csv", "--parquet")


@pytest.fixture
def reference(tmp_path):
    folder = tmp_path / "reference"
    for name in ("runs/a", "runs/b", "model"):
        write_files(folder / name)
    for name in ("study.py", "table.csv"):
        (folder / name).write_text("text")
    return Reference(folder, 0.2)


def write_files(folder, seconds=0.0, files=FILES):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
        time.sleep(seconds)


def read_run(folder):
    for name, text in FILES.items():
        if (folder / name).read_bytes() != text.encode():
            raise ValueError(name)


def refuse(text=MESSAGE):
    sys.stderr.write(text)
    sys.exit(2)


def attack(attempts, number):
    found = list(itertools.islice(attempts, number))
    attempts.close()
    return Counter(attempt.outcome for attempt in found)


def runner(main=None, save_again=None):
    return Runner(Program(main, read_run, save_again))


# Kills ----------------------------------------------------------------------------------------------------------------


def study(args, *, is_atomic=True, files=FILES, reads_notes=False, locked=True):
    """Make two runs, or what is missing of them; repeat those that are damaged."""
    out = Path(args[args.index("--out") + 1])
    for folder in (out / "a", out / "b") if args[0] == "study" else [out]:
        folder.parent.mkdir(exist_ok=True)
        with FileLock(f"lock{folder.name}" if locked else f"lock{folder.name}{os.getpid()}"):
            try:
                read_run(folder)
                continue
            except (OSError, ValueError):
                sys.stderr.write("set aside; training\n")
            content = dict(files)
            if reads_notes:
                content["scores.json"] += "".join(path.read_text("latin-1") for path in out.glob(".failed/*"))
            shutil.rmtree(folder, ignore_errors=True)
            write_files(folder if not is_atomic else out / f".{folder.name}", 0.02, content)
            if is_atomic:
                (out / f".{folder.name}").rename(folder)


@pytest.mark.parametrize(
    ("defect", "outcome"),
    [({}, "accepted"), ({"is_atomic": False}, "damaged"), ({"files": FILES | {"config.json": "x"}}, "damaged")],
)
def test_kills_find_runs_that_are_not_atomic_or_end_otherwise(reference, tmp_path, defect, outcome):
    attempts = kill_studies(runner(partial(study, **defect)), reference, tmp_path / "work", random.Random(0))
    counts = attack(attempts, 10)
    assert set(counts) == {outcome} if not defect else counts[outcome]


def save_atomically(model, folder):
    shutil.copytree(model, folder.with_name(f".{folder.name}.tmp"), dirs_exist_ok=True)
    folder.with_name(f".{folder.name}.tmp").rename(folder)


def save_in_parts(model, folder):
    write_files(folder, 0.002)


@pytest.mark.parametrize(("save", "outcome"), [(save_atomically, "accepted"), (save_in_parts, "damaged")])
def test_kills_find_saves_in_parts(reference, tmp_path, save, outcome):
    attempts = kill_saves(runner(save_again=save), reference, tmp_path / "work", random.Random(0))
    counts = attack(attempts, 4)
    assert counts["accepted"] == 4 if outcome == "accepted" else counts["damaged"]


def write(args, *, is_atomic=True, removes=True):
    """Write the file that an option names, in parts."""
    path = Path([value for flag, value in itertools.pairwise(args) if flag in FLAGS][-1])
    target = path.with_name("part") if is_atomic else path
    try:
        with target.open("wb", buffering=0) as file:
            for _ in range(5):
                file.write(b"0" * 20_000)
                time.sleep(0.01)
    except OSError:
        if removes:
            target.unlink()
        refuse()
    target.rename(path)


def test_kills_find_pages_in_parts(reference, tmp_path):
    sound = attack(kill_reports(runner(write), reference, tmp_path / "work", random.Random(0)), 6)
    assert sound == {"accepted": 6}
    shutil.rmtree(tmp_path / "work")
    main = partial(write, is_atomic=False)
    assert attack(kill_reports(runner(main), reference, tmp_path / "work", random.Random(0)), 10)["damaged"]


# Damage ---------------------------------------------------------------------------------------------------------------


def read(args, *, unread=""):
    """Print the files of the runs that are named, all of them compared with what was written but for one."""
    if args[:2] == ["study", "run"]:
        return study(args)
    for word in args:
        for folder in Path(word).glob("[ab]") if word == "runs" else [Path(word)] if Path(word).is_dir() else []:
            for name, text in FILES.items():
                content = (folder / name).read_text("latin-1") if (folder / name).is_file() else ""
                if content != text and name != unread:
                    refuse(f"{MESSAGE}: {name}")
                sys.stdout.write(content)
    return None


@pytest.mark.parametrize("unread", ["", "scores.json"])
def test_flips_find_a_command_that_swallows_them(reference, tmp_path, unread):
    main = partial(read, unread=unread)
    counts = attack(flip_files(runner(main), reference, tmp_path / "work", random.Random(0)), 30)
    assert bool(counts["undetected"]) == bool(unread) and counts["refused"] > 10
    assert set(counts) <= {"refused", "accepted", "undetected"}


@pytest.mark.parametrize("reads_notes", [False, True])
def test_flips_find_a_note_that_changes_a_result(reference, tmp_path, reads_notes):
    main = partial(study, reads_notes=reads_notes)
    attempts = flip_notes(runner(main), reference, tmp_path / "work", random.Random(3))
    assert ("damaged" in attack(attempts, 3)) == reads_notes


@pytest.mark.parametrize("removes", [True, False])
def test_a_full_disk_finds_what_is_left_on_it(reference, tmp_path, removes, monkeypatch):
    monkeypatch.setattr("benchmarks.torture.disks.WRITERS", {"rows": ("rows", "--parquet", "disk/rows.parquet")})
    main = partial(write, is_atomic=False, removes=removes)
    counts = attack(fill_disk(runner(main), reference, tmp_path / "work", random.Random(0)), 3)
    assert counts == ({"refused": 3} if removes else {"damaged": 3})


@pytest.mark.parametrize("locked", [True, False])
def test_four_processes_find_missing_locks(reference, tmp_path, locked, monkeypatch):
    monkeypatch.setattr("benchmarks.torture.together.MAX_DELAY", 0.02)
    main = partial(study, locked=locked, is_atomic=False)
    counts = attack(run_together(runner(main), reference, tmp_path / "work", random.Random(1)), 6)
    assert counts == {"accepted": 6} if locked else set(counts) > {"accepted"} or "accepted" not in counts


# Bad inputs -----------------------------------------------------------------------------------------------------------


def fail(args):
    raise TypeError(args)


def change_input(args):
    Path("table.csv").write_text("")
    refuse()


def leave_behind(args):
    Path(".page.html.7.tmp").write_text("")
    refuse()


def unpickle(args):
    for path in Path().glob("*.np[yz]"):
        loaded = np.load(path, allow_pickle=True)
        loaded["arr_0"] if path.suffix == ".npz" else None
    refuse()


def write_half_a_run(args):
    write_files(Path("out/run"), files={"run.json": "{}"})


@pytest.mark.parametrize(
    ("main", "outcome"),
    [
        (lambda args: refuse(), "refused"), (lambda args: None, "accepted"), (fail, "traceback"),
        (change_input, "lost"), (leave_behind, "damaged"), (write_half_a_run, "damaged"),
        (lambda args: refuse("KeyError: 3"), "unclear"), (lambda args: sys.exit(1), "exit 1"),
        (lambda args: os.kill(os.getpid(), 9), "exit 1"), (lambda args: time.sleep(60), "hang"),
    ],
)  # fmt: skip
def test_bad_inputs_find_every_kind_of_failure(reference, tmp_path, main, outcome, monkeypatch):
    monkeypatch.setattr(commands, "SECONDS", 60.0 if outcome != "hang" else 0.2)
    counts = attack(feed_bad_inputs(runner(main), reference, tmp_path / "work", random.Random(0)), 1)
    assert counts == {outcome: 1}


def test_bad_inputs_find_code_that_is_executed(reference, tmp_path):
    counts = attack(feed_bad_inputs(runner(unpickle), reference, tmp_path / "work", random.Random(0)), 16)
    assert counts["undetected"] == 1  # the last of 16 kinds of inputs is a pickle


def write_runs(args):
    out = Path(args[args.index("--out") + 1])
    for name in ("a", "b"):
        if not (out / name).is_dir():
            with atomic_folder(out / name) as folder:
                write_files(folder)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are found by /proc")
@pytest.mark.parametrize("is_synced", [True, False])
def test_power_cuts_find_what_was_not_synchronized(reference, tmp_path, monkeypatch, is_synced):
    monkeypatch.setattr(power, "CUTS", 1_000)  # after every step
    if not is_synced:
        monkeypatch.setattr("unweave.utils.atomic.sync", lambda path: None)
    counts = attack(power.cut_power(runner(write_runs), reference, tmp_path / "work", random.Random(0)), 12)
    assert counts["accepted"] == 12 if is_synced else counts["damaged"] > 0


# The table ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Ending(0, "", ""), "accepted"), (Ending(2, "", MESSAGE), "refused"), (Ending(2, "", ""), "unclear"),
        (Ending(2, "", "unweave: [Errno 28] No space left on device"), "unclear"), (Ending(3, MESSAGE, ""), "refused"),
        (Ending(1, "", MESSAGE), "exit 1"), (Ending(0, "", "Traceback (most recent call last):\n"), "traceback"),
        (Ending(HANG, "", ""), "hang"), (Ending(CRASH, "", ""), "exit 1"),
    ],
)  # fmt: skip
def test_endings_are_classified(ending, outcome):
    assert classify(ending) == outcome


def test_the_ledger_counts_and_keeps_what_broke_a_promise(reference, tmp_path):
    def attempts(*_):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work/input.csv").write_text("1")
        yield Attempt("a", "refused")
        yield Attempt("b", "lost", "gone")
        yield from itertools.repeat(Attempt("c", "accepted"))

    ledger = Ledger(tmp_path / "kept")
    torture({"bad inputs": (attempts, 5), "full disk": (attempts, 5)}, ledger, reference, 3, None, seed=0)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in ledger.table().splitlines()]
    assert rows[2] == ["bad inputs", "3", "1", "1", "0", "0", "0", "0", "0", "0", "1"]
    assert rows[-1] == ["all", "6", "2", "2", "0", "0", "0", "0", "0", "0", "2"]
    assert (tmp_path / "kept/bad inputs-2/files/input.csv").read_text() == "1"
    ledger.write(tmp_path / "table.json", {"seed": 0})
    content = json.loads((tmp_path / "table.json").read_text())
    assert content["attacks"]["full disk"] == {"tried": 3, "refused": 1, "lost": 1, "accepted": 1}
    assert content["breaches"][0]["what"] == "b" and content["versions"]["torch"] and content["date"]


def test_attacks_add_up_to_a_thousand_inputs_and_two_hundred_kills():
    kills = [count for name, (_, count) in ATTACKS.items() if name.startswith("killed")]
    assert ATTACKS["bad inputs"][1] == 1000 and sum(kills) == 200
