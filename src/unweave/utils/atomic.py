"""Atomic writes: after an error, a kill or a power cut, a file or folder is complete or as it was before."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from unweave.utils.errors import InputError

TEMPORARY = re.compile(r"\..+\.([0-9a-f]{8})-(\d+)-\d+\.tmp")  # system and process that write it
MAX_AGE = 86_400.0  # seconds after which a temporary file of another computer is a leftover
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNWRITABLE = (*FULL, errno.EROFS, errno.EACCES, errno.EPERM)
FULL_TEXTS = ("No space left", "os error 28", "File too large", "os error 27")  # of libraries with their own errors
UNSYNCED_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)

_numbers = itertools.count()
_open: set[Path] = set()  # temporary files and folders that this process writes
_swept: set[tuple[int, Path]] = set()  # folders without leftovers, by process


@contextlib.contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` when the block ends and removed if the block fails.

    Nothing is created if the block removes the temporary folder. All files are on the disk before the folder is
    visible.

    >>> with atomic_folder(Path("runs/a")) as tmp:           # doctest: +SKIP
    ...     (tmp / "scores.json").write_text("{}")
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(f"{folder} exists already: choose another name, or remove it first")
    try:
        make_folder(folder.parent)
        tmp = _temporary_path(folder)
        tmp.mkdir()
    except OSError as error:
        raise InputError(f"cannot write to {folder.parent}: {_reason(error)}; choose another folder") from error
    try:
        yield tmp
        if tmp.is_dir():
            _publish(tmp, folder)
    except Exception as error:
        if isinstance(error, InputError) or not is_disk_full(error):
            raise
        raise describe_write_error(folder, error) from error
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
        _open.discard(tmp)


def _publish(tmp: Path, folder: Path) -> None:
    """Give a temporary folder its name, after its files are on the disk."""
    for place, _, names in os.walk(tmp):
        for name in names:
            sync(Path(place) / name)
        sync(Path(place))
    try:
        tmp.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster: keep its folder
            raise
    sync(folder.parent)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary binary file that is renamed to `path` when the block ends and removed if the block fails.

    Its content is on the disk before it has this name.
    """
    tmp = path
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"cannot write {path}: it is a folder or a device; choose another place")
        make_folder(path.parent)
        tmp = _temporary_path(path)
        with tmp.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        tmp.replace(path)
        sync(path.parent)
    except OSError as error:
        raise describe_write_error(path, error) from error
    finally:
        if tmp != path:
            with contextlib.suppress(OSError):
                tmp.unlink(missing_ok=True)
            _open.discard(tmp)


def write_atomic(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as file:
        file.write(text.encode())


# The disk -------------------------------------------------------------------------------------------------------------


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk: they survive a power cut."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # which opens no folders
        return
    try:
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not (is_folder and error.errno in UNSYNCED_FOLDERS):
            raise


def make_folder(path: Path) -> None:
    """Make a folder and those above it, with names that survive a power cut."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    missing = list(itertools.takewhile(lambda place: not place.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error or its cause is the disk: full, over its quota, or not writable."""
    while error is not None:
        # Some libraries raise their own error types, which only the text identifies.
        is_text = any(text in str(error) for text in FULL_TEXTS)
        if is_text or (isinstance(error, OSError) and error.errno in UNWRITABLE):
            return True
        error = error.__cause__ or error.__context__
    return False


def describe_write_error(path: Path, error: BaseException) -> InputError:
    """Return the error for a file or folder that cannot be written, with the reason and what to do."""
    is_full = any(text in str(error) for text in FULL_TEXTS) or getattr(error, "errno", None) in FULL
    advice = "free disk space and repeat the command" if is_full else "choose another place"
    return InputError(f"cannot write {path}: {_reason(error)}; {advice}")


def _reason(error: BaseException) -> str:
    """Return what the system says; libraries wrap it in texts of their own."""
    code = getattr(error, "errno", None)
    if code is None and any(text in str(error) for text in FULL_TEXTS):
        code = errno.ENOSPC
    return str(error) if code is None else os.strerror(code)


# Temporary files ------------------------------------------------------------------------------------------------------


def _temporary_path(path: Path) -> Path:
    """Return a new name beside a path; leftovers of killed processes in this folder are removed."""
    remove_leftovers(path.parent)
    tmp = path.with_name(f".{path.name}.{_system_id()}-{os.getpid()}-{next(_numbers)}.tmp")
    _open.add(tmp)
    return tmp


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders whose processes have ended; once for each folder and process."""
    key = os.getpid(), folder.absolute()
    if key in _swept:
        return
    _swept.add(key)
    for path in folder.glob(".*.tmp"):
        match = TEMPORARY.fullmatch(path.name)
        if match is not None and _is_leftover(path, match[1], int(match[2])):
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _is_leftover(path: Path, system: str, process: int) -> bool:
    if system == _system_id() and process == os.getpid():
        return path not in _open  # of a process that had the same number
    if system == _system_id() and os.name != "nt":
        try:
            os.kill(process, 0)  # sends nothing
        except ProcessLookupError:
            return True
        except OSError:  # of another user
            return False
        return False
    try:
        return time.time() - path.lstat().st_mtime > MAX_AGE
    except OSError:  # it is gone
        return False


@cache
def _system_id() -> str:
    """Return 8 hexadecimal digits for what numbers processes: this computer since its start, or this container."""
    places = (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid"))
    facts = [platform.node()]
    for place in places:
        with contextlib.suppress(OSError):
            facts.append(str(place.readlink()) if place.is_symlink() else place.read_text())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:8]
