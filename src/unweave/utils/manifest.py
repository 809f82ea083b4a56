"""Manifest of a run folder: size and SHA-256 of every file, by which a later change of any of them is noticed."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from unweave.utils.atomic import write_atomic
from unweave.utils.errors import InputError
from unweave.utils.storage import cached_sha256, read_json, recipe_hash, sha256, sha256_of_text

FILE_NAME = "manifest.json"
ADVICE = "a study sets the folder aside and runs it again; otherwise delete it and repeat the command"


class Entry(NamedTuple):
    """What a file of a folder holds."""

    size: int  # bytes
    sha256: str


class Manifest(NamedTuple):
    """Entries by the names of files."""

    files: dict[str, Entry]
    replacements: dict[str, Entry]
    """New contents of files that are being replaced: after a crash either content is right."""


def write_manifest(folder: Path) -> None:
    """List all files of a folder; call it when the folder is complete.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "scores.json").write_text("{}")
        >>> write_manifest(folder)
        >>> _ = (folder / "scores.json").write_text("[]")
        >>> check_manifest(folder)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        unweave.utils.errors.InputError: ... is not complete, or altered: scores.json ...
    """
    paths = sorted(path for path in folder.iterdir() if path.name != FILE_NAME)
    _write(folder, Manifest({path.name: Entry(path.stat().st_size, sha256(path)) for path in paths}, {}))


def replace_file(folder: Path, name: str, text: str) -> None:
    """Replace a text file of a folder and its entry, if the folder has a manifest.

    The new content is listed beside the former one before the file is replaced, so that a crash damages nothing.
    """
    if not has_manifest(folder):
        write_atomic(folder / name, text)
        return
    files = read_manifest(folder).files
    entry = Entry(len(text.encode()), sha256_of_text(text))
    _write(folder, Manifest(files, {name: entry}))
    write_atomic(folder / name, text)
    _write(folder, Manifest(files | {name: entry}, {}))


def has_manifest(folder: Path) -> bool:
    """Return whether a folder has a manifest; those of earlier versions have none."""
    return (folder / FILE_NAME).is_file()


def check_manifest(folder: Path, *, max_hashed: float = math.inf, may_be_empty: Collection[str] = ()) -> None:
    """Raise an error that names the files of a folder that are missing or altered; pass a folder without a manifest.

    Args:
        folder: The folder.
        max_hashed: Bytes above which only the size of a file is compared.
        may_be_empty: Files that nothing depends on: an empty one leads to a warning.
    """
    while has_manifest(folder):
        manifest = read_manifest(folder)
        problems = list(_find_problems(folder, manifest, max_hashed, may_be_empty))
        if not problems:
            return
        if read_manifest(folder) == manifest:  # otherwise another process has just replaced a file
            raise InputError(f"{folder} is not complete, or altered: {'; '.join(problems)}: {ADVICE}")


def _find_problems(folder: Path, manifest: Manifest, max_hashed: float, may_be_empty: Collection[str]) -> Iterator[str]:
    for name, entry in manifest.files.items():
        path, replacement = folder / name, manifest.replacements.get(name)
        if not path.is_file():
            yield f"{name} is missing"
        elif name in may_be_empty and entry.size and not path.stat().st_size:
            warnings.warn(f"{path} is empty, and left out: it was damaged after it was written", stacklevel=4)
        elif not (_matches(path, entry, max_hashed) or (replacement and _matches(path, replacement, max_hashed))):
            yield f"{name} does not have the {entry.size:,} bytes that were written (sha256 {entry.sha256[:12]}...)"


def _matches(path: Path, entry: Entry, max_hashed: float) -> bool:
    if path.stat().st_size != entry.size:
        return False
    return entry.size > max_hashed or cached_sha256(path) == entry.sha256


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder; an error says that it is damaged itself."""
    path = folder / FILE_NAME
    content = read_json(path)
    checksum = content.pop("checksum", None)
    if checksum != recipe_hash(content):
        raise InputError(f"{path} is truncated or altered: its checksum does not match; {ADVICE}")
    try:
        manifest = Manifest(*(_entries(content[field]) for field in Manifest._fields))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} was not written by unweave ({error!r})") from error
    return manifest


def _entries(content: dict[str, Any]) -> dict[str, Entry]:
    """Return entries by name; names lead to no other folder."""
    outside = [name for name in content if Path(name).name != name]
    if outside:
        raise ValueError(f"{outside[0]!r} is not in the folder")
    return {name: Entry(int(each["size"]), str(each["sha256"])) for name, each in content.items()}


def _write(folder: Path, manifest: Manifest) -> None:
    content = {
        field: {name: entry._asdict() for name, entry in entries.items()}
        for field, entries in manifest._asdict().items()
    }
    write_atomic(folder / FILE_NAME, json.dumps(content | {"checksum": recipe_hash(content)}, indent=2) + "\n")
