"""File locks shared by processes that work on one folder."""

from __future__ import annotations

import contextlib
import errno
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from unweave.utils.atomic import make_folder
from unweave.utils.errors import InputError

try:
    import fcntl
except ImportError:  # Windows, where filelock locks bytes of the file
    fcntl = None  # type: ignore[assignment]

LOCK_FOLDER = ".locks"
POLL_SECONDS = 0.02  # between attempts to lock a file that another process holds
MAX_ATTEMPTS = 100  # to create a lock file while other processes remove the folder of the locks
# What network file systems without locks answer. There the existence of a file is the lock. A process that was killed
# leaves its file behind, which is recognized on the same machine only.
UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextlib.contextmanager
def try_lock_all(folder: Path, names: Iterable[str]) -> Iterator[bool]:
    """Lock all `names` in a folder for the block, or none of them; yield whether they were locked. Never waits.

    The operating system releases a lock when its process ends, so a killed process leaves no lock behind. Lock files
    are removed on release.

    >>> with try_lock_all(Path("runs"), ["a", "b"]) as locked:           # doctest: +SKIP
    ...     print("working" if locked else "another process works on a or b")
    """
    locks: list[BaseFileLock] = []
    try:
        locked = True
        for name in sorted(set(names)):  # in one order, so that of two processes that want the same names one succeeds
            lock_file = _try_acquire(folder / LOCK_FOLDER / name)
            if lock_file is None:
                locked = False
                break
            locks.append(lock_file)
        if not locked:
            _release(locks)
        yield locked
    finally:
        _release(locks)


@contextlib.contextmanager
def lock(path: Path, before_waiting: Callable[[Path], None] = lambda path: None) -> Iterator[None]:
    """Wait until no other process holds the lock of this file, and hold it for the block.

    If another process holds it, `before_waiting` is called once, with the path of its lock file.
    """
    with lock_all(path.parent, [path.name], before_waiting):
        yield


@contextlib.contextmanager
def lock_all(
    folder: Path, names: Sequence[str], before_waiting: Callable[[Path], None] = lambda path: None
) -> Iterator[None]:
    """Wait until no other process holds one of the `names` in a folder, and hold all of them for the block.

    If another process holds one, `before_waiting` is called once, with the path of its lock file.
    """
    has_waited = False
    while True:
        with try_lock_all(folder, names) as locked:
            if locked:
                yield
                return
        if not has_waited:
            held = [name for name in names if is_locked(folder, name)]
            before_waiting(folder / LOCK_FOLDER / (held or names)[0])
        has_waited = True
        time.sleep(POLL_SECONDS)


def is_locked(folder: Path, name: str) -> bool:
    """Return whether a living process holds the lock of a name in the folder."""
    if not (folder / LOCK_FOLDER / name).exists():
        return False
    with try_lock_all(folder, [name]) as locked:
        return not locked


def _try_acquire(path: Path) -> BaseFileLock | None:
    """Return the held lock, or None if another process holds it."""
    for attempt in range(MAX_ATTEMPTS):
        try:
            make_folder(path.parent.parent)
            path.parent.mkdir(exist_ok=True)
            lock_file = _lock_class(path.parent)(path, blocking=False)
            lock_file.acquire()
        except Timeout:
            return None
        except OSError as error:
            # Another process may have removed the folder since mkdir. So may mkdir itself fail, with FileExistsError.
            if attempt + 1 < MAX_ATTEMPTS and isinstance(error, FileNotFoundError | FileExistsError):
                continue
            text = f"cannot write to {path.parent.parent}: {error.strerror or error}"
            raise InputError(f"{text}; choose another folder") from error
        return lock_file
    return None


@cache
def _lock_class(folder: Path) -> type[BaseFileLock]:
    """Return the kind of lock that works in an existing folder, found by an attempt on an unnamed file."""
    if fcntl is not None:
        with tempfile.TemporaryFile(dir=folder) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return SoftFileLock if error.errno in UNSUPPORTED else FileLock
    return FileLock


def _release(locks: list[BaseFileLock]) -> None:
    """Remove the files of held locks, release the locks, and empty the list."""
    while locks:
        lock_file = locks.pop()
        path = Path(lock_file.lock_file)
        # While it is held: filelock recognizes a file that was removed between its opening and its locking. It removes
        # the file itself where its existence is the lock, and on Windows, where an open file cannot be removed.
        if not isinstance(lock_file, SoftFileLock):
            with contextlib.suppress(OSError):
                path.unlink()
        lock_file.release()
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # fails, as intended, while it holds other locks
