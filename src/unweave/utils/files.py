"""Checks of files and of memory before anything is read: regular files only, of a size that fits."""

from __future__ import annotations

import difflib
import errno
import os
import stat
from pathlib import Path

from unweave.utils.errors import InputError

MEMORY_SHARE = 0.5  # of the free memory, which reading may take by default
MIN_CHECKED_BYTES = 2**26  # below which the free memory is not looked up
OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")  # in texts of libraries
SPECIAL_FILES = {
    stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket",
}  # fmt: skip


def check_exists(path: Path) -> None:
    """Raise an error unless `path` is a file or a folder; pipes, devices and endless links are never opened.

    Raises:
        InputError: If there is nothing; the message names the most similar file in the same folder.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(_describe_missing(path)) from None
    except (OSError, ValueError) as error:  # a null byte in a name is a ValueError
        is_endless = isinstance(error, OSError) and error.errno == errno.ELOOP
        reason = "it is a link that leads back to itself" if is_endless else getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r} cannot be opened: {reason}") from error
    special = SPECIAL_FILES.get(stat.S_IFMT(mode))
    if special:
        raise InputError(f"{path} is {special}: expected a file. Save what it delivers as a file first")


def check_file(path: Path) -> None:
    """Raise an error unless `path` is a regular file; see `check_exists`."""
    check_exists(path)
    if not path.is_file():
        raise InputError(f"{path} is a folder: expected a file")


def _describe_missing(path: Path) -> str:
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which does not exist"
    names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    similar = difflib.get_close_matches(path.name, names, 1)
    return f"{path} does not exist" + (f"; did you mean {path.parent / similar[0]}?" if similar else "")


def check_memory(what: str, size: float, limit: float | None = None, advice: str = "") -> None:
    """Raise an error if something takes more memory than allowed.

    Args:
        what: Subject of the message, such as a file or an array in it.
        size: Bytes that it takes in memory.
        limit: Bytes that it may take; None: half of the memory that is free.
        advice: What to do, besides freeing memory.
    """
    if size < MIN_CHECKED_BYTES and limit is None:
        return
    allowed = MEMORY_SHARE * free_memory() if limit is None else limit
    if size > allowed:
        share = "half of the free memory" if limit is None else "the limit"
        text = f"{what} takes {format_bytes(size)} of memory: expected at most {format_bytes(allowed)}, {share}"
        raise InputError(f"{text}. {advice or 'Use less of it, or a computer with more memory'}")


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error or its cause is a computer or device without free memory; libraries word it differently.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("CUDA out of memory")), is_out_of_memory(None)
    (True, True, False)
    """
    while error is not None:
        if isinstance(error, MemoryError) or any(text in str(error) for text in OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def free_memory() -> float:
    """Return the bytes of memory that this process may still take; infinity where the system does not tell."""
    sizes = [_meminfo(), *map(_group_memory, (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory")))]
    return min((size for size in sizes if size is not None), default=float("inf"))


def _meminfo() -> float | None:
    """Return the memory that the system has available, in bytes: without swapping, caches included."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, StopIteration):
        pass
    try:  # not Linux: of all memory
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None


def _group_memory(place: Path) -> float | None:
    """Return the memory that a container may still take, in bytes; None where it has no limit."""
    files = ("memory.limit_in_bytes", "memory.usage_in_bytes") if place.is_dir() else ("memory.max", "memory.current")
    folder = place if place.is_dir() else place.parent
    try:
        limit, usage = (int((folder / name).read_text(encoding="ascii")) for name in files)
    except (OSError, ValueError):  # "max"
        return None
    return float(max(0, limit - usage))


def format_bytes(size: float) -> str:
    """Return a number of bytes in units that people read.

    >>> format_bytes(2.5e9), format_bytes(4e6), format_bytes(100)
    ('2.5 GB', '4 MB', '100 bytes')
    """
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"
