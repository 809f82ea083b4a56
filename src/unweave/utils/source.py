"""Identify the source code of users' own classes."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

from unweave.utils.errors import InputError


def source_hash(cls: type) -> str | None:
    """Return the SHA-256 of the file of a user's own class, so that an edited class is another one; None for ours."""
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
