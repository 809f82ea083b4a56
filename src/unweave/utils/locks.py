"""Who works on what, where several processes share a folder: a lock that ends with the process that holds it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unweave.utils.errors import InputError

fcntl: Any = None  # on Windows there is none, and one process at a time is all there is
with contextlib.suppress(ImportError):
    import fcntl

MOMENT = 0.02  # seconds between looks at a file that another process changes


@contextlib.contextmanager
def try_lock_all(folder: Path, names: Iterable[str]) -> Iterator[bool]:
    """Whether all these names in the folder are ours for the block; if anyone else has one of them, none is.

    The kernel gives a lock back when its holder is gone, however that came about: nothing stale is left to be cleared.
    """
    with contextlib.ExitStack() as held:
        mine = True
        for name in sorted(set(names)):  # in one order, so that two processes cannot wait for each other
            mine = mine and held.enter_context(_lock(folder / ".claims" / name))
        yield mine


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Wait until nobody else is changing this file, and keep it so for the block."""
    while True:
        with try_lock_all(path.parent, [path.name]) as mine:
            if mine:
                yield
                return
        time.sleep(MOMENT)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    if fcntl is None:
        yield True
        return
    file = _opened(path)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder removes its file: what was opened just before is then no one's lock any more.
            mine = path.exists() and os.path.samestat(os.fstat(file), path.stat())
        except OSError:
            mine = False
        yield mine
        if mine:
            path.unlink(missing_ok=True)
    finally:
        os.close(file)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # where no one else has anything in it


def _opened(path: Path) -> int:
    for left in reversed(range(100)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            # The last to leave removed the folder in between; mkdir, too, looks twice, and says then that it exists.
            if left and isinstance(error, FileNotFoundError | FileExistsError):
                continue
            text = f"cannot write to {path.parent.parent}: {error.strerror}"
            raise InputError(f"{text}; choose another folder") from error
    raise AssertionError("not reached")
