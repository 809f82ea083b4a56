"""The cache of compiled steps: a folder of the user's own for each combination of versions and device.

torch stores what it compiles in the folder TORCHINDUCTOR_CACHE_DIR. By default that is a folder for temporary files,
which other users may create first and which a restart removes. Entries of the cache are code that is executed, so they
are stored in private folders alone.
"""

from __future__ import annotations

import atexit
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import stat
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from unweave.data.downloads import cache_folder
from unweave.nn import lane_conv, lane_conv_ops
from unweave.utils.atomic import atomic_file
from unweave.utils.errors import InputError
from unweave.utils.private import private_folder, user_id

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
STEPS = "unweave-steps"  # folder of empty files named after the steps that were compiled
IDENTITY_FILE = "identity.json"
FOLDER = "cache"  # of the files in an archive
MAX_IDENTITY_BYTES = 10_000
MAX_UNPACKED_BYTES = 4_000_000_000  # of an archive; that of a study has some hundred million
MAX_FILES = 200_000  # in an archive
MAX_READ = 1_000_000  # bytes that are read at once; names in an archive are read at once


def cache_identity() -> dict[str, str]:
    """Return the versions and the device that compiled steps depend on."""
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = "none"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    python = f"{sys.implementation.cache_tag}-{platform.machine()}"
    return {"torch": torch.__version__, "triton": triton, "python": python, "device": device}


def compile_folder() -> Path:
    """Return the folder for this machine's versions and device; it need not exist."""
    values = "-".join(cache_identity().values())
    name = "".join(c if c.isalnum() or c in ".+-" else "_" for c in values)
    return cache_folder() / "compiled" / name


def user_folder() -> Path | None:
    """Return the folder that the user has named by TORCHINDUCTOR_CACHE_DIR, or None.

    torch sets the variable to its own default when it is imported, so that value is none of the user's.
    """
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir  # takes a second to import

    folder = os.environ.get(VARIABLE)
    is_named = folder and folder not in (default_cache_dir(), str(compile_folder()))
    return Path(folder) if folder and is_named else None


def use_compile_folder() -> None:
    """Let torch store compiled steps in the user's cache folder, unless the user has named another one."""
    if user_folder() is not None:
        return
    try:
        folder = private_folder(compile_folder())
    except InputError:  # torch's own default could have been made by another user: compile for this process alone
        folder = Path(tempfile.mkdtemp(prefix="unweave-compiled-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = str(folder)
    os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))


def cacheable_functions() -> dict[str, str]:
    """Return functions that torch may cache a graph with, and what their results depend on beside their arguments.

    torch traces a whole graph again, in every process, because of one function that it does not know.
    """
    ours = {f"{lane_conv.__name__}.{name}": CONV_CODE for name in ("convolve", "upsample") if CONV_CODE}
    autocast = ("_enter_autocast", "_exit_autocast")
    return ours | {f"torch.amp.autocast_mode.{name}": torch.__version__ for name in autocast}


def hash_sources(paths: Iterable[str | None]) -> str:
    """Return the SHA-256 of the content of source files; '' if one cannot be read."""
    try:
        return hashlib.sha256(b"".join(Path(path or "").read_bytes() for path in paths)).hexdigest()
    except OSError:
        return ""


CONV_CODE = hash_sources((lane_conv.__file__, lane_conv_ops.__file__))  # of the code that this process has imported


def step_file(key: object) -> Path:
    """Return the file that marks a step as compiled; `key` identifies the step."""
    folder = user_folder() or compile_folder()
    return folder / STEPS / hashlib.sha256(repr(key).encode()).hexdigest()


def mark_compiled(key: object) -> None:
    """Remember that a step was compiled, so that `step_file(key)` exists from now on."""
    try:
        step_file(key).parent.mkdir(parents=True, exist_ok=True)
        step_file(key).touch()
    except OSError:
        pass  # compiling is estimated to take longer next time, no more


# Shipping -------------------------------------------------------------------------------------------------------------


def describe_cache() -> dict[str, Any]:
    """Return folder, number of files and of compiled steps, megabytes, and what the cache is valid for."""
    folder = compile_folder()
    sizes = [path.stat().st_size for path in _files(folder)]
    steps = len(list((folder / STEPS).glob("*")))
    head = {"folder": str(folder), "steps": steps, "files": len(sizes), "MB": round(sum(sizes) / 1e6, 1)}
    return head | cache_identity()


def clear_cache() -> None:
    """Remove what was compiled for these versions and this device."""
    shutil.rmtree(compile_folder(), ignore_errors=True)


def pack_cache(path: Path) -> int:
    """Write the cache to a compressed tar file, atomically; return the number of files in it."""
    folder = compile_folder()
    files = _files(folder)
    if not files:
        raise InputError(f"{folder} has no compiled steps yet: train a model with compiled steps first")
    identity = json.dumps(cache_identity()).encode()
    with atomic_file(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        head = tarfile.TarInfo(IDENTITY_FILE)
        head.size = len(identity)
        archive.addfile(head, io.BytesIO(identity))
        for name in files:
            archive.add(name, arcname=str(PurePosixPath(FOLDER, *name.relative_to(folder).parts)), recursive=False)
    path.chmod(0o600)
    return len(files)


def unpack_cache(path: Path) -> int:
    """Add the files of `pack_cache` to the cache of this machine; return the number of files.

    Raises:
        InputError: If it is no such file, comes from other versions or another device, holds anything but plain files
            inside of its folder, or may be changed by other users.
    """
    if not path.is_file():
        raise InputError(f"{path} is no file: expected one that `unweave cache pack` has written")
    try:
        with path.open("rb") as file, tempfile.TemporaryDirectory() as temporary:
            _refuse_foreign_file(path, os.fstat(file.fileno()))
            content: Any = _LimitedReader(gzip.GzipFile(fileobj=file))
            with tarfile.open(fileobj=content, mode="r:") as archive:
                _check_identity(archive, path)
                archive.extractall(temporary, _plain_members(archive), filter="data")
                return _move_files(Path(temporary) / FOLDER)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be unpacked: {error}") from error


class _LimitedReader:
    """A file for `tarfile` that ends with an error where an archive of compiled steps would be absurdly large."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self.file = file
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        if size > MAX_READ or self.tell() + size > MAX_UNPACKED_BYTES:
            raise tarfile.ReadError(f"it holds more than {MAX_UNPACKED_BYTES:,} bytes, or a name without an end")
        return self.file.read(size)

    def seek(self, place: int) -> int:
        if place > MAX_UNPACKED_BYTES:
            raise tarfile.ReadError(f"it holds more than {MAX_UNPACKED_BYTES:,} bytes")
        return self.file.seek(place)


def _plain_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the files in the folder of the cache; raise an error for links, devices and paths that lead elsewhere."""
    for count, member in enumerate(archive):
        parts = PurePosixPath(member.name).parts
        is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
        if count == 0:
            continue  # the identity
        if not is_plain or parts[:1] != (FOLDER,) or ".." in parts or len(parts) < 2:
            raise tarfile.ReadError(f"{member.name!r} is no plain file in {FOLDER}/")
        if count > MAX_FILES:
            raise tarfile.ReadError(f"it holds more than {MAX_FILES:,} files")
        yield member


def _refuse_foreign_file(path: Path, status: os.stat_result) -> None:
    """Raise an error for a file that another user owns or may write to: its content is executed."""
    is_own = not hasattr(os, "getuid") or status.st_uid in (0, user_id())
    if not is_own or status.st_mode & stat.S_IWOTH:
        text = f"{path} belongs to another user, or all users may write to it"
        raise InputError(f"{text}: what it holds would be executed; copy it from a source you trust")


def _check_identity(archive: tarfile.TarFile, path: Path) -> None:
    """Raise an error unless the archive was packed with the versions and the device of this machine."""
    head = archive.next()
    file = archive.extractfile(head) if head is not None and head.name == IDENTITY_FILE and head.isreg() else None
    if file is None:
        raise InputError(f"{path} is no cache: expected a file that `unweave cache pack` has written")
    packed, here = json.loads(file.read(MAX_IDENTITY_BYTES)), cache_identity()
    if not isinstance(packed, dict):
        raise InputError(f"{path} is no cache: its {IDENTITY_FILE} holds no versions")
    other = {name: value for name, value in packed.items() if value != here.get(name)}
    if other or packed.keys() != here.keys():
        text = ", ".join(f"{name} {value} (here {here.get(name)})" for name, value in other.items())
        raise InputError(f"{path} was packed with {text or 'another version'}: compiled steps work with the same only")


def _move_files(folder: Path) -> int:
    """Move files to the cache, those that it has already too; return their number."""
    target = private_folder(compile_folder())
    files = _files(folder)
    for file in files:
        place = target / file.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(place) as out, file.open("rb") as content:
            if file.name.startswith("__grp__"):
                out.write(_relocated(file, place.parent))
            else:
                shutil.copyfileobj(content, out)
    return len(files)


def _relocated(file: Path, folder: Path) -> bytes:
    """Return Triton's list of the files of a kernel, with the paths of this machine."""
    group = json.loads(file.read_text()) if file.stat().st_size <= MAX_READ else None
    children = group.get("child_paths", {}) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(children, dict) or set(map(type, children.values())) - {str}:
        raise tarfile.ReadError(f"{file.name} is no list of the files of a kernel")
    names = {name: PurePosixPath(path).name for name, path in children.items()}
    if ".." in names.values():
        raise tarfile.ReadError(f"{file.name} names a file outside of its folder")
    return json.dumps(group | {"child_paths": {name: str(folder / own) for name, own in names.items()}}).encode()


def _files(folder: Path) -> list[Path]:
    """Return all plain files of a folder, sorted; without those that a process is writing or locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in files if not path.name.endswith((".tmp", ".lock")))
