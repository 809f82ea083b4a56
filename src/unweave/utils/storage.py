"""JSON files, and hashes of recipes, files and the source of classes."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from unweave.utils.errors import InputError, first_line
from unweave.utils.files import check_file

MIN_AGE = 2.0  # seconds since the last change of a file whose checksum may be kept


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, default=to_jsonable) + "\n", encoding="utf-8")


def to_jsonable(value: Any) -> Any:
    """Convert numpy values to Python's and paths to text; the `default` of `json.dumps`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def recipe_hash(recipe: Any, length: int = 16) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 of a recipe as JSON; key order does not matter."""
    text = json.dumps(recipe, sort_keys=True, default=to_jsonable)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@cache  # of the class as it was imported: its file may be edited while a run is trained
def source_hash(cls: type | FunctionType) -> str | None:
    """Return the SHA-256 of the file of a user's class or function, so that an edited one is another; None for ours."""
    if cls.__module__.split(".")[0] == "unweave":
        return None
    if "source_hash_" in vars(cls):  # set by the sender: on another machine the file does not exist
        return str(vars(cls)["source_hash_"])
    module = inspect.getmodule(cls)
    file = Path(getattr(module, "__file__", None) or "")
    try:
        code = file.read_bytes() if file.is_file() else inspect.getsource(cls).encode()
    except (OSError, TypeError):
        raise InputError(
            f"the code of {cls.__name__} cannot be read, so its versions cannot be distinguished: define it in a file"
        ) from None
    return hashlib.sha256(code).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or raise an error that names the file."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is a named pipe or a device: expected a file that unweave wrote")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing: is {path.parent} a folder that unweave wrote?") from None
    except (ValueError, OSError, RecursionError) as error:
        text = f"{path} cannot be read ({first_line(error)}): it is truncated or altered"
        raise InputError(f"{text}; delete the folder and repeat the command") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} holds {type(value).__name__}, not an object: it was not written by unweave")
    return value


def sha256(*paths: Path, below: Path | None = None) -> str:
    """Return the SHA-256 of files; with `below`, also of their names relative to that folder."""
    digest = hashlib.sha256()
    for path in paths:
        if below is not None:
            digest.update(path.relative_to(below).as_posix().encode() + b"\0")
        check_file(path)
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)  # continues this one
    return digest.hexdigest()


def sha256_of_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


_known_hashes: dict[tuple[str | int, ...], str] = {}


def cached_sha256(path: Path) -> str:
    """Return the SHA-256 of a file; one that did not change since this process computed it is not read again.

    A file that was written just now is always read: its times would not show another change.
    """
    status = path.stat()
    key = (str(path.absolute()), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if key not in _known_hashes:
        checksum = sha256(path)
        if time.time() - max(status.st_mtime, status.st_ctime) < MIN_AGE:
            return checksum
        _known_hashes[key] = checksum
    return _known_hashes[key]


def check_hash(path: Path, checksum: str) -> None:
    """Raise an error that names the file if it is missing, truncated or altered."""
    if not path.is_file():
        raise InputError(f"{path} is missing: the folder is not complete; delete it and repeat the command")
    actual = cached_sha256(path)
    if actual != checksum:
        raise InputError(f"{path} is truncated or altered: its sha256 is {actual[:12]}..., expected {checksum[:12]}...")
