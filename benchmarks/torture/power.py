"""Power cuts: what was not synchronized is dropped, emptied or cut off at every step, and the work starts again.

Between two calls of `fsync` a file system may write what it likes, in any order. Three of its choices are tried:

- nothing: only synchronized files and names survive.
- names: all names survive, and files that were not synchronized are empty, as on ext4.
- random: each name is the former or the new one, and files that were not synchronized end anywhere.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.torture.commands import Runner
from benchmarks.torture.kills import RUN_STUDY, judge_end
from benchmarks.torture.ledger import Attempt
from benchmarks.torture.runs import Reference, intact

Survivors = Literal["nothing", "names", "random"]
CHOICES: tuple[Survivors, ...] = ("nothing", "names", "random")
CALLS = ("fsync", "rename", "replace", "unlink", "mkdir", "rmdir")  # after each of them there may be a power cut
CUTS = 12  # of one study that is watched


class Node(NamedTuple):
    """A file or folder: the content of a file, or what is in a folder by its name."""

    content: bytes | dict[str, int]


class Disk:
    """What of a folder is on the disk, while a program writes into it.

    >>> with Disk(Path("runs")).watch(lambda disk: disk.write(Path("after"), "nothing", rng)):  # doctest: +SKIP
    ...     execute(runs, "runs")
    """

    def __init__(self, folder: Path) -> None:
        """Take a folder with what is in it as synchronized."""
        self.folder = folder
        self.numbers: dict[int, int] = {}  # of files by their inode, which the system uses again
        self.synced: dict[int, Node] = {}
        self.folders: set[int] = set()
        self.last, self.is_writing = 0, False
        for place in [folder, *folder.rglob("*")]:
            self.synced[self._number(place.stat().st_ino)] = self._read(place)
        self.folders.add(self._number(folder.stat().st_ino))

    def _number(self, inode: int) -> int:
        if inode not in self.numbers:
            self.last += 1
            self.numbers[inode] = self.last
        return self.numbers[inode]

    def _read(self, path: Path) -> Node:
        if not path.is_dir():
            return Node(path.read_bytes())
        entries = {entry.name: (self._number(entry.inode()), entry.is_dir()) for entry in os.scandir(path)}
        self.folders |= {number for number, is_folder in entries.values() if is_folder}
        return Node({name: number for name, (number, _) in entries.items()})

    @contextlib.contextmanager
    def watch(self, after: Callable[[Disk], object]) -> Iterator[None]:
        """Call a function after every step that changes or synchronizes files in this process."""
        real = {name: getattr(os, name) for name in CALLS}

        def wrapped(name: str) -> Callable[..., Any]:
            def call(*args: Any, **settings: Any) -> Any:
                if self.is_writing:  # a state, not the program
                    return real[name](*args, **settings)
                gone = self._inode_that_goes(name, args, settings)
                result = real[name](*args, **settings)
                self.numbers.pop(gone, None)
                if name == "fsync":
                    place = Path(f"/proc/self/fd/{args[0]}")
                    self.synced[self._number(os.fstat(args[0]).st_ino)] = self._read(place)
                self.is_writing = True
                try:
                    after(self)
                finally:
                    self.is_writing = False
                return result

            return call

        for name in CALLS:
            setattr(os, name, wrapped(name))
        try:
            yield
        finally:
            for name in CALLS:
                setattr(os, name, real[name])

    def _inode_that_goes(self, name: str, args: tuple[Any, ...], settings: dict[str, Any]) -> int:
        path = {"unlink": args[:1], "rmdir": args[:1], "rename": args[1:2], "replace": args[1:2]}.get(name)
        try:
            return os.stat(path[0], dir_fd=settings.get("dir_fd"), follow_symlinks=False).st_ino if path else 0
        except OSError:
            return 0

    def write(self, target: Path, choice: Survivors, rng: random.Random) -> None:
        """Write what a power cut leaves now into another folder."""
        places = [self.folder, *self.folder.rglob("*")]
        visible = {self._number(path.stat().st_ino): self._read(path) for path in places}
        self._write(self._number(self.folder.stat().st_ino), target, choice, rng, visible)

    def _write(
        self, number: int, target: Path, choice: Survivors, rng: random.Random, visible: dict[int, Node]
    ) -> None:
        now, synced = visible.get(number), self.synced.get(number)
        if number not in self.folders:
            whole: Any = b"" if now is None else now.content
            content: Any = b"" if synced is None else synced.content
            if synced is None and choice == "random":
                content = whole[: rng.randint(0, len(whole))]
            target.write_bytes(content)
            return
        target.mkdir()
        former: Any = {} if synced is None else synced.content
        new: Any = {} if now is None else now.content
        chosen = {"nothing": former, "names": new}.get(choice)
        if chosen is None:
            every = {name: rng.choice([former, new]).get(name) for name in sorted({*former, *new})}
            chosen = {name: number for name, number in every.items() if number is not None}
        for name, inner in chosen.items():
            self._write(inner, target / name, choice, rng, visible)


def cut_power(runner: Runner, reference: Reference, work: Path, rng: random.Random) -> Iterator[Attempt]:
    """Watch a study, cut the power at random steps, and run it again on what is left: it ends as ever."""
    while True:
        shutil.rmtree(work, ignore_errors=True)
        reference.copy(work, "study.py")
        (work / "disk/out").mkdir(parents=True)
        cuts, seed = {rng.randrange(1, 250) for _ in range(CUTS)}, rng.random()
        args = ("study", "run", "study.py", "--out", "disk/out")
        runner.call(lambda: _watch(runner, args, work, cuts, seed), work).wait()  # noqa: B023 (called at once)
        for state in sorted(path for path in work.iterdir() if path.name.startswith("cut-")):
            for former in ("disk/out", "out"):
                shutil.rmtree(work / former, ignore_errors=True)
            (state / "out").rename(work / "out") if (state / "out").is_dir() else (work / "out").mkdir()
            what = f"power cut {state.name.removeprefix('cut-').replace('-', ', ')} survives"
            problem = intact(runner, work / "out")
            if problem:
                yield Attempt(what, "damaged", problem)
                continue
            yield Attempt(what, *judge_end(reference, runner.run(RUN_STUDY, work), runner, work / "out"))


def _watch(runner: Runner, args: tuple[str, ...], work: Path, cuts: set[int], seed: float) -> object:
    """Run a command, and write what is left by power cuts after some of its steps."""
    rng, steps = random.Random(seed), 0

    def after(disk: Disk) -> None:
        nonlocal steps
        steps += 1
        if steps in cuts:
            choice = rng.choice(CHOICES)
            disk.write(work / f"cut-step {steps:03}-{choice}", choice, rng)

    with Disk(work / "disk").watch(after):
        return runner.program.main([*args])
