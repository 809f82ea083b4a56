"""Folders that only the user can read, write or replace, for files that are executed or trusted later."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from unweave.utils.errors import InputError


def user_id() -> int:
    """Return the number of the user; 0 on systems without one, whose folders belong to the user by default."""
    return os.getuid() if hasattr(os, "getuid") else 0


def private_folder(path: Path) -> Path:
    """Make a folder with mode 0700, or take an existing one of the user; return it without symbolic links.

    Raises:
        InputError: If it, or a folder above it, belongs to another user (not the administrator), or if all users may
            replace it. They could put their own files into it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = path.parent.resolve() / path.name
        if hasattr(os, "getuid"):
            _refuse_foreign_folders(place)
            place.chmod(0o700)
    except OSError as error:
        raise InputError(f"cannot use the folder {path}: {error.strerror or error}; choose another one") from error
    return place


def _refuse_foreign_folders(place: Path) -> None:
    """Raise an error unless the folder is the user's own, and nobody else can replace it or a folder above it."""
    if place.lstat().st_uid != user_id() or not stat.S_ISDIR(place.lstat().st_mode):
        raise InputError(f"{place} belongs to another user, or is a link: remove it, or choose another folder")
    for folder in place.parents:
        status = folder.stat()
        is_open = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX  # others may rename its entries
        if is_open or status.st_uid not in (0, user_id()):
            text = f"{folder} belongs to another user, or all users may replace what is in it"
            raise InputError(f"{text}: choose another folder than {place}")
