"""Identify the source code of a user's own class."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

from unweave.utils.errors import InputError


def source_hash(cls: type) -> str | None:
    """The hash of the code of a user's own class, so that an edited method is another one; None for our own."""
    if cls.__module__.split(".")[0] == "unweave":
        return None
    if "source_hash_" in vars(cls):  # on another machine, where its file is not
        return str(vars(cls)["source_hash_"])
    module = inspect.getmodule(cls)
    file = Path(getattr(module, "__file__", None) or "")
    try:
        code = file.read_bytes() if file.is_file() else inspect.getsource(cls).encode()
    except (OSError, TypeError):
        raise InputError(
            f"the code of {cls.__name__} cannot be read, so its versions could not be told apart: put it in a file"
        ) from None
    return hashlib.sha256(code).hexdigest()
